// The redo log: replay takes whole batches from the front and stops at the first that does not hold, whatever the bytes
// are. Logs are either raw bytes, also in the place of an earlier release's, or written by the LFS's own writer and
// then damaged.
#include <array>

#include <spdlog/spdlog.h>

#include "../../lfs/src/redo/recovery.h"
#include "../../lfs/src/store/catalogue.h"
#include "../../lfs/src/store/root.h"
#include "fuzz.h"
#include "pif/base/checksum.h"
#include "pif/component/component.h"
#include "pif/component/memory_storage.h"
#include "pif/kv/memory_store.h"
#include "pif/lfs/lfs.h"

namespace {

using namespace pif;
using namespace pif::lfs;
using fuzz::must;

const std::string kRoot = "/lfs0";
const std::string kFolder = log_folder(kRoot);
const std::array<std::string, 2> kLogs = {kFolder + "/redo.0", kFolder + "/redo.1"};
constexpr std::uint64_t kLogBytes = 1u << 20;
constexpr std::size_t kFirstEntry = 4096;

proto::ComponentState component_of(std::uint64_t file, std::uint32_t record_length, std::uint64_t rows) {
  proto::ComponentState out;
  out.mutable_shape()->set_file(file);
  out.mutable_shape()->mutable_format()->set_kind(1);
  out.mutable_shape()->mutable_format()->set_record_length(record_length);
  out.mutable_shape()->mutable_layout()->add_nodes(1);
  out.set_state(3);
  out.set_rows(rows);
  out.set_bytes(rows * record_length);
  out.set_log_applied(2);
  return out;
}

// Two components with files; a third has none. The same for all executions: each finds it as the first one did.
class Root {
 public:
  Root() {
    for (const auto* folder : {"/log", "/data/01", "/data/02"})
      must(disk->make_folder(kRoot + folder).has_value(), "folders");
  }
  void reset() {
    for (const std::string& path : {kLogs[0], kLogs[1], older_log_path(kRoot)})
      must(disk->remove(path).has_value(), "the last log can be removed");
    auto rows = catalogue->write();
    must(rows.has_value(), "memory can be written");
    for (const auto& state : states_) must(catalogue::put(**rows, state).has_value(), "and has room");
    must((*rows)->commit().has_value(), "and is committed");
    for (std::size_t i = 0; i < 2; ++i) {
      const auto stem = component::stem(kRoot, FileId(states_[i].shape().file()));
      make_file(stem + ".dat", states_[i].bytes());
      make_file(stem + ".sum", states_[i].bytes() / 4000 * 8);
    }
  }
  const std::unique_ptr<component::Storage> disk = component::make_memory_storage(component::MemoryDisk::make());
  const std::unique_ptr<kv::Store> catalogue =
      kv::open_memory(kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size())));

 private:
  void make_file(const std::string& path, std::uint64_t bytes) {
    auto file = disk->open(path, component::OpenMode::kCreate);
    must(file && (*file)->resize(0) && (*file)->resize(bytes), "files");
  }
  const std::array<proto::ComponentState, 3> states_ = {component_of(1, 100, 50), component_of(2, 1000, 12),
                                                        component_of(3, 10, 50)};
};

void write_raw(component::Storage& disk, const std::string& path, std::uint64_t offset, std::string_view bytes) {
  auto file = disk.open(path, component::OpenMode::kCreate);
  must(file && (*file)->write(offset, std::as_bytes(std::span(bytes))), "memory can be written");
}

