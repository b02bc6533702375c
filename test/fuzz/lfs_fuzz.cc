// Every operation of an LFS: requests with good and bad rights, over Unix sockets and ZeroMQ, with passing time,
// restarts and power cuts, to the real LFS over a disk and a catalogue in memory. Afterwards its checker must find
// nothing.
#include <array>
#include <cstring>
#include <memory>

#include <spdlog/spdlog.h>

#include "daemon.h"
#include "pif/component/component.h"
#include "pif/component/memory_storage.h"
#include "pif/kv/memory_store.h"
#include "pif/lfs/lfs.h"

namespace {

using namespace pif;
using fuzz::must;
using proto::Envelope;

constexpr std::array<std::uint32_t, 2> kUids = {1000, 0};
constexpr int kStepsMax = 24;
constexpr std::uint64_t kDiskBytes = 8u << 20;
constexpr std::uint64_t kLogBytes = 64u << 10;

class NoSpawner final : public lfs::Spawner {
 public:
  Result<Started> start(const Order&) override { return fail(Code::kUnsupported, "no workers here"); }
  void kill(ProcessId) override {}
  std::optional<lfs::WorkerExit> exited(ProcessId) override { return std::nullopt; }
};

// What an LFS keeps: its disk and its catalogue.
struct Root {
  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::shared_ptr<kv::MemoryState> catalogue =
      kv::make_memory_state(static_cast<unsigned>(lfs::kCatalogueTables.size()));
  Root copy() const { return {disk->copy(), kv::copy_memory_state(*catalogue)}; }
};

class World {
 public:
  explicit World(Root root) : disk_(std::move(root.disk)), catalogue_state_(std::move(root.catalogue)) {
    disk_->set_capacity(kDiskBytes);
    const auto storage = component::make_memory_storage(disk_);
    const auto catalogue = kv::open_memory(catalogue_state_);
    must(lfs::make_root(*storage, *catalogue, "/lfs0", {"c1", 1, "lfs0", ""}).has_value(), "a root is made");
    watch();
    start();
    touched_ = false;
  }

  void step(fuzz::Input& in) {
    const unsigned what = in.byte();
    const unsigned peer = what >> 4 & 3;
    switch (what & 15) {
      case 10: clock_.advance(std::chrono::milliseconds(100) * in.byte()); break;
      case 11: messenger_->close(peers_[peer]), add_peer(peer); break;
      case 12: start(); break;
      case 13: crash(); break;
      default: request(peer, fuzz::take_request(in));
    }
    if ((what & 0x80) == 0) run();
  }

  void finish() {
    run();
    lfs_.reset();
    storage_.reset();
    if (!touched_) return;  // it is as every execution finds it
    const auto storage = component::make_memory_storage(disk_);
    const auto catalogue = kv::open_memory(catalogue_state_);
    start();  // what died while it was written is removed by the next start
    const auto report = lfs::check_root(*storage, *catalogue, "/lfs0", true);
    must(report.has_value(), "the root can be checked");
    for (const auto& damage : report->damages) std::fprintf(stderr, "damage: %s\n", damage.c_str());
    must(report->damages.empty(), "the root is whole");
  }

 private:
  void watch() {
    disk_->set_fault([this](std::string_view call, std::string_view) {
      touched_ = touched_ || call != "space";
      return Code::kOk;
    });
  }
  void start() {
    const bool touched = touched_;
    lfs_.reset();
    answers_.clear();
    messenger_ = std::make_unique<fuzz::FakeMessenger>(clock_);
    messenger_->on_send = [this](net::PeerId peer, const net::Packet& packet) { answers_.sent(peer, packet.envelope); };
    for (unsigned peer = 0; peer < peers_.size(); ++peer) add_peer(peer);
    storage_ = component::make_memory_storage(disk_);
    catalogue_ = kv::open_memory(catalogue_state_);
    lfs::Config config;
    config.node = 1;
    config.name = "lfs0";
    config.cluster = "c1";
    config.root = "/lfs0";
    config.key = key_;
    config.log_bytes = kLogBytes;
    lfs_ = std::make_unique<lfs::Lfs>(std::move(config),
                                      lfs::World{*messenger_, *storage_, *catalogue_, executor_, spawner_, entropy_});
    must(lfs_->open().has_value(), "an LFS opens what an LFS wrote");
    touched_ = touched;  // to start changes nothing
  }
  void crash() {
    disk_->set_fault([](std::string_view, std::string_view) { return Code::kIo; });  // the dying one tidies nothing up
    lfs_.reset();
    watch();
    disk_->crash();
    start();
  }
  void add_peer(unsigned peer) {
    const bool local = peer % 2 == 0;
    net::Identity identity{.via = local ? net::Identity::Via::kUnix : net::Identity::Via::kIpc, .has_uid = local};
    if (local) identity.uid = kUids[peer / 2], identity.gids = {identity.uid};
    peers_[peer] = messenger_->add(identity);
  }
  void request(unsigned peer, const fuzz::Request& asked) {
    auto packet = fuzz::packet_of(asked, key_, kUids[peer / 2], clock_.wall_seconds(), ++last_id_);
    if (!packet) return;
    if (!net::is_reply(packet->envelope)) answers_.asked(peers_[peer], packet->envelope.id());
    messenger_->deliver(peers_[peer], std::move(*packet));
  }
  void run() {
    messenger_->idle() = false;
    must(lfs_->serve(messenger_->idle()).has_value(), "no request ends the LFS");
  }

