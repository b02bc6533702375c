#include "sim/cluster.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace pif::sim {
namespace {

constexpr const char* kClusterId = "5100000000000001";
const Who kDaemon{0, {0}};

void require(const Status& made) {
  if (!made) throw Failure(made.error().to_string());
}

// Sizes that a torn write leaves pieces of: below, at and above a sector's.
constexpr std::size_t kBlockBytes[] = {64, 512, 4096};
constexpr double kColdChance = 0.25;      // that a read has to wait for the disk
constexpr unsigned kReplaced = 1u << 16;  // between the uuids of a node's roots

}  // namespace

ClientSide::ClientSide(Actor& self)
    : self_(self), storage_(component::make_memory_storage(component::MemoryDisk::make())) {}

Cluster::Cluster(World& world, unsigned lfss, ClusterOptions options) : world_(world), options_(options) {
  spdlog::set_level(spdlog::level::off);
  for (std::size_t i = 0; i < key_.bytes.size(); ++i) key_.bytes[i] = static_cast<std::byte>(world.pick(256));
  directory_ = kv::make_memory_state(static_cast<unsigned>(server::kDirectoryTables.size()));
  require(server::make_directory(*open_directory(), directory_identity(), Who{}.uid, 0));
  start_server();
  for (unsigned i = 0; i < lfss; ++i) {
    nodes_.push_back({fmt::format("lfs{}", i), {}});
    nodes_.back().root = empty_root(i);
    if (options_.may_be_cut) world_.keep_order("server", nodes_.back().name);
  }
  for (unsigned i = 0; i < lfss; ++i) {
    require(lfs::make_root(*open_disk(i), *open_catalogue(i), root(i), root_identity(i)));
    start_lfs(i);
  }
}

server::DirectoryIdentity Cluster::directory_identity() { return {kClusterId, std::string(32, 'd')}; }

lfs::RootIdentity Cluster::root_identity(unsigned index) const {
  const Node& node = nodes_.at(index);
  return {kClusterId, index + 1, node.name, fmt::format("{:032x}", index + 1 + kReplaced * node.replaced)};
}

Cluster::~Cluster() {
  for (const auto& node : nodes_) world_.kill(node.actor);
  world_.kill(server_actor_);
}

proto::Endpoints Cluster::endpoints(const std::string& name) {
  proto::Endpoints out;
  out.set_unix_path("sim:" + name);
  out.set_ipc(out.unix_path());
  out.set_tcp(out.unix_path());
  return out;
}

std::string Cluster::root(unsigned index) const { return nodes_.at(index).root.folder; }

std::unique_ptr<component::Storage> Cluster::open_disk(unsigned index) {
  return component::make_memory_storage(nodes_.at(index).root.disk);
}
std::unique_ptr<kv::Store> Cluster::open_catalogue(unsigned index) {
  return kv::open_memory(nodes_.at(index).root.catalogue);
}
std::unique_ptr<kv::Store> Cluster::open_directory() { return kv::open_memory(directory_); }

std::unique_ptr<kv::Store> Cluster::store_of(const std::string& name, const std::shared_ptr<kv::MemoryState>& state,
                                             const std::shared_ptr<Faults>& faults) {
  auto store = kv::open_memory(state);
  if (!options_.faulty) return store;
  return make_faulty_store(name, std::move(store), faults, [this] { return world_.pick(2) == 0; });
}

// A daemon that is not faulty ends only by being killed.
void Cluster::ended(Actor& self, const Status& why) {
  if (why || world_.was_killed(self.id())) return;
  last_words_ = fmt::format("{}: {}", self.name(), why.error().to_string());
  if (!options_.faulty) throw Failure(last_words_);
}

// ---- server ----

void Cluster::start_server() {
  server_faults_->revive();
  server_actor_ = world_.spawn(
      "server", [this](Actor& self) { run_server(self); }, kDaemon);
}

void Cluster::run_server(Actor& self) {
  const auto directory = store_of("the server's directory", directory_, server_faults_);
  server::Config config;
  config.cluster = kClusterId;
  config.uuid = directory_identity().uuid;
  for (unsigned i = 0; i < size(); ++i) config.root_uuids[i + 1] = root_identity(i).uuid;
  config.key = key_;
  config.owner_uid = Who{}.uid;
  config.default_bevy = options_.bevy;
  config.declares_lost = options_.declares_lost;
  server::Server daemon(std::move(config), server::World{self.messenger(), *directory, self.entropy()});
  ended(self, daemon.open().and_then([&] { return daemon.serve(never_); }));
}

