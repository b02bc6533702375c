// What the key-value stores hold: rows of the server's directory and entries of an LFS's catalogue, with files beside
// them, of any content. Checksums are right unless the input says otherwise, so that what lies behind them is reached.
// Opening and checking must end, with values or errors; what opens without an error must also serve.
#include <array>
#include <memory>

#include <spdlog/spdlog.h>

#include "lfs_world.h"
#include "pif/kv/value.h"
#include "pif/proto/stored.pb.h"
#include "pif/server/server.h"

namespace {

using namespace pif;
using fuzz::must;

constexpr int kRowsMax = 32;
constexpr std::array<std::uint64_t, 5> kFiles = {1, 2, 3, 0x102, ~0ull};
constexpr std::array<const char*, 6> kMetaKeys = {"version", "cluster", "next-id", "format", "", "f"};
constexpr std::array<const char*, 4> kSuffixes = {".dat", ".sum", ".idx", ".isum"};

// One row: table and form of its key, key, value.
void put_row(fuzz::Input& in, kv::Transaction& rows, unsigned tables) {
  const unsigned what = in.byte();
  const unsigned number = in.byte();
  std::string key;
  switch (what >> 4 & 3) {
    case 0: key = kv::key_u64(number < kFiles.size() ? kFiles[number] : number); break;
    case 1: key = kv::key_u64(number) + std::string(in.bytes(in.byte() % 16)); break;
    case 2:
      key = std::string(kMetaKeys[number % kMetaKeys.size()]) + std::string(in.bytes((what & 0x40) != 0 ? 8 : 0));
      break;
    default: key = std::string(in.bytes(in.byte() % 24)); break;
  }
  const auto value = in.text();
  const bool sealed = (what & 0x80) == 0;
  if (!key.empty()) (void)rows.put(what % tables, key, sealed ? kv::seal_value(value) : std::string(value));
}

void put_rows(fuzz::Input& in, kv::Store& store, unsigned tables) {
  auto rows = store.write();
  must(rows.has_value(), "memory can be written");
  for (unsigned count = in.byte() % kRowsMax; count > 0 && !in.empty(); --count) put_row(in, **rows, tables);
  must((*rows)->commit().has_value(), "and committed");
}

struct World {
  fuzz::FakeClock clock;
  fuzz::FakeMessenger messenger{clock};
  fuzz::CountingEntropy entropy;
  InlineExecutor executor;
  fuzz::NoSpawner spawner;

  using Fill = std::function<void(proto::Envelope&)>;
  void ask(const std::string& capability, const Fill& fill) {
    net::Packet packet;
    packet.envelope.set_version(kProtocolVersion);
    packet.envelope.set_id(++id);
    packet.envelope.set_capability(capability);
    fill(packet.envelope);
    messenger.deliver(root, std::move(packet));
  }

