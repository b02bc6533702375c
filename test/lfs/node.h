// One LFS in the simulated world, over a disk and a catalogue that outlive it, and a peer that talks to it in messages.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "pif/component/component.h"
#include "pif/component/memory_storage.h"
#include "pif/kv/memory_store.h"
#include "pif/lfs/lfs.h"
#include "pif/net/caller.h"
#include "sim/faults.h"
#include "sim/world.h"

namespace pif::lfs::test {

inline const std::string kRoot = "/lfs0";
inline constexpr std::uint32_t kNode = 1;

class NoSpawner final : public Spawner {
 public:
  Result<Started> start(const Order&) override { return fail(Code::kUnsupported, "no workers here"); }
  void kill(ProcessId) override {}
  std::optional<WorkerExit> exited(ProcessId) override { return std::nullopt; }
};

class Node {
 public:
  explicit Node(sim::World& world, std::string name = "lfs0", std::uint32_t id = kNode)
      : world_(world), name_(std::move(name)), id_(id) {
    for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(i);
  }
  ~Node() { kill(); }

  void start() {
    if (!made_) make();
    actor_ = world_.spawn(name_, [this](sim::Actor& self) { run(self); }, {0, {0}});
  }
  void kill() {
    if (!actor_ || !world_.is_alive(*actor_)) return;
    disk->set_fault([](std::string_view, std::string_view) { return Code::kIo; });
    world_.kill(*actor_);
    disk->set_fault({});
  }
  // Power loss.
  void crash() {
    kill();
    disk->crash();
  }
  void restart() {
    kill();
    start();
  }
  // The next start makes a root on what is an empty disk.
  void forget_root() { made_ = false; }
  Result<CheckReport> check(bool sums = true) {
    const auto storage = component::make_memory_storage(disk);
    const auto store = kv::open_memory(catalogue);
    return check_root(*storage, *store, root(), sums);
  }
  std::string root() const { return "/" + name_; }
  const std::string& name() const { return name_; }
  std::uint32_t id() const { return id_; }

  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::shared_ptr<sim::Faults> faults =
      std::make_shared<sim::Faults>();  // of the catalogue; of the disk if it is set_fault
  std::shared_ptr<kv::MemoryState> catalogue = kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size()));
  ClusterKey key;
  std::uint64_t log_bytes = 1u << 20;
  proto::Endpoints server;
  std::vector<proto::NodeInfo> peers;
  std::function<void(Config&)> adjust;  // besides
  Executor* executor = nullptr;         // null: the actor's
  std::optional<Error> open_error;

 private:
  // The root, as `pif up` of a new file system makes it.
  void make() {
    const auto storage = component::make_memory_storage(disk);
    const auto store = kv::open_memory(catalogue);
    REQUIRE(make_root(*storage, *store, root(), {"c0ffee", id_, name_, ""}));
    made_ = true;
  }
  void run(sim::Actor& self) {
    const auto storage = component::make_memory_storage(disk);
    const auto store = sim::make_faulty_store("catalogue", kv::open_memory(catalogue), faults, [] { return false; });
    NoSpawner spawner;
    Config config;
    config.node = id_;
    config.name = name_;
    config.cluster = "c0ffee";
    config.root = root();
    config.key = key;
    config.server = server;
    config.peers = peers;
    config.log_bytes = log_bytes;
    if (adjust) adjust(config);
    Executor& works = executor != nullptr ? *executor : self.executor();
    Lfs lfs(
        std::move(config),
        World{
            self.messenger(), *storage, *store, works, spawner, self.entropy(), {}, nullptr, [this](std::size_t count) {
              return world_.pick(count);
            }});
    if (auto opened = lfs.open(); !opened) {
      open_error = opened.error();
      return;
    }
    const std::atomic<bool> never = false;
    (void)lfs.serve(never);
  }

  sim::World& world_;
  std::string name_;
  std::uint32_t id_;
  std::optional<sim::ActorId> actor_;
  bool made_ = false;
};

inline std::string bytes_of(const net::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}
inline net::Buffer buffer_of(const std::string& text) { return net::Buffer::copy_of(std::as_bytes(std::span(text))); }

// `count` rows of `length` bytes, all different and told apart by `seed`.
inline std::string pattern(std::size_t bytes, unsigned seed) {
  std::string out(bytes, '\0');
  std::uint64_t x = seed * 2654435761u + 1;
  for (auto& c : out) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(x >> 56);
  }
  return out;
}

