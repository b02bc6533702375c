#include "sim/cluster.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace pif::sim {
namespace {

constexpr const char* kClusterId = "5100000000000001";
const Who kDaemon{0, {0}};

void must(Status status, const std::string& who) {
  if (!status) throw Failure(fmt::format("{}: {}", who, status.error().to_string()));
}

}  // namespace

ClientSide::ClientSide(Actor& self)
    : self_(self), storage_(component::make_memory_storage(component::MemoryDisk::make())) {}

Cluster::Cluster(World& world, unsigned lfss) : world_(world) {
  spdlog::set_level(spdlog::level::off);
  for (std::size_t i = 0; i < key_.bytes.size(); ++i) key_.bytes[i] = static_cast<std::byte>(world.pick(256));
  directory_ = kv::make_memory_state(static_cast<unsigned>(server::kDirectoryTables.size()));
  start_server();
  for (unsigned i = 0; i < lfss; ++i) {
    nodes_.push_back({fmt::format("lfs{}", i), component::MemoryDisk::make(),
                      kv::make_memory_state(static_cast<unsigned>(lfs::kCatalogueTables.size()))});
  }
  for (unsigned i = 0; i < lfss; ++i) start_lfs(i);
}

Cluster::~Cluster() {
  for (const auto& node : nodes_) world_.kill(node.actor);
  world_.kill(server_actor_);
}

proto::Endpoints Cluster::endpoints(const std::string& name) {
  proto::Endpoints out;
  out.set_unix("sim:" + name);
  out.set_ipc(out.unix());
  out.set_tcp(out.unix());
  return out;
}

std::string Cluster::root(unsigned index) const { return "/" + nodes_.at(index).name; }

std::unique_ptr<component::Storage> Cluster::open_disk(unsigned index) {
  return component::make_memory_storage(nodes_.at(index).disk);
}
std::unique_ptr<kv::Store> Cluster::open_catalogue(unsigned index) { return kv::open_memory(nodes_.at(index).catalogue); }
std::unique_ptr<kv::Store> Cluster::open_directory() { return kv::open_memory(directory_); }

// ---- server ----

void Cluster::start_server() {
  server_actor_ = world_.spawn("server", [this](Actor& self) { run_server(self); }, kDaemon);
}

void Cluster::run_server(Actor& self) {
  const auto directory = open_directory();
  server::Config config;
  config.cluster = kClusterId;
  config.key = key_;
  config.owner_uid = Who{}.uid;
  server::Server daemon(std::move(config), server::World{self.messenger(), *directory, self.entropy()});
  must(daemon.open(), self.name());
  const auto served = daemon.serve(never_);
  if (!world_.was_killed(self.id())) must(served, self.name());
}

void Cluster::kill_server() { world_.kill(server_actor_); }

void Cluster::restart_server() {
  kill_server();
  start_server();
}

// ---- LFSs ----

void Cluster::start_lfs(unsigned index) {
  auto& node = nodes_.at(index);
  node.actor = world_.spawn(node.name, [this, index](Actor& self) { run_lfs(self, index); }, kDaemon);
}

void Cluster::run_lfs(Actor& self, unsigned index) {
  const auto storage = open_disk(index);
  const auto catalogue = open_catalogue(index);
  SimSpawner spawner(world_, self, programs_);
  lfs::Config config;
  config.node = index + 1;
  config.name = self.name();
  config.cluster = kClusterId;
  config.root = root(index);
  config.key = key_;
  config.endpoints = endpoints(self.name());
  config.server = endpoints("server");
  lfs::Lfs daemon(std::move(config), lfs::World{self.messenger(), *storage, *catalogue, self.executor(), spawner,
                                                self.entropy()});
  must(daemon.open(), self.name());
  const auto served = daemon.serve(never_);
  if (!world_.was_killed(self.id())) must(served, self.name());
}

void Cluster::kill_lfs(unsigned index) {
  auto& node = nodes_.at(index);
  if (!world_.is_alive(node.actor)) return;
  node.disk->set_fault([](std::string_view, std::string_view) { return Code::kIo; });
  world_.kill(node.actor);
  node.disk->set_fault({});
}

void Cluster::crash_lfs(unsigned index) {
  kill_lfs(index);
  nodes_.at(index).disk->crash();
}

void Cluster::restart_lfs(unsigned index) {
  kill_lfs(index);
  start_lfs(index);
}

}  // namespace pif::sim