  const ClusterKey key_ = fuzz::test_key();
  fuzz::FakeClock clock_;
  fuzz::CountingEntropy entropy_;
  InlineExecutor executor_;
  NoSpawner spawner_;
  const std::shared_ptr<component::MemoryDisk> disk_;
  const std::shared_ptr<kv::MemoryState> catalogue_state_;
  bool touched_ = false;  // by anything but a start
  std::unique_ptr<fuzz::FakeMessenger> messenger_;
  std::unique_ptr<component::Storage> storage_;
  std::unique_ptr<kv::Store> catalogue_;
  std::unique_ptr<lfs::Lfs> lfs_;
  fuzz::Answers answers_;
  std::array<net::PeerId, 4> peers_{};
  std::uint64_t last_id_ = 1000;
};

// A new LFS's, made once.
const Root& new_root() {
  static const Root made = [] {
    Root root;
    const World world(root);
    return root.copy();
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, size);
  World world(new_root().copy());
  for (int i = 0; i < kStepsMax && !in.empty(); ++i) world.step(in);
  world.finish();
  return 0;
}

namespace {

using Fill = std::function<void(Envelope&)>;
constexpr unsigned kFile = 7;
constexpr unsigned kGood = fuzz::kGoodCapability;

std::string ask(unsigned rights, const Fill& fill, std::string_view body = {}, unsigned flags = kGood,
                unsigned peer = 0) {
  Envelope envelope;
  fill(envelope);
  return fuzz::request_step(peer << 4, flags, rights, kFile, envelope, body);
}

proto::ComponentShape shape_of(const Format& format, unsigned width = 1) {
  proto::ComponentShape out;
  out.set_file(kFile);
  out.mutable_format()->set_kind(static_cast<std::uint32_t>(format.kind));
  out.mutable_format()->set_record_length(format.record_length);
  out.mutable_format()->set_delimiter(format.delimiter);
  for (unsigned node = 1; node <= width; ++node) out.mutable_layout()->add_nodes(node);
  return out;
}

void set_file_length(proto::FileLength& file_length, std::uint64_t records, std::uint64_t bytes) {
  file_length.set_records(records);
  file_length.set_bytes(bytes);
}

std::string write_rows(const Format& format, std::uint64_t first, std::uint64_t count, std::string_view body) {
  return ask(
      kMayCreate,
      [=](Envelope& e) {
        *e.mutable_write()->mutable_shape() = shape_of(format);
        e.mutable_write()->set_first(first);
        e.mutable_write()->set_count(count);
      },
      body);
}
std::string seal(const Format& format, std::uint64_t rows, std::uint64_t bytes) {
  return ask(kMayCreate, [=](Envelope& e) {
    *e.mutable_seal()->mutable_shape() = shape_of(format);
    e.mutable_seal()->set_rows(rows);
    e.mutable_seal()->set_bytes(bytes);
    set_file_length(*e.mutable_seal()->mutable_file(), rows, bytes);
  });
}
std::string settle(bool commit) {
  return ask(
      0,
      [=](Envelope& e) { commit ? e.mutable_settle()->add_committed(kFile) : e.mutable_settle()->add_removed(kFile); },
      {}, kGood | fuzz::kAnyFile);
}
std::string read_rows(std::uint64_t first, std::uint64_t count, std::uint32_t stride = 0, unsigned flags = kGood,
                      unsigned peer = 0) {
  return ask(
      kMayRead,
      [=](Envelope& e) {
        e.mutable_read()->set_file(kFile);
        e.mutable_read()->set_first(first);
        e.mutable_read()->set_count(count);
        e.mutable_read()->set_stride(stride);
      },
      {}, flags, peer);
}
std::string overwrite(std::uint64_t first, std::uint64_t count, std::string_view body, std::uint32_t within = 0,
                      std::uint32_t bytes = 0) {
  return ask(
      kMayWrite,
      [=](Envelope& e) {
        e.mutable_overwrite()->set_file(kFile);
        e.mutable_overwrite()->set_first(first);
        e.mutable_overwrite()->set_count(count);
        e.mutable_overwrite()->set_within(within);
        e.mutable_overwrite()->set_bytes(bytes);
      },
      body);
}
std::string reserve(std::uint64_t records, std::uint64_t bytes, bool fill = false) {
  return ask(kMayWrite, [=](Envelope& e) {
    e.mutable_reserve()->set_file(kFile);
    e.mutable_reserve()->set_records(records);
    e.mutable_reserve()->set_bytes(bytes);
    e.mutable_reserve()->set_fill(fill);
  });
}
std::string append(std::uint64_t first, std::uint64_t count, std::string_view body, std::uint64_t generation,
                   std::uint64_t base, std::uint32_t within = 0) {
  return ask(
      kMayWrite,
      [=](Envelope& e) {
        e.mutable_append_rows()->set_file(kFile);
        e.mutable_append_rows()->set_first(first);
        e.mutable_append_rows()->set_count(count);
        e.mutable_append_rows()->set_generation(generation);
        e.mutable_append_rows()->set_within(within);
        set_file_length(*e.mutable_append_rows()->mutable_base(), base, base * 10);
      },
      body);
}
std::string append_done(std::uint64_t ticket, std::uint64_t generation) {
  return ask(kMayWrite, [=](Envelope& e) {
    e.mutable_append_done()->set_file(kFile);
    e.mutable_append_done()->set_ticket(ticket);
    e.mutable_append_done()->set_generation(generation);
  });
}
std::string append_cancel(std::uint64_t ticket) {
  return ask(kMayWrite, [=](Envelope& e) {
    e.mutable_append_cancel()->set_file(kFile);
    e.mutable_append_cancel()->set_ticket(ticket);
  });
}
// Lengths, then rows.
std::string variable(std::initializer_list<std::string_view> rows) {
  std::string lengths;
  std::string data;
  for (const auto row : rows) {
    lengths += fuzz::Output().word(static_cast<unsigned>(row.size())).word(0).str();
    data += row;
  }
  return lengths + data;
}
std::string manage(const Fill& fill) { return ask(0, fill, {}, kGood | fuzz::kAnyFile); }

}  // namespace

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  const std::string restart = Output().byte(12).str();
  const std::string crash = Output().byte(13).str();
  const std::string second = Output().byte(10).byte(255).str();
  const Format ten = Format::fixed(10);
  const Format lines = Format::lines();
  const std::string rows(50, 'r');
  const std::string put = write_rows(ten, 0, 5, rows) + seal(ten, 5, 50) + settle(true);
  const std::string text = variable({"one\n", "", "three\n"});
  const std::string put_lines = write_rows(lines, 0, 3, text) + seal(lines, 3, 10) + settle(true);
  const std::uint64_t ticket = (std::uint64_t{1} << 24) + 1;  // a generation, then a number within it
  const std::uint64_t second_ticket = (std::uint64_t{2} << 24) + 1;
  const auto attach = [](Envelope& e) { e.mutable_attach()->set_file(kFile); };
  const auto attach_new = [](Envelope& e) { *e.mutable_attach()->mutable_create() = shape_of(Format::fixed(10)); };
  const auto length = [](Envelope& e) { e.mutable_length()->set_file(kFile); };
  const auto bytes = [](Envelope& e) {
    e.mutable_read_bytes()->set_file(kFile), e.mutable_read_bytes()->set_bytes(99);
  };
  const auto offsets = [](Envelope& e) { e.mutable_offsets()->set_file(kFile), e.mutable_offsets()->add_rows(1); };
  const auto flush = [](Envelope& e) { e.mutable_flush(); };
  const auto list = [](Envelope& e) { e.mutable_list_components()->set_limit(5); };
  const auto check = [](Envelope& e) {
    e.mutable_check_component()->set_file(kFile), e.mutable_check_component()->set_sums(true);
  };
  const auto spawn = [](Envelope& e) { e.mutable_spawn()->set_job(5), e.mutable_spawn()->set_program("/bin/true"); };
  const auto job_wait = [](Envelope& e) { e.mutable_job_wait()->set_job(5), e.mutable_job_wait()->set_hold_ms(100); };
  const auto job_kill = [](Envelope& e) { e.mutable_job_kill()->set_job(5); };
  const auto worker = [](Envelope& e) { e.mutable_worker_result()->set_result("x"); };
  return {
      {"fixed", put + read_rows(0, 5) + read_rows(1, 2, 2) + ask(kMayRead, bytes) + ask(kMayRead, length) +
                    ask(kMayRead, attach)},
      {"lines", put_lines + read_rows(0, 3) + read_rows(0, 2, 2) + ask(kMayRead, offsets) + ask(kMayRead, length)},
      {"write-again", write_rows(ten, 3, 2, rows.substr(0, 20)) + write_rows(ten, 0, 3, rows.substr(0, 30)) +
                          seal(ten, 5, 50) + seal(ten, 5, 50)},
      {"far", write_rows(ten, 1u << 30, 1, rows.substr(0, 10)) + seal(ten, 1, 10)},
      {"farther", write_rows(ten, std::uint64_t{1} << 58, 1, rows.substr(0, 10))},
      {"attach-new", ask(kMayCreate, attach_new) + write_rows(ten, 0, 5, rows) + seal(ten, 5, 50)},
      {"unsealed", write_rows(ten, 0, 5, rows) + restart + seal(ten, 5, 50)},
      {"power-cut", put + overwrite(1, 1, "0123456789") + crash + read_rows(0, 5)},
      {"overwrite", put + overwrite(0, 5, std::string(50, 'w')) + overwrite(2, 1, "ab", 3, 2) + manage(flush) +
                        restart + read_rows(0, 5)},
      {"overwrite-lines", put_lines + overwrite(0, 2, variable({"ONE\n", ""})) + crash + read_rows(0, 3)},
      {"append",
       put + reserve(2, 20) + append(5, 2, rows.substr(0, 20), 1, 5) + append_done(ticket, 1) + read_rows(0, 7)},
      {"append-lines", put_lines + reserve(1, 3) + append(3, 1, variable({"ab\n"}), 1, 3) + append_done(ticket, 1) +
                           crash + read_rows(0, 4)},
      {"append-late", put + reserve(2, 20) + append(5, 1, rows.substr(0, 10), 1, 5) + second + reserve(1, 10) +
                          append(5, 1, rows.substr(0, 10), 2, 5)},
      {"append-cancel", put + reserve(2, 20) + append(5, 1, rows.substr(0, 10), 1, 5) + append_cancel(ticket) +
                            reserve(1, 10) + append(5, 1, rows.substr(10, 10), 2, 5) + append_done(second_ticket, 2) +
                            read_rows(0, 6)},
      {"append-fill", write_rows(ten, 0, 2, rows.substr(0, 15)) + seal(ten, 2, 15) + settle(true) +
                          reserve(0, 9, true) + append(1, 1, "FILL", 1, 2, 5)},
      {"remove", put + settle(false) + read_rows(0, 1) + write_rows(ten, 0, 5, rows)},
      {"manage", put + manage(list) + manage(check) + manage(flush)},
      {"bad-rights", put + read_rows(0, 1, 0, 0) + read_rows(0, 1, 0, kGood | kOtherUser) +
                         read_rows(0, 1, 0, kGood | kExpired) + ask(kMayCreate, length)},
      {"zmq", put + read_rows(0, 1, 0, kGood, 1) + read_rows(0, 1, 0, kGood | kGoodCredential, 1)},
      {"jobs", ask(0, spawn) + ask(0, job_wait) + second + ask(0, job_kill) + ask(0, worker)},
      {"other-ops", ask(0, [](Envelope& e) { e.mutable_hello(); }) + ask(0, [](Envelope& e) { e.mutable_stats(); }) +
                        ask(0, [](Envelope& e) { e.mutable_stat(); })},
  };
}
