// One real LFS over a disk and a catalogue in memory, driven by the steps of an input: what the targets that run one
// have in common. An input is a list of steps (a byte each, then what the step takes): requests of several users, over
// Unix sockets and ZeroMQ, closed connections, passing time, restarts, power cuts.
#pragma once

#include <array>
#include <memory>

#include "daemon.h"
#include "pif/component/component.h"
#include "pif/component/memory_storage.h"
#include "pif/kv/memory_store.h"
#include "pif/lfs/lfs.h"

namespace pif::fuzz {

class NoSpawner final : public lfs::Spawner {
 public:
  Result<Started> start(const Order&) override { return fail(Code::kUnsupported, "no workers here"); }
  void kill(ProcessId) override {}
  std::optional<lfs::WorkerExit> exited(ProcessId) override { return std::nullopt; }
};

inline constexpr const char* kRoot = "/lfs0";

inline lfs::Config lfs_config() {
  lfs::Config config;
  config.node = 1;
  config.name = "lfs0";
  config.cluster = "c1";
  config.root = kRoot;
  config.key = test_key();
  config.log_bytes = 64u << 10;
  return config;
}

// What an LFS keeps: its disk and its catalogue.
struct Root {
  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::shared_ptr<kv::MemoryState> catalogue =
      kv::make_memory_state(static_cast<unsigned>(lfs::kCatalogueTables.size()));
  Root copy() const { return {disk->copy(), kv::copy_memory_state(*catalogue)}; }
};

// Steps by their low four bits; all others are requests. The next two bits: which peer's.
enum Step : unsigned { kPassTime = 10, kClosePeer = 11, kRestart = 12, kPowerCut = 13 };
inline constexpr unsigned kStepMask = 15;
inline constexpr unsigned kPeerShift = 4;
inline constexpr unsigned kNotYet = 0x80;  // flag: the LFS gets it together with the next step

// Whom the LFS talks to.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // A user asks, with the flags of his step. The packet may still be changed.
  virtual void on_request(net::PeerId, net::Packet&, unsigned /*flags*/) {}
  // He is answered.
  virtual void on_answer(net::PeerId, const proto::Envelope&) {}
  // The LFS asks others. Who answers, does so through the messenger.
  virtual void on_ask(net::PeerId, const net::Packet&) {}
  // It is started (again), and has this messenger from now on.
  virtual void on_start(FakeMessenger&) {}
};

class LfsWorld {
 public:
  // surroundings: outlive it.
  LfsWorld(Root root, Surroundings& surroundings, lfs::Config config = lfs_config())
      : config_(std::move(config)), surroundings_(surroundings), root_(std::move(root)) {
    root_.disk->set_capacity(kDiskBytes);
    const auto storage = component::make_memory_storage(root_.disk);
    const auto catalogue = kv::open_memory(root_.catalogue);
    must(lfs::make_root(*storage, *catalogue, kRoot, {config_.cluster, config_.node, config_.name, ""}).has_value(),
         "a root is made");
    watch();
    start();
    touched_ = false;
  }

  // `what`: the step's byte.
  void step(unsigned what, Input& in) {
    const unsigned peer = what >> kPeerShift & 3;
    switch (what & kStepMask) {
      case kPassTime: clock_.advance(std::chrono::milliseconds(100) * in.byte()); break;
      case kClosePeer: messenger_->close(peers_[peer]), add_peer(peer); break;
      case kRestart: start(); break;
      case kPowerCut: crash(); break;
      default: request(peer, take_request(in));
    }
  }
  void run() {
    messenger_->idle() = false;
    must(lfs_->serve(messenger_->idle()).has_value(), "no request ends the LFS");
  }
  // What is wrong with the root in the end. Nothing: it is as every execution finds it.
  std::vector<std::string> finish() {
    run();
    lfs_.reset();
    storage_.reset();
    if (!touched_) return {};
    const auto storage = component::make_memory_storage(root_.disk);
    const auto catalogue = kv::open_memory(root_.catalogue);
    start();  // what died while it was written is removed by the next start
    const auto report = lfs::check_root(*storage, *catalogue, kRoot, true);
    must(report.has_value(), "the root can be checked");
    return report->damages;
  }