// The body of variable rows.
inline std::string variable_body(const std::vector<std::string>& rows) {
  std::string out(rows.size() * 4, '\0');
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto length = static_cast<std::uint32_t>(rows[i].size());
    std::memcpy(out.data() + i * 4, &length, 4);
  }
  for (const auto& row : rows) out += row;
  return out;
}

// One file of width 1 unless told, as its creator sees it.
struct TestFile {
  std::uint64_t id = 7;
  Format format = Format::fixed(100);
  std::vector<std::uint32_t> nodes = {kNode};
  std::uint32_t index = 0;
  std::vector<std::uint32_t> bevies = {};
  std::optional<std::uint32_t> form = {};  // nothing: LFSs keep parity if there are bevies

  proto::ComponentShape shape() const {
    proto::ComponentShape out;
    out.set_file(id);
    out.mutable_format()->set_kind(static_cast<std::uint32_t>(format.kind));
    out.mutable_format()->set_record_length(format.record_length);
    out.mutable_format()->set_delimiter(format.delimiter);
    for (const auto node : nodes) out.mutable_layout()->add_nodes(node);
    for (const auto bevy : bevies) out.mutable_layout()->add_bevies(bevy);
    out.mutable_layout()->set_form(form.value_or(bevies.empty() ? 0 : 1));
    out.set_index(index);
    if (format.validate()) out.set_chunk_bytes(component::chunk_bytes_for(format));
    return out;
  }
};

inline TestFile variable(std::uint64_t id) {
  TestFile file;
  file.id = id;
  file.format = Format::variable();
  return file;
}

class Peer {
 public:
  Peer(sim::Actor& self, const Node& node, std::uint32_t uid = 1000, bool by_zmq = false)
      : self_(self), caller_(self.messenger(), 1), node_(node), uid_(uid), by_zmq_(by_zmq) {}

  std::string mint_rights(std::uint64_t file, std::uint32_t rights, std::uint64_t epoch = 0) {
    const auto expiry = self_.clock().wall_seconds() + kCapabilitySeconds;
    return mint(node_.key, Capability{FileId(file), uid_, rights, epoch, expiry});
  }
  Result<net::Packet> call(net::Packet packet, Duration timeout = std::chrono::seconds(20)) {
    proto::Endpoints to;
    to.set_unix_path("sim:" + node_.name());
    to.set_ipc(to.unix_path());
    packet.envelope.set_credential(credential);
    // A node that is being started again: as a client would.
    for (unsigned attempt = 0;; ++attempt) {
      net::Packet copy;
      copy.envelope = packet.envelope;
      copy.body = net::Buffer::copy_of(packet.body.span());
      auto result = call_once(to, std::move(copy), timeout);
      if (result || result.error().code != Code::kUnavailable || attempt >= 50) return result;
      (void)caller_.pump(self_.clock().now() + std::chrono::milliseconds(20));
    }
  }
  // Sends without waiting.
  net::CallId start(net::Packet packet) {
    proto::Endpoints to;
    to.set_unix_path("sim:" + node_.name());
    return caller_.start(self_.messenger().connect(to, net::Route::kUnix).value(), std::move(packet),
                         std::chrono::seconds(20), node_.name());
  }
  Result<net::Packet> wait(net::CallId id) { return caller_.wait(id); }
  net::Packet request(std::uint64_t file, std::uint32_t rights) {
    net::Packet packet;
    packet.envelope.set_capability(mint_rights(file, rights));
    return packet;
  }

