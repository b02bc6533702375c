// Every operation of the PIF Server: requests of several users, repeated, interleaved with closed connections, passing
// time and restarts, to the real server over a directory in memory. Afterwards the directory must be whole.
#include <array>
#include <memory>

#include <spdlog/spdlog.h>

#include "daemon.h"
#include "pif/kv/memory_store.h"
#include "pif/server/server.h"

namespace {

using namespace pif;
using fuzz::must;
using proto::Envelope;

constexpr std::array<std::uint32_t, 4> kUids = {500, 1000, 1001, 0};  // the owner, two users, root
constexpr std::uint32_t kLfss = 4;
constexpr int kStepsMax = 24;

class World {
 public:
  explicit World(std::shared_ptr<kv::MemoryState> directory) : state_(std::move(directory)) {
    start();
    for (std::uint32_t id = 1; id <= kLfss; ++id) heartbeat(id);
    run();
  }

  void step(fuzz::Input& in) {
    const unsigned what = in.byte();
    const unsigned peer = what >> 4 & 7;
    switch (what & 15) {
      case 10: clock_.advance(std::chrono::seconds(in.byte())); break;
      case 11: messenger_->close(peers_[peer]), add_peer(peer); break;
      case 12: start(); break;
      case 13: heartbeat(in.byte() % 8); break;
      case 14: settle_ = !settle_; break;
      default: request(peer, fuzz::take_request(in));
    }
    if ((what & 0x80) == 0) run();  // else with what comes next, in one turn
  }

  void finish() {
    run();
    server_.reset();
    const auto store = kv::open_memory(state_);
    const auto report = server::check_directory(*store);
    must(report.has_value(), "the directory can be checked");
    for (const auto& damage : report->damages) std::fprintf(stderr, "damage: %s\n", damage.c_str());
    must(report->damages.empty(), "the directory is whole");
  }

 private:
  void start() {
    server_.reset();
    answers_.clear();
    messenger_ = std::make_unique<fuzz::FakeMessenger>(clock_);
    messenger_->on_send = [this](net::PeerId peer, const net::Packet& packet) { sent(peer, packet.envelope); };
    for (unsigned peer = 0; peer < peers_.size(); ++peer) add_peer(peer);
    lfs_ = messenger_->add({.via = net::Identity::Via::kUnix, .has_uid = true, .uid = 500, .gids = {500}});
    store_ = kv::open_memory(state_);
    server_ = std::make_unique<server::Server>(server::Config{.cluster = "c1", .key = key_, .owner_uid = 500},
                                               server::World{*messenger_, *store_, entropy_});
    must(server_->open().has_value(), "a server opens what a server wrote");
  }
  // Even ones over Unix sockets, odd ones over ipc, where only a credential says who asks.
  void add_peer(unsigned peer) {
    const std::uint32_t uid = kUids[peer / 2];
    const bool local = peer % 2 == 0;
    net::Identity identity{.via = local ? net::Identity::Via::kUnix : net::Identity::Via::kIpc, .has_uid = local};
    if (local) identity.uid = uid, identity.gids = {uid};
    peers_[peer] = messenger_->add(identity);
  }
  void request(unsigned peer, const fuzz::Request& asked) {
    const std::uint32_t uid = kUids[peer / 2];
    auto packet = fuzz::packet_of(asked, key_, uid, clock_.wall_seconds(), ++last_id_);
    if (!packet) return;
    if (!net::is_reply(packet->envelope)) answers_.asked(peers_[peer], packet->envelope.id());
    messenger_->deliver(peers_[peer], std::move(*packet));
  }
  void heartbeat(std::uint32_t id) {
    net::Packet packet;
    packet.envelope.set_version(kProtocolVersion);
    packet.envelope.set_id(++last_id_);
    packet.envelope.set_capability(mint(key_, Capability{.rights = kMayManage, .expiry = clock_.wall_seconds() + 100}));
    proto::NodeInfo& node = *packet.envelope.mutable_heartbeat()->mutable_node();
    node.set_id(id);
    node.set_name("lfs" + std::to_string(id));
    node.mutable_endpoints()->set_unix_path("sock" + std::to_string(id));
    answers_.asked(lfs_, last_id_);
    messenger_->deliver(lfs_, std::move(packet));
  }
  void run() {
    messenger_->idle() = false;
    must(server_->serve(messenger_->idle()).has_value(), "no request ends the server");
  }
  void sent(net::PeerId peer, const Envelope& envelope) {
    if (!envelope.has_settle()) return answers_.sent(peer, envelope);
    if (!settle_) return;
    net::Packet answer = net::reply_to(envelope);
    answer.envelope.mutable_settle_reply();
    messenger_->deliver(peer, std::move(answer));
  }