 private:
  static constexpr std::uint64_t kDiskBytes = 8u << 20;
  static constexpr std::array<std::uint32_t, 2> kUids = {1000, 0};

  void watch() {
    root_.disk->set_fault([this](std::string_view call, std::string_view) {
      touched_ = touched_ || call != "space";
      return Code::kOk;
    });
  }
  void start() {
    const bool touched = touched_;
    lfs_.reset();
    answers_.clear();
    messenger_ = std::make_unique<FakeMessenger>(clock_);
    messenger_->on_send = [this](net::PeerId peer, const net::Packet& packet) { sent(peer, packet); };
    for (unsigned peer = 0; peer < peers_.size(); ++peer) add_peer(peer);
    surroundings_.on_start(*messenger_);
    storage_ = component::make_memory_storage(root_.disk);
    catalogue_ = kv::open_memory(root_.catalogue);
    lfs_ = std::make_unique<lfs::Lfs>(config_,
                                      lfs::World{*messenger_, *storage_, *catalogue_, executor_, spawner_, entropy_});
    must(lfs_->open().has_value(), "an LFS opens what an LFS wrote");
    touched_ = touched;  // to start changes nothing
  }
  void crash() {
    root_.disk->set_fault([](std::string_view, std::string_view) { return Code::kIo; });  // nothing is tidied up
    lfs_.reset();
    watch();
    root_.disk->crash();
    start();
  }
  void add_peer(unsigned peer) {
    const bool local = peer % 2 == 0;
    net::Identity identity{.via = local ? net::Identity::Via::kUnix : net::Identity::Via::kIpc, .has_uid = local};
    if (local) identity.uid = kUids[peer / 2], identity.gids = {identity.uid};
    peers_[peer] = messenger_->add(identity);
  }
  void request(unsigned peer, const Request& asked) {
    auto packet = packet_of(asked, config_.key.signing(), kUids[peer / 2], clock_.wall_seconds(), ++last_id_);
    if (!packet) return;
    if (!net::is_reply(packet->envelope)) answers_.asked(peers_[peer], packet->envelope.id());
    surroundings_.on_request(peers_[peer], *packet, asked.flags);
    messenger_->deliver(peers_[peer], std::move(*packet));
  }
  void sent(net::PeerId peer, const net::Packet& packet) {
    if (!net::is_reply(packet.envelope)) return surroundings_.on_ask(peer, packet);
    answers_.sent(peer, packet.envelope);
    surroundings_.on_answer(peer, packet.envelope);
  }

  const lfs::Config config_;
  Surroundings& surroundings_;
  FakeClock clock_;
  CountingEntropy entropy_;
  InlineExecutor executor_;
  NoSpawner spawner_;
  const Root root_;
  bool touched_ = false;  // by anything but a start
  std::unique_ptr<FakeMessenger> messenger_;
  std::unique_ptr<component::Storage> storage_;
  std::unique_ptr<kv::Store> catalogue_;
  std::unique_ptr<lfs::Lfs> lfs_;
  Answers answers_;
  std::array<net::PeerId, 4> peers_{};
  std::uint64_t last_id_ = 1000;
};

// A new LFS's, made once.
inline const Root& new_root() {
  static const Root made = [] {
    Root root;
    Surroundings nobody;
    const LfsWorld maker(root, nobody);
    return root.copy();
  }();
  return made;
}

// ---- for seeds ----

using Fill = std::function<void(proto::Envelope&)>;

inline void set_file_length(proto::FileLength& file_length, std::uint64_t records, std::uint64_t bytes) {
  file_length.set_records(records);
  file_length.set_bytes(bytes);
}

// Lengths, then rows, as bodies of variable records have them.
inline std::string variable(const std::vector<std::string>& rows) {
  std::string lengths;
  std::string data;
  for (const auto& row : rows) {
    lengths += Output().word(static_cast<unsigned>(row.size())).word(0).str();
    data += row;
  }
  return lengths + data;
}

inline std::string restart_step() { return Output().byte(kRestart).str(); }
inline std::string power_cut_step() { return Output().byte(kPowerCut).str(); }
inline std::string time_step(unsigned tenths) { return Output().byte(kPassTime).byte(tenths).str(); }

}  // namespace pif::fuzz
