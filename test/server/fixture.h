// A server over a memory store, driven by hand (test/sim/by_hand.h). Everything on one thread:
// ask() hands requests over, lets the server take turns until it would wait, and looks at what it sent.
#pragma once

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pif/base/limits.h"
#include "pif/kv/memory_store.h"
#include "pif/net/calls.h"
#include "pif/server/server.h"
#include "pif/wire/convert.h"
#include "sim/by_hand.h"
#include "sim/faults.h"

namespace pif::server::testing {

using proto::Envelope;

// Keeps what is sent, as it is on a wire.
class FakeMessenger final : public sim::FakeMessenger {
 public:
  explicit FakeMessenger(sim::FakeClock& clock) : sim::FakeMessenger(clock) {
    on_send = [this](net::PeerId peer, const net::Packet& packet) {
      sent.emplace_back(peer, as_over_a_wire(packet.envelope));
    };
  }
  void deliver(net::PeerId peer, const Envelope& envelope) {
    net::Packet packet;
    packet.envelope = as_over_a_wire(envelope);
    sim::FakeMessenger::deliver(peer, std::move(packet));
  }
  // The peer that the server reaches at this Unix socket.
  net::PeerId at(const std::string& socket) {
    proto::Endpoints to;
    to.set_unix_path(socket);
    return connect(to, net::Route::kAuto).value();
  }
  Result<net::PeerId> connect(const proto::Endpoints& to, net::Route route) override {
    if (connect_error) return fail(*connect_error);
    return sim::FakeMessenger::connect(to, route);
  }
  Status send(net::PeerId peer, net::Packet packet) override {
    if (unreachable.contains(peer)) {  // as over ZeroMQ: who sends learns it, and then it is told
      close(peer);
      return fail(Code::kUnavailable, "the peer has closed the connection");
    }
    if (send_errors.empty()) return sim::FakeMessenger::send(peer, std::move(packet));
    Error error = std::move(send_errors.front());
    send_errors.pop_front();
    return fail(std::move(error));
  }
  Result<std::optional<net::Delivery>> receive(Time deadline) override {
    if (receives_until_error && (*receives_until_error)-- == 0) return fail(receive_error);
    return sim::FakeMessenger::receive(deadline);
  }
  // Replies that were looked at already; what the server asked LFSs stays.
  void forget_replies() {
    std::erase_if(sent, [](const auto& one) { return !one.second.has_settle(); });
  }

  std::vector<std::pair<net::PeerId, Envelope>> sent;
  std::optional<Error> connect_error;
  std::deque<Error> send_errors;  // of the next ones
  std::set<net::PeerId> unreachable;
  std::optional<unsigned> receives_until_error;
  Error receive_error;

 private:
  static Envelope as_over_a_wire(const Envelope& envelope) {
    Envelope wire;
    wire.ParseFromString(envelope.SerializeAsString());
    return wire;
  }
};

// Fails what it is told to fail.
class FaultyStore final : public kv::Store {
 public:
  explicit FaultyStore(std::unique_ptr<kv::Store> store) : store_(std::move(store)) {}
  Result<std::unique_ptr<kv::Transaction>> read() override { return wrapped(store_->read()); }
  Result<std::unique_ptr<kv::Transaction>> write() override { return wrapped(store_->write()); }
  unsigned commits = 0;
  unsigned gets = 0;
  unsigned commits_to_fail = 0;
  bool fails_to_count = false;
  std::optional<unsigned> puts_until_failure;

 private:
  class Faulty final : public kv::Transaction {
   public:
    Faulty(FaultyStore& store, std::unique_ptr<kv::Transaction> txn) : store_(store), txn_(std::move(txn)) {}
    Result<std::optional<std::string_view>> get(kv::Table t, std::string_view k) override {
      ++store_.gets;
      return txn_->get(t, k);
    }
    Status put(kv::Table t, std::string_view k, std::string_view v) override {
      if (store_.puts_until_failure && (*store_.puts_until_failure)-- == 0) {
        store_.puts_until_failure.reset();
        return fail(Code::kNoSpace, "the disk is full");
      }
      return txn_->put(t, k, v);
    }
    Status erase(kv::Table t, std::string_view k) override { return txn_->erase(t, k); }
    Status scan(kv::Table t, std::string_view f,
                const std::function<bool(std::string_view, std::string_view)>& v) override {
      return txn_->scan(t, f, v);
    }
    Result<std::uint64_t> count(kv::Table t) override {
      if (store_.fails_to_count) return fail(Code::kIo, "the disk failed to count");
      return txn_->count(t);
    }
    Status commit() override {
      ++store_.commits;
      if (store_.commits_to_fail == 0) return txn_->commit();
      --store_.commits_to_fail;
      return fail(Code::kIo, "the disk failed the commit");
    }