  Status write(const TestFile& file, std::uint64_t first, std::uint64_t count, const std::string& body) {
    auto packet = request(file.id, kMayCreate | kMayRead);
    auto* write = packet.envelope.mutable_write();
    *write->mutable_shape() = file.shape();
    write->set_first(first);
    write->set_count(count);
    packet.body = buffer_of(body);
    PIF_TRY(call(std::move(packet)));
    return {};
  }
  Result<proto::ComponentState> seal(const TestFile& file, std::uint64_t rows, std::uint64_t bytes,
                                     std::optional<component::Tail> by_descriptor = {},
                                     std::optional<FileLength> whole = {}) {
    auto packet = request(file.id, kMayCreate | kMayRead);
    auto* seal = packet.envelope.mutable_seal();
    *seal->mutable_shape() = file.shape();
    seal->set_rows(rows);
    seal->set_bytes(bytes);
    seal->mutable_file()->set_records(whole ? whole->records : rows);
    seal->mutable_file()->set_bytes(whole ? whole->bytes : bytes);
    if (by_descriptor) {
      seal->set_by_descriptor(true);
      seal->set_data_tail_sum(by_descriptor->data_sum);
      seal->set_index_tail_sum(by_descriptor->index_sum);
    }
    PIF_TRY_VALUE(auto reply, call(std::move(packet)));
    return reply.envelope.seal_reply().state();
  }
  Result<std::string> read(std::uint64_t file, std::uint64_t first, std::uint64_t count, std::uint32_t stride = 0) {
    auto packet = request(file, kMayRead);
    auto* read = packet.envelope.mutable_read();
    read->set_file(file);
    read->set_first(first);
    read->set_count(count);
    read->set_stride(stride);
    PIF_TRY_VALUE(auto reply, call(std::move(packet)));
    return bytes_of(reply.body);
  }
  net::Packet overwrite_request(std::uint64_t file, std::uint64_t first, std::uint64_t count, const std::string& body,
                                std::uint32_t within = 0, std::uint32_t bytes = 0) {
    auto packet = request(file, kMayRead | kMayWrite);
    auto* overwrite = packet.envelope.mutable_overwrite();
    overwrite->set_file(file);
    overwrite->set_first(first);
    overwrite->set_count(count);
    overwrite->set_within(within);
    overwrite->set_bytes(bytes);
    packet.body = buffer_of(body);
    return packet;
  }
  Status overwrite(std::uint64_t file, std::uint64_t first, std::uint64_t count, const std::string& body,
                   std::uint32_t within = 0, std::uint32_t bytes = 0) {
    PIF_TRY(call(overwrite_request(file, first, count, body, within, bytes)));
    return {};
  }
  Status flush() {
    auto packet = request(0, kMayManage);
    packet.envelope.mutable_flush();
    PIF_TRY(call(std::move(packet)));
    return {};
  }
  Result<net::Packet> attach(std::uint64_t file) {
    auto packet = request(file, kMayRead);
    packet.envelope.mutable_attach()->set_file(file);
    return call(std::move(packet));
  }
  Result<net::Packet> attach_new(const TestFile& file) {
    auto packet = request(file.id, kMayCreate | kMayRead);
    *packet.envelope.mutable_attach()->mutable_create() = file.shape();
    return call(std::move(packet));
  }
  Status settle(std::vector<std::uint64_t> committed, std::vector<std::uint64_t> removed) {
    auto packet = request(0, kMayManage);
    for (const auto id : committed) packet.envelope.mutable_settle()->add_committed(id);
    for (const auto id : removed) packet.envelope.mutable_settle()->add_removed(id);
    PIF_TRY(call(std::move(packet)));
    return {};
  }
  // A committed file of fixed records.
  Status put(const TestFile& file, const std::string& bytes) {
    const auto file_length = fixed_file_length(file.format.record_length, bytes.size());
    PIF_TRY(write(file, 0, file_length.records, bytes));
    PIF_TRY(seal(file, file_length.records, file_length.bytes));
    return settle({file.id}, {});
  }
  Status put_variable(const TestFile& file, const std::vector<std::string>& rows) {
    const auto body = variable_body(rows);
    PIF_TRY(write(file, 0, rows.size(), body));
    PIF_TRY(seal(file, rows.size(), body.size() - rows.size() * 4));
    return settle({file.id}, {});
  }

  sim::Actor& self() { return self_; }
  std::string credential;

 private:
  Result<net::Packet> call_once(const proto::Endpoints& to, net::Packet packet, Duration timeout) {
    PIF_TRY_VALUE(const auto peer, self_.messenger().connect(to, by_zmq_ ? net::Route::kIpc : net::Route::kUnix));
    return caller_.call(peer, std::move(packet), timeout, node_.name());
  }

  sim::Actor& self_;
  net::Caller caller_;
  const Node& node_;
  std::uint32_t uid_;
  bool by_zmq_;
};

inline Code code_of(const Status& status) { return status ? Code::kOk : status.error().code; }
template <typename T>
Code code_of(const Result<T>& result) {
  return result ? Code::kOk : result.error().code;
}
#define REQUIRE_OK(expression)                                   \
  do {                                                           \
    const auto& ok_ = (expression);                              \
    if (!ok_) FAIL(#expression ": " << ok_.error().to_string()); \
  } while (false)

// Runs `body` as a client of a node that serves.
inline void with_node(const std::function<void(Peer&, Node&)>& body, std::uint64_t seed = 1,
                      const std::function<void(Node&)>& prepare = {}) {
  sim::World world(seed);
  Node node(world);
  if (prepare) prepare(node);
  node.start();
  world.spawn_main("client", [&](sim::Actor& self) {
    Peer peer(self, node);
    body(peer, node);
  });
  world.run();
}

}  // namespace pif::lfs::test