  const ClusterKey key_ = fuzz::test_key();
  fuzz::FakeClock clock_;
  fuzz::CountingEntropy entropy_;
  const std::shared_ptr<kv::MemoryState> state_;
  std::unique_ptr<fuzz::FakeMessenger> messenger_;
  std::unique_ptr<kv::Store> store_;
  std::unique_ptr<server::Server> server_;
  fuzz::Answers answers_;
  std::array<net::PeerId, 8> peers_{};
  net::PeerId lfs_ = 0;
  std::uint64_t last_id_ = 1000;
  bool settle_ = true;
};

// As a new server leaves it, made once.
const kv::MemoryState& new_directory() {
  static const auto made = [] {
    auto state = kv::make_memory_state(static_cast<unsigned>(server::kDirectoryTables.size()));
    must(server::make_directory(*kv::open_memory(state), {"c1", ""}, 500, 0).has_value(), "a directory is made");
    World{state};
    return state;
  }();
  return *made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input in(data, size);
  World world(kv::copy_memory_state(new_directory()));
  for (int i = 0; i < kStepsMax && !in.empty(); ++i) world.step(in);
  world.finish();
  return 0;
}

namespace {

using Fill = std::function<void(Envelope&)>;

std::string ask(unsigned peer, const Fill& fill, unsigned flags = 0) {
  Envelope envelope;
  fill(envelope);
  return fuzz::request_step(peer << 4, flags, 0, 0, envelope);
}
std::string hello(unsigned peer) {
  return ask(peer, [](Envelope& e) { e.mutable_hello()->set_program("p"); });
}

std::string create(const char* path, bool empty = false) {
  return ask(0, [=](Envelope& e) {
    e.mutable_create()->set_path(path);
    e.mutable_create()->mutable_format()->set_kind(1);
    e.mutable_create()->mutable_format()->set_record_length(100);
    e.mutable_create()->set_mode(0644);
    e.mutable_create()->set_empty(empty);
  });
}
std::string commit(std::uint64_t file) {
  return ask(0, [=](Envelope& e) {
    e.mutable_commit()->set_file(file);
    e.mutable_commit()->mutable_file_length()->set_records(10);
    e.mutable_commit()->mutable_file_length()->set_bytes(1000);
  });
}
std::string folder(const char* path, bool parents = true) {
  return ask(0, [=](Envelope& e) {
    e.mutable_make_folder()->set_path(path);
    e.mutable_make_folder()->set_mode(0755);
    e.mutable_make_folder()->set_parents(parents);
  });
}
std::string move_name(const char* from, const char* to) {
  return ask(0, [=](Envelope& e) { e.mutable_rename()->set_from(from), e.mutable_rename()->set_to(to); });
}
std::string remove_name(const char* path, bool recursive) {
  return ask(0,
             [=](Envelope& e) { e.mutable_remove()->add_paths(path), e.mutable_remove()->set_recursive(recursive); });
}
std::string open_file(unsigned peer, const char* path, std::uint32_t rights, bool hold) {
  return ask(peer, [=](Envelope& e) {
    e.mutable_open()->set_path(path);
    e.mutable_open()->set_rights(rights);
    e.mutable_open()->set_hold(hold);
  });
}
std::string attributes(const char* path) {
  return ask(0, [=](Envelope& e) {
    e.mutable_set_attributes()->set_path(path);
    e.mutable_set_attributes()->set_mode(0600);
    (*e.mutable_set_attributes()->mutable_named())["header"] = "bytes";
  });
}
std::string look(const char* path) {
  return ask(0, [=](Envelope& e) { e.mutable_stat()->add_paths(path), e.mutable_stat()->add_paths("/"); }) +
         ask(0, [=](Envelope& e) { e.mutable_list()->set_path(path), e.mutable_list()->set_limit(2); }) +
         ask(0, [](Envelope& e) { e.mutable_nodes(); }) + ask(0, [](Envelope& e) { e.mutable_list_files(); }) +
         ask(0, [](Envelope& e) { e.mutable_stats(); });
}
std::string managed(const Fill& fill) { return ask(0, fill, fuzz::kGoodCapability | fuzz::kAnyFile); }

}  // namespace

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  const std::string restart = Output().byte(12).str();
  const std::string minute = Output().byte(10).byte(61).str();
  const std::string closed = Output().byte(11).str();
  const std::string put = hello(0) + create("/a") + commit(2);
  const auto wait = [](Envelope& e) { e.mutable_nodes()->set_wait_up(9), e.set_timeout_ms(3000); };
  const auto states = [](Envelope& e) { e.mutable_file_states()->add_files(2), e.mutable_file_states()->add_files(3); };
  const auto renew = [](Envelope& e) { e.mutable_renew()->add_files(2), e.mutable_renew()->add_files(9); };
  const auto shut = [](Envelope& e) {
    e.mutable_close()->add_files(2), e.mutable_close()->mutable_file_length()->set_records(11);
  };
  return {
      {"look", put + folder("/d/e") + look("/") + look("/d")},
      {"commit-again", put + commit(2) + create("/a") + commit(3) + restart + commit(3)},
      {"empty", hello(0) + create("/a", true) + create("/a", true) + remove_name("/a", false)},
      {"abort",
       hello(0) + create("/a") + ask(0, [](Envelope& e) { e.mutable_abort()->set_file(2); }) + restart + minute},
      {"rename", put + folder("/d") + move_name("/a", "/d/b") + move_name("/d", "/d/e") + move_name("/d", "/f") +
                     move_name("/f/b", "/a")},
      {"remove", put + folder("/d/e/f") + create("/d/x", true) + remove_name("/d", false) + remove_name("/d", true) +
                     remove_name("/a", false)},
      {"open", put + open_file(0, "/a", 1, true) + hello(2) + open_file(2, "/a", 2, false) + ask(0, renew) +
                   ask(0, shut) + minute},
      {"open-removed", put + open_file(0, "/a", 1, false) + remove_name("/a", false) + ask(0, renew) + closed + minute},
      {"attributes", put + attributes("/a") + attributes("/") + look("/a")},
      {"creator-gone", hello(0) + create("/a") + closed + minute + look("/")},
      {"creator-back", hello(0) + create("/a") + restart + hello(0) + minute + look("/")},
      {"wait", hello(0) + ask(0, wait) + minute},
      {"manage",
       put + managed(states) + managed([](Envelope& e) { e.mutable_heartbeat()->mutable_node()->set_id(3); })},
      {"zmq", ask(
                  3, [](Envelope& e) { e.mutable_hello(); }, kGoodCredential) +
                  ask(
                      3, [](Envelope& e) { e.mutable_list()->set_path("/"); }, kGoodCredential)},
      {"foreign", put +
                      ask(
                          4, [](Envelope& e) { e.mutable_hello(); }, kGoodCredential | kOtherUser) +
                      open_file(4, "/a", 2, false)},
      {"unknown-op", ask(0, [](Envelope& e) { e.mutable_read(); }) + ask(0, [](Envelope& e) { e.mutable_done(); })},
  };
}