void Cluster::kill_server() {
  server_faults_->kill();
  world_.kill(server_actor_);
}

void Cluster::crash_server_at(std::uint64_t calls, bool only_durable) {
  server_faults_->cut_power_at(calls, only_durable, [this] { world_.doom(server_actor_); });
}

bool Cluster::server_runs() const { return world_.is_alive(server_actor_); }
bool Cluster::lfs_runs(unsigned index) const { return world_.is_alive(nodes_.at(index).actor); }

void Cluster::restart_server() {
  kill_server();
  start_server();
}

// ---- LFSs ----

void Cluster::start_lfs(unsigned index) {
  auto& node = nodes_.at(index);
  node.faults->revive();
  node.faults->set_cold([this] { return world_.chance(kColdChance); });
  if (options_.faulty)
    node.root.disk->set_fault(
        [faults = node.faults](std::string_view call, std::string_view path) { return faults->ask(call, path); });
  node.actor = world_.spawn(
      node.name, [this, index](Actor& self) { run_lfs(self, index); }, kDaemon);
}

void Cluster::run_lfs(Actor& self, unsigned index) {
  const auto disk = open_disk(index);
  lfs::DiskHealth health(self.clock());
  const auto storage = lfs::watch(*disk, health);
  const auto catalogue = store_of(self.name() + "'s catalogue", nodes_[index].root.catalogue, nodes_[index].faults);
  SimSpawner spawner(world_, self, programs_);
  lfs::Config config;
  config.node = index + 1;
  config.name = self.name();
  config.cluster = kClusterId;
  config.root = root(index);
  config.uuid = root_identity(index).uuid;
  config.key = key_;
  config.endpoints = endpoints(self.name());
  config.server = endpoints("server");
  if (options_.is_far) config.endpoints.clear_unix_path();
  if (options_.may_be_cut) config.server.clear_unix_path();
  config.log_bytes = options_.log_bytes;
  config.sync_all_from = 3;       // so that histories meet both ways of syncing
  config.near_from_bytes = 3000;  // and both ways of reading rows for their parity
  lfs::Lfs daemon(std::move(config), lfs::World{self.messenger(), *storage, *catalogue, self.executor(), spawner,
                                                self.entropy(), [&self] { self.run_done(); }, &health,
                                                [this](std::size_t count) { return world_.pick(count); }});
  ended(self, daemon.open().and_then([&] { return daemon.serve(never_); }));
}

void Cluster::kill_lfs(unsigned index) {
  auto& node = nodes_.at(index);
  if (!world_.is_alive(node.actor)) return;
  node.faults->kill();
  node.root.disk->set_fault([](std::string_view, std::string_view) { return Code::kIo; });
  world_.kill(node.actor);
  node.root.disk->set_fault({});
}

void Cluster::crash_lfs(unsigned index) {
  kill_lfs(index);
  ++power_losses_;
  nodes_.at(index).root.disk->crash();
}

void Cluster::put_root(unsigned index, const RootImage& image) {
  crash_lfs(index);
  nodes_.at(index).root = image.copy();
}

void Cluster::replace_root(unsigned index) {
  crash_lfs(index);
  Node& node = nodes_.at(index);
  ++node.replaced;
  node.root = empty_root(index);
  require(lfs::make_root(*open_disk(index), *open_catalogue(index), root(index), root_identity(index)));
}

void Cluster::put_directory(const kv::MemoryState& image) {
  kill_server();
  directory_ = kv::copy_memory_state(image);
}

RootImage Cluster::empty_root(unsigned index) const {
  return {"/" + nodes_.at(index).name, component::MemoryDisk::make(),
          kv::make_memory_state(static_cast<unsigned>(lfs::kCatalogueTables.size()))};
}

void Cluster::lose_power(Node& node) {
  ++power_losses_;
  world_.doom(node.actor);
  node.root.disk->crash(kBlockBytes[world_.pick(std::size(kBlockBytes))],
                        [this](std::uint64_t limit) { return world_.pick(limit); });
}

void Cluster::crash_lfs_at(unsigned index, std::uint64_t calls, bool only_durable) {
  auto& node = nodes_.at(index);
  node.faults->cut_power_at(calls, only_durable, [this, &node] { lose_power(node); });
}

void Cluster::restart_lfs(unsigned index) {
  kill_lfs(index);
  start_lfs(index);
}

}  // namespace pif::sim