  net::PeerId root = messenger.add({.via = net::Identity::Via::kUnix, .has_uid = true, .uid = 0, .gids = {0}});
  std::uint64_t id = 0;
};

// Made once each: nothing in them changes.
const std::string& capability_of(std::uint64_t file) {
  static std::map<std::uint64_t, std::string> made;
  auto& out = made[file];
  const std::int64_t expiry = fuzz::FakeClock().wall_seconds() + 100;
  const bool any = file == 0;
  if (out.empty())
    out = mint(fuzz::test_key(),
               Capability{FileId(file), 0, any ? kMayManage : kMayRead | kMayWrite, any ? 0 : ~0ull, expiry});
  return out;
}

void ask_server(World& world) {
  using proto::Envelope;
  world.ask({}, [](Envelope& e) { e.mutable_hello(); });
  world.ask({}, [](Envelope& e) { e.mutable_list()->set_path("/"); });
  world.ask({}, [](Envelope& e) { e.mutable_list_files(); });
  world.ask({}, [](Envelope& e) { e.mutable_remove()->add_paths("/a"), e.mutable_remove()->set_recursive(true); });
  world.ask({}, [](Envelope& e) { e.mutable_rename()->set_from("/b"), e.mutable_rename()->set_to("/c"); });
}

void ask_lfs(World& world, std::uint64_t file) {
  using proto::Envelope;
  const auto& mine = capability_of(file);
  world.ask(mine, [=](Envelope& e) { e.mutable_read()->set_file(file), e.mutable_read()->set_count(3); });
  world.ask(mine, [=](Envelope& e) {
    e.mutable_read()->set_file(file), e.mutable_read()->set_count(9), e.mutable_read()->set_stride(2);
  });
  world.ask(mine, [=](Envelope& e) { e.mutable_attach()->set_file(file); });
  world.ask(mine, [=](Envelope& e) { e.mutable_reserve()->set_file(file), e.mutable_reserve()->set_records(1); });
  world.ask(mine, [=](Envelope& e) { e.mutable_offsets()->set_file(file), e.mutable_offsets()->add_rows(2); });
  world.ask(capability_of(0), [=](Envelope& e) {
    e.mutable_check_component()->set_file(file), e.mutable_check_component()->set_sums(true);
  });
}

bool has_row(kv::Store& store, kv::Table table, const std::string& key) {
  auto rows = store.read();
  must(rows.has_value(), "memory can be read");
  return (*rows)->get(table, key).value_or(std::nullopt).has_value();
}

const server::Config kServer{.cluster = "c1", .key = fuzz::test_key(), .owner_uid = 500};

// A directory that a server made; made once.
const kv::MemoryState& new_directory() {
  static const auto made = [] {
    auto state = kv::make_memory_state(static_cast<unsigned>(server::kDirectoryTables.size()));
    const auto store = kv::open_memory(state);
    World world;
    must(server::make_directory(*store, {"c1", ""}, 500, 0).has_value(), "a directory is made");
    server::Server maker(kServer, {world.messenger, *store, world.entropy});
    must(maker.open().has_value(), "a new directory opens");
    return state;
  }();
  return *made;
}

void check_directory(fuzz::Input& in) {
  const auto tables = static_cast<unsigned>(server::kDirectoryTables.size());
  const bool over = (in.byte() & 1) == 0;  // the rows come over what a server made
  const auto store = kv::open_memory(over ? kv::copy_memory_state(new_directory()) : kv::make_memory_state(tables));
  put_rows(in, *store, tables);
  (void)server::check_directory(*store);
  World world;
  server::Server server(kServer, {world.messenger, *store, world.entropy});
  if (!server.open()) return;
  ask_server(world);
  (void)server.serve(world.messenger.idle());
}

void put_file(component::Storage& storage, fuzz::Input& in) {
  const unsigned what = in.byte();
  const auto path = component::stem(fuzz::kRoot, FileId(kFiles[what % kFiles.size()])) + kSuffixes[what >> 4 & 3];
  const auto bytes = in.text();
  if (!storage.make_folder(path.substr(0, path.rfind('/')))) return;
  auto file = storage.open(path, component::OpenMode::kCreate);
  must(file && (*file)->write(0, std::as_bytes(std::span(bytes))), "memory can be written");
}

void check_catalogue(fuzz::Input& in) {
  const fuzz::Root root = fuzz::new_root().copy();
  const auto storage = component::make_memory_storage(root.disk);
  const auto store = kv::open_memory(root.catalogue);
  for (unsigned files = in.byte() % 8; files > 0; --files) put_file(*storage, in);
  put_rows(in, *store, static_cast<unsigned>(lfs::kCatalogueTables.size()));
  (void)lfs::check_root(*storage, *store, fuzz::kRoot, true);
  World world;
  lfs::Lfs lfs(fuzz::lfs_config(), {world.messenger, *storage, *store, world.executor, world.spawner, world.entropy});
  if (!lfs.open()) return;
  world.ask(capability_of(0), [](proto::Envelope& e) { e.mutable_list_components()->set_limit(100); });
  for (const auto file : kFiles)
    if (file == kFiles[0] || has_row(*store, 0, kv::key_u64(file))) ask_lfs(world, file);
  (void)lfs.serve(world.messenger.idle());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, size);
  (in.byte() & 1) == 0 ? check_directory(in) : check_catalogue(in);
  return 0;
}