// As the LFS writes it. The file that it is in.
std::string write_entries(component::Storage& disk, fuzz::Input& in) {
  RedoLog log(disk, kFolder, kLogBytes);
  must(log.open([](const LogEntry&, std::uint64_t) -> Result<bool> { return true; }).has_value(), "a new log opens");
  const bool is_second = (in.byte() & 1) != 0;
  if (is_second) must(log.checkpoint(in.wide() / 2, {{{3, 4}}, {{1, 2}}}).has_value(), "and starts a round");
  for (unsigned count = in.byte() % 8; count > 0; --count) {
    const std::uint64_t file = in.byte();
    const std::uint64_t first_chunk = (file & 0x80) != 0 ? in.wide() : in.byte();
    const std::uint32_t chunk_bytes = in.word();
    const auto data = in.text();
    log.add({FileId(file & 0x7f), first_chunk, chunk_bytes, std::as_bytes(std::span(data))}, log.last_number() + 1);
    log.close_batch({{file, first_chunk}});
    must(log.write_batch().has_value(), "memory can be written");
    log.end_batch(true);
  }
  return kLogs[is_second ? 0 : 1];
}

void damage(component::Storage& disk, const std::string& path, fuzz::Input& in) {
  for (unsigned count = in.byte() % 4; count > 0; --count) {
    const std::uint64_t offset = in.word();
    write_raw(disk, path, (offset & 1) != 0 ? kFirstEntry + offset / 2 : offset / 2, in.bytes(in.byte() % 9));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, size);
  static Root world;
  world.reset();
  if ((in.byte() & 1) == 0) {
    const std::string path = write_entries(*world.disk, in);
    damage(*world.disk, path, in);
  } else {
    const unsigned where = in.byte();
    write_raw(*world.disk, (where & 2) != 0 ? older_log_path(kRoot) : kLogs[1], (where & 1) != 0 ? kFirstEntry : 0,
              in.rest());
  }
  RedoLog log(*world.disk, kFolder, kLogBytes);
  if (!replay_log(*world.disk, *world.catalogue, kRoot, log)) return 0;
  RedoLog again(*world.disk, kFolder, kLogBytes);
  std::size_t left = 0;
  const auto opened = again.open([&left](const LogEntry&, std::uint64_t) -> Result<bool> {
    ++left;
    return true;
  });
  must(opened && left == 0, "what was replayed is not replayed again");
  must(again.found().done == log.found().done, "requests that are known stay known");
  must(again.last_number() >= 2, "numbers never go back behind what components have applied");
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  const std::string chunk(4000, 'c');
  const auto entry = [&](unsigned file, unsigned first, unsigned chunk_bytes, std::size_t bytes) {
    return Output().byte(file).byte(first).word(chunk_bytes).text(chunk.substr(0, bytes)).str();
  };
  const auto log = [](unsigned count, const std::string& entries, const std::string& damages) {
    return Output().byte(0).byte(0).byte(count).bytes(entries).bytes(damages).str();
  };
  const std::string none = Output().byte(0).str();
  return {
      {"one", log(1, entry(1, 0, 4000, 4000), none)},
      {"two", log(2, entry(1, 0, 4000, 4000) + entry(2, 3, 4000, 4000), none)},
      {"five", log(5,
                   entry(1, 0, 4000, 400) + entry(1, 1, 4000, 1000) + entry(2, 1, 4000, 4000) + entry(3, 0, 4090, 10) +
                       entry(9, 0, 1, 1),
                   none)},
      {"far", log(3,
                  entry(1, 0, 4000, 40) + entry(1, 0, 4000, 40) +
                      Output().byte(0x81).wide(1ull << 52).word(4000).text(chunk).str(),
                  none)},
      {"torn", log(2, entry(1, 0, 4000, 4000) + entry(2, 3, 4000, 4000),
                   Output().byte(1).word(201).byte(4).bytes("torn").str())},
      {"head-lost", log(1, entry(1, 0, 4000, 4000), Output().byte(1).word(0).byte(4).bytes("lost").str())},
      {"rounds", Output().byte(0).byte(1).wide(99).byte(1).bytes(entry(1, 0, 4000, 100)).byte(0).str()},
      {"raw", Output().byte(1).byte(0).bytes("PRedLog1").bytes(chunk).str()},
      {"raw-older", Output().byte(1).byte(2).bytes("PRedLog1").bytes(chunk).str()},
      {"raw-entries", Output().byte(1).byte(1).bytes("RedE").bytes(chunk).str()},
      {"empty", Output().byte(1).byte(0).str()},
  };
}