   private:
    FaultyStore& store_;
    std::unique_ptr<kv::Transaction> txn_;
  };
  Result<std::unique_ptr<kv::Transaction>> wrapped(Result<std::unique_ptr<kv::Transaction>> txn) {
    if (!txn) return txn;
    return std::unique_ptr<kv::Transaction>(std::make_unique<Faulty>(*this, std::move(*txn)));
  }

  std::unique_ptr<kv::Store> store_;
};

class World {
 public:
  explicit World(std::uint32_t lfss = 4, std::uint32_t default_bevy = 0) : lfss_(lfss), default_bevy_(default_bevy) {
    for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(i);
    make();
    start();
    heartbeats();
  }
  // As `pif up` of a new file system makes it. Its LFSs need not be waited for: none knows more than the directory.
  void make() {
    const auto raw = kv::open_memory(state);
    REQUIRE(make_directory(*raw, {cluster, ""}, 500, clock.wall_seconds()));
  }

  // (Re)starts the server as after a kill: all that was not committed is gone, connections too.
  void start() {
    server.reset();
    messenger = std::make_unique<FakeMessenger>(clock);
    lfs_peers_.clear();
    store = std::make_unique<FaultyStore>(
        sim::make_faulty_store("directory", kv::open_memory(state), faults, [] { return false; }));
    server = std::make_unique<Server>(Config{.cluster = cluster,
                                             .key = key,
                                             .owner_uid = 500,
                                             .default_bevy = default_bevy_,
                                             .declares_lost = declares_lost,
                                             .gather_max = gather_max,
                                             .host = host,
                                             .changed_description = [this] { return std::exchange(changed, {}); }},
                                      pif::server::World{*messenger, *store, entropy});
    REQUIRE(server->open());
  }
  // Lets the server go on until it waits.
  void run() {
    messenger->idle() = false;
    REQUIRE(server->serve(messenger->idle()));
  }
  void advance(int seconds) {
    clock.advance(std::chrono::seconds(seconds));
    run();
  }
  // The same in small steps, with heartbeats.
  void live(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock.advance(std::chrono::seconds(1));
      heartbeats();
    }
  }
  std::string manage() const {
    return mint(key, Capability{.uid = 500, .rights = kMayManage, .expiry = clock.wall_seconds() + 100});
  }
  Envelope heartbeat(std::uint32_t id) const {
    Envelope request;
    request.set_version(kProtocolVersion);
    request.set_id(1);
    request.set_capability(manage());
    proto::NodeInfo& node = *request.mutable_heartbeat()->mutable_node();
    node.set_id(id);
    node.set_name("lfs" + std::to_string(id - 1));
    node.mutable_endpoints()->set_unix_path("sock" + std::to_string(id));
    node.set_bytes_free(1000);
    return request;
  }
  net::PeerId lfs_peer(std::uint32_t id) {
    auto& peer = lfs_peers_[id];
    if (peer == 0)
      peer = messenger->add({.via = net::Identity::Via::kUnix, .has_uid = true, .uid = 500, .gids = {500}});
    return peer;
  }
  void heartbeats() {
    for (std::uint32_t id = 1; id <= lfss_; ++id) messenger->deliver(lfs_peer(id), heartbeat(id));
    run();
  }
  // The reply to a request that was handed over (or nothing yet).
  std::optional<Envelope> reply(net::PeerId peer, std::uint64_t id, bool working = false) {
    for (auto& [to, envelope] : messenger->sent) {
      if (to == peer && envelope.id() == id && envelope.working() == working) return envelope;
    }
    return std::nullopt;
  }
  // Settle requests sent to LFSs and not answered yet; answers those of `answering`.
  std::map<std::uint32_t, std::vector<proto::Settle>> settles(const std::vector<std::uint32_t>& answering) {
    std::map<std::uint32_t, std::vector<proto::Settle>> all;
    for (bool any = true; any;) {
      any = false;
      for (auto& [peer, envelope] : std::exchange(messenger->sent, {})) {
        if (!envelope.has_settle()) continue;
        for (std::uint32_t id = 1; id <= lfss_; ++id) {
          if (messenger->at("sock" + std::to_string(id)) != peer) continue;
          all[id].push_back(envelope.settle());
          if (std::find(answering.begin(), answering.end(), id) == answering.end()) continue;
          Envelope answer;
          answer.set_version(kProtocolVersion);
          answer.set_id(envelope.id());
          answer.mutable_settle_reply();
          messenger->deliver(peer, answer);
          any = true;
        }
      }
      run();
    }
    return all;
  }