namespace {

constexpr unsigned kEntries = 0, kFilesTable = 1, kMeta = 4;
constexpr unsigned kById = 0, kByName = 1 << 4, kNamed = 2 << 4;

struct RowList {
  unsigned count = 0;
  std::string bytes;
  RowList& add(unsigned what, unsigned number, std::string_view more, const std::string& value) {
    ++count;
    bytes += fuzz::Output().byte(what).byte(number).bytes(more).text(value).str();
    return *this;
  }
  std::string str() const { return fuzz::Output().byte(count).bytes(bytes).str(); }
};

proto::StoredEntry entry_of(unsigned id, bool folder) {
  proto::StoredEntry out;
  out.set_type(folder ? proto::FOLDER : proto::FILE_ENTRY);
  out.set_id(id);
  out.mutable_attributes()->set_mode(0755);
  if (folder) return out;
  out.mutable_format()->set_kind(1);
  out.mutable_format()->set_record_length(10);
  out.mutable_layout()->add_nodes(1);
  out.set_epoch(1);
  return out;
}

std::string file_row(unsigned state, const char* name) {
  proto::StoredFile out;
  out.set_state(state);
  out.set_parent(1);
  out.set_name(name);
  if (state != 2) *out.mutable_entry() = entry_of(2, false);
  if (state == 3) out.add_waiting(1);
  return out.SerializeAsString();
}

std::string component_row(std::uint64_t file, const Format& format, std::uint64_t rows, std::uint64_t bytes) {
  proto::StoredComponent out;
  auto& state = *out.mutable_state();
  state.mutable_shape()->set_file(file);
  state.mutable_shape()->mutable_format()->set_kind(static_cast<std::uint32_t>(format.kind));
  state.mutable_shape()->mutable_format()->set_record_length(format.record_length);
  state.mutable_shape()->mutable_layout()->add_nodes(1);
  state.set_state(3);
  state.set_rows(rows);
  state.set_bytes(bytes);
  state.mutable_published()->set_records(rows);
  state.mutable_published()->set_bytes(bytes);
  return out.SerializeAsString();
}

// A row of table `table`: `what` must be that, modulo the number of tables, under its flags.
constexpr unsigned row_of(unsigned table, unsigned form, unsigned tables) {
  for (unsigned low = 0; low < 16; ++low)
    if ((form | low) % tables == table) return form | low;
  return form;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  const auto directory = [](unsigned fresh, const RowList& rows) {
    return Output().byte(0).byte(fresh).bytes(rows.str()).str();
  };
  const auto catalogue = [](const std::string& files, unsigned count, const RowList& rows) {
    return Output().byte(1).byte(count).bytes(files).bytes(rows.str()).str();
  };
  const auto name = [](unsigned parent, std::string_view text, const proto::StoredEntry& entry) {
    const std::string more = Output().byte(static_cast<unsigned>(text.size())).bytes(text).str();
    return RowList().add(row_of(kEntries, kByName, 5), parent, more, entry.SerializeAsString());
  };
  const auto file = [](unsigned id, const std::string& row) {
    return RowList().add(row_of(kFilesTable, kById, 5), id, {}, row);
  };
  const auto both = [](RowList a, const RowList& b) {
    a.count += b.count;
    a.bytes += b.bytes;
    return a;
  };
  const std::string dat(50, 'r');
  const std::string files = Output().byte(0).text(dat).byte(1 << 4).text("").str();
  const auto component = [](unsigned number, const std::string& row) {
    return RowList().add(row_of(0, kById, 2), number, {}, row);
  };
  return {
      {"committed", directory(0, both(name(1, "a", entry_of(2, false)), file(9, file_row(2, "a"))))},
      {"pending", directory(0, file(9, file_row(1, "p")))},
      {"doomed", directory(0, file(9, file_row(3, "d")))},
      {"folder-in-itself", directory(0, name(7, "a", entry_of(7, true)))},
      {"folder-in-itself-below", directory(0, both(name(1, "a", entry_of(7, true)), name(7, "b", entry_of(7, true))))},
      {"no-version", directory(1, name(0, "/", entry_of(1, true)))},
      {"meta", directory(0, RowList().add(row_of(kMeta, kNamed, 5), 2, {}, std::string(8, '\xff')))},
      {"bad-name", directory(0, name(1, "..", entry_of(2, false)))},
      {"component", catalogue(files, 2, component(0, component_row(1, Format::fixed(10), 5, 50)))},
      {"component-missing", catalogue("", 0, component(1, component_row(2, Format::fixed(10), 5, 50)))},
      {"component-endless", catalogue(files, 2, component(0, component_row(1, Format::variable(), 1ull << 61, ~0ull)))},
      {"component-endless-fixed", catalogue(files, 2, component(0, component_row(1, Format::fixed(1), ~0ull, ~0ull)))},
      {"rows-without-bytes", catalogue(files, 2, component(0, component_row(1, Format::fixed(10), 0x3fff, 50)))},
      {"last-file", catalogue("", 0, component(4, component_row(~0ull, Format::fixed(1), 0, 0)))},
  };
}