  const std::string cluster = "c1";
  ClusterKey key;
  sim::FakeClock clock;
  sim::CountingEntropy entropy;
  std::shared_ptr<sim::Faults> faults = std::make_shared<sim::Faults>();  // which calls of the directory fail
  Duration gather_max = Duration::zero();
  bool declares_lost = false;
  std::string host;                    // where the server runs
  std::optional<Description> changed;  // of several hosts: a newer one, not looked at yet
  std::shared_ptr<kv::MemoryState> state = kv::make_memory_state(static_cast<unsigned>(kDirectoryTables.size()));
  std::unique_ptr<FakeMessenger> messenger;
  std::unique_ptr<FaultyStore> store;
  std::unique_ptr<Server> server;

 private:
  std::uint32_t lfss_;
  std::uint32_t default_bevy_;
  std::map<std::uint32_t, net::PeerId> lfs_peers_;
};

// One program that asks.
class Client {
 public:
  explicit Client(World& world, std::uint32_t uid = 500, std::vector<std::uint32_t> gids = {},
                  net::Identity::Via via = net::Identity::Via::kUnix)
      : world_(world), identity_{.via = via, .has_uid = true, .uid = uid, .gids = std::move(gids)} {
    if (identity_.gids.empty()) identity_.gids = {uid};
    connect();
  }
  // A connection, and Hello with the credential we have.
  void connect() {
    peer_ = world_.messenger->add(identity_);
    Envelope request;
    request.mutable_hello()->set_program("prog" + std::to_string(identity_.uid));
    const auto hello = ask(request);
    REQUIRE(hello);
    credential_ = hello->hello_reply().credential();
    session_ = hello->hello_reply().session();
  }
  void close() {
    world_.messenger->close(peer_);
    world_.run();
  }
  std::uint64_t session() const { return session_; }
  net::PeerId peer() const { return peer_; }
  const std::string& credential() const { return credential_; }

  // Hands a request over without letting the server run.
  std::uint64_t post(Envelope request, std::uint64_t id = 0) {
    request.set_version(kProtocolVersion);
    request.set_id(id != 0 ? id : ++last_id_);
    request.set_credential(credential_);
    world_.messenger->deliver(peer_, request);
    return request.id();
  }
  Result<Envelope> answer(std::uint64_t id) {
    auto reply = world_.reply(peer_, id);
    if (!reply) return fail(Code::kTimeout, "no reply");
    if (reply->has_error()) return fail(wire::error_of(reply->error()));
    return std::move(*reply);
  }
  Result<Envelope> ask(const Envelope& request, std::uint64_t id = 0) {
    world_.messenger->forget_replies();
    const std::uint64_t used = post(request, id);
    world_.run();
    return answer(used);
  }

  static Envelope create_request(const std::string& path, bool empty = false, std::uint32_t width = 0) {
    Envelope request;
    proto::Create& create = *request.mutable_create();
    create.set_path(path);
    create.mutable_format()->set_kind(1);
    create.mutable_format()->set_record_length(100);
    create.set_width(width);
    create.set_mode(0644);
    create.set_empty(empty);
    return request;
  }
  static Envelope commit_request(std::uint64_t file, std::uint64_t records = 10) {
    Envelope request;
    request.mutable_commit()->set_file(file);
    request.mutable_commit()->mutable_file_length()->set_records(records);
    request.mutable_commit()->mutable_file_length()->set_bytes(records * 100);
    return request;
  }
  static Envelope remove_request(const std::vector<std::string>& paths, bool recursive = false) {
    Envelope request;
    for (const auto& path : paths) request.mutable_remove()->add_paths(path);
    request.mutable_remove()->set_recursive(recursive);
    return request;
  }
  static Envelope folder_request(const std::string& path, bool parents = false, std::uint32_t mode = 0755) {
    Envelope request;
    request.mutable_make_folder()->set_path(path);
    request.mutable_make_folder()->set_parents(parents);
    request.mutable_make_folder()->set_mode(mode);
    return request;
  }
  static Envelope rename_request(const std::string& from, const std::string& to, bool no_replace = false) {
    Envelope request;
    request.mutable_rename()->set_from(from);
    request.mutable_rename()->set_to(to);
    request.mutable_rename()->set_no_replace(no_replace);
    return request;
  }

  Result<proto::CreateReply> create(const std::string& path, bool empty = false) {
    auto reply = ask(create_request(path, empty));
    if (!reply) return fail(reply.error());
    return reply->create_reply();
  }
  // A committed file with records; its id.
  std::uint64_t put(const std::string& path, std::uint64_t records = 10) {
    const auto made = create(path);
    REQUIRE(made);
    REQUIRE(ask(commit_request(made->file(), records)));
    return made->file();
  }
  Result<Envelope> mkdir(const std::string& path, bool parents = false, std::uint32_t mode = 0755) {
    return ask(folder_request(path, parents, mode));
  }
  Result<Envelope> rename(const std::string& from, const std::string& to, bool no_replace = false) {
    return ask(rename_request(from, to, no_replace));
  }
  static Result<proto::StatResults> results_of(const Envelope& reply) {
    proto::StatResults results;
    if (!results.ParseFromString(reply.stat_reply().results())) return fail(Code::kCorrupt, "no message");
    return results;
  }
  Result<proto::EntryInfo> stat(const std::string& path) {
    Envelope request;
    request.mutable_stat()->add_paths(path);
    auto reply = ask(request);
    if (!reply) return fail(reply.error());
    const auto results = results_of(*reply);
    if (!results) return fail(results.error());
    const auto& one = results->results(0);
    if (one.has_error()) return fail(wire::error_of(one.error()));
    return one.entry();
  }
  bool exists(const std::string& path) { return stat(path).has_value(); }
  Code remove(const std::string& path, bool recursive = false) {
    const auto reply = ask(remove_request({path}, recursive));
    if (!reply) return reply.error().code;
    return static_cast<Code>(reply->remove_reply().errors(0).code());
  }
  struct Page {
    google::protobuf::RepeatedPtrField<proto::EntryInfo> entries;
    bool more;
    std::size_t bytes;  // of the reply
  };
  Result<Page> list(const std::string& path, const std::string& after = {}, std::uint32_t limit = 0,
                    bool names_only = false) {
    Envelope request;
    request.mutable_list()->set_path(path);
    request.mutable_list()->set_after(after);
    request.mutable_list()->set_limit(limit);
    request.mutable_list()->set_names_only(names_only);
    auto reply = ask(request);
    if (!reply) return fail(reply.error());
    proto::EntryList list;
    if (!list.ParseFromString(reply->list_reply().entries())) return fail(Code::kCorrupt, "no message");
    return Page{std::move(*list.mutable_entries()), reply->list_reply().more(), reply->list_reply().ByteSizeLong()};
  }
  Result<proto::OpenReply> open(const std::string& path, std::uint32_t rights = kMayRead, bool hold = false) {
    Envelope request;
    request.mutable_open()->set_path(path);
    request.mutable_open()->set_rights(rights);
    request.mutable_open()->set_hold(hold);
    auto reply = ask(request);
    if (!reply) return fail(reply.error());
    return reply->open_reply();
  }
  Result<proto::OpenReply> reopen(std::uint64_t file, std::uint32_t rights = kMayRead) {
    Envelope request;
    request.mutable_open()->set_file(file);
    request.mutable_open()->set_rights(rights);
    auto reply = ask(request);
    if (!reply) return fail(reply.error());
    return reply->open_reply();
  }
  void close_file(std::uint64_t file) {
    Envelope request;
    request.mutable_close()->add_files(file);
    REQUIRE(ask(request));
  }
  std::string renew(std::uint64_t file, bool held = false) {
    Envelope request;
    request.mutable_renew()->add_files(file);
    if (held) request.mutable_renew()->add_held(file);
    const auto reply = ask(request);
    REQUIRE(reply);
    return reply->renew_reply().capabilities(0);
  }
  proto::NodesReply nodes() {
    Envelope request;
    request.mutable_nodes();
    const auto reply = ask(request);
    REQUIRE(reply);
    return reply->nodes_reply();
  }

 private:
  World& world_;
  net::Identity identity_;
  net::PeerId peer_ = 0;
  std::string credential_;
  std::uint64_t session_ = 0;
  std::uint64_t last_id_ = 0;
};

// The directory is sound: nothing that `pif-server check` would find.
inline void require_sound(World& world) {
  const auto report = check_directory(*world.store);
  REQUIRE(report);
  CHECK(report->damages == std::vector<std::string>{});
}

}  // namespace pif::server::testing
