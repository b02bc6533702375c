// A whole file system in the simulated world: what clients see of it, and what is left when any part of it dies at any
// step.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "pif/client/client.h"
#include "sim/cluster.h"

using namespace pif;
using namespace pif::sim;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kRecord = 100;

std::vector<std::byte> contents(std::uint64_t records, unsigned salt) {
  std::vector<std::byte> out(records * kRecord);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 7 + i / 251 + salt);
  return out;
}

ConnectOptions by(const std::string& route) {
  ConnectOptions out;
  out.route = route;
  out.data_path = route == "auto" ? DataPath::kAuto : DataPath::kMessages;
  out.timeout = 20s;
  return out;
}

Status put(Client& client, const std::string& path, std::span<const std::byte> bytes) {
  CreateOptions options;
  options.format = Format::fixed(kRecord);
  PIF_TRY_VALUE(auto file, client.create(path, options));
  PIF_TRY(file.write(bytes));
  return file.commit();
}

Result<std::vector<std::byte>> get(Client& client, const std::string& path) {
  PIF_TRY_VALUE(auto file, client.open(path));
  PIF_TRY_VALUE(const auto file_length, file.file_length());
  std::vector<std::byte> out(file_length.bytes);
  PIF_TRY_VALUE(const auto count, file.read(out, file_length.records));
  if (count != file_length.records) return fail(Code::kInternal, "short read");
  return out;
}

template <typename T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().to_string());
  return std::move(*result);
}
void must(Status status) {
  if (!status) FAIL(status.error().to_string());
}

Client connected(ClientSide& side, const std::string& route, unsigned nodes) {
  auto client = must(Client::connect_in(side.world(), Cluster::kServer, by(route)));
  REQUIRE(must(client.status(nodes)).nodes.size() == nodes);
  return client;
}

// Stops all daemons and reads everything they have on their disks.
void require_clean(Cluster& cluster) {
  cluster.kill_server();
  const auto directory = cluster.open_directory();
  const auto report = must(server::check_directory(*directory));
  for (const auto& damage : report.damages) FAIL(damage);
  for (unsigned i = 0; i < cluster.size(); ++i) {
    cluster.kill_lfs(i);
    const auto disk = cluster.open_disk(i);
    const auto catalogue = cluster.open_catalogue(i);
    const auto root = must(lfs::check_root(*disk, *catalogue, cluster.root(i), true));
    for (const auto& damage : root.damages) FAIL(damage);
  }
}

std::uint64_t history_of_a_session(std::uint64_t seed) {
  World world(seed);
  Cluster cluster(world, 3);
  world.spawn_main("client", [&](Actor& self) {
    ClientSide side(self);
    auto client = connected(side, "ipc", 3);
    must(put(client, "/a", contents(100, 1)));
    REQUIRE(must(get(client, "/a")) == contents(100, 1));
  });
  world.run();
  return world.history();
}

// One run: a client puts /old, then replaces it and makes /new, while something dies at a step of the seed's choice.
class CrashRun {
 public:
  CrashRun(std::uint64_t seed, std::string route) : world_(seed), cluster_(world_, 3), route_(std::move(route)) {}

  void run() {
    world_.spawn_main("before", [this](Actor& self) { prepare(self); });
    world_.run();
    const std::uint64_t fatal = world_.steps() + 1 + world_.pick(250);
    world_.on_step([this, fatal](std::uint64_t step) {
      if (step == fatal) strike();
    });
    const ActorId worker = world_.spawn_main("worker", [this](Actor& self) { work(self); });
    worker_ = worker;
    world_.run();
    world_.on_step({});
    if (down_lfs_) cluster_.restart_lfs(*down_lfs_);
    if (server_down_) cluster_.restart_server();
    world_.spawn_main("after", [this](Actor& self) { inspect(self); });
    world_.run();
    require_clean(cluster_);
  }

 private:
  void prepare(Actor& self) {
    ClientSide side(self);
    auto client = connected(side, route_, 3);
    must(put(client, "/old", contents(50, 1)));
  }

  void strike() {
    switch (world_.pick(4)) {
      case 0: world_.kill(worker_); break;
      case 1:
        cluster_.kill_server();
        server_down_ = true;
        break;
      case 2:
        down_lfs_ = static_cast<unsigned>(world_.pick(3));
        cluster_.kill_lfs(*down_lfs_);
        break;
      default: down_lfs_ = static_cast<unsigned>(world_.pick(3)); cluster_.crash_lfs(*down_lfs_);
    }
  }

  void work(Actor& self) {
    ClientSide side(self);
    auto client = Client::connect_in(side.world(), Cluster::kServer, by(route_));
    if (!client) return;
    replaced_ = put(*client, "/old", contents(70, 2)).has_value();
    made_ = put(*client, "/new", contents(60, 3)).has_value();
  }

  void inspect(Actor& self) {
    ClientSide side(self);
    auto client = connected(side, route_, 3);
    self.pause(3min);  // abandoned creations are given up
    auto again = connected(side, route_, 3);
    const auto old = must(get(again, "/old"));
    REQUIRE((old == contents(70, 2) || (!replaced_ && old == contents(50, 1))));
    const auto made = get(again, "/new");
    if (made_ || made) REQUIRE(must(made) == contents(60, 3));
    if (!made) REQUIRE(made.error().code == Code::kNotFound);
    const auto status = must(again.status());
    REQUIRE(status.pending == 0);
    REQUIRE(status.doomed == 0);
    std::size_t components = 0;
    for (const auto& node : status.nodes) components += node.components;
    std::size_t wanted = must(again.stat("/old")).nodes.size();  // fewer than three if one LFS was down then
    if (made) wanted += must(again.stat("/new")).nodes.size();
    REQUIRE(components == wanted);
  }

  World world_;
  Cluster cluster_;
  std::string route_;
  ActorId worker_ = 0;
  bool server_down_ = false;
  std::optional<unsigned> down_lfs_;
  bool replaced_ = false;
  bool made_ = false;
};

}  // namespace

TEST_CASE("what a client puts is what another gets, by descriptor and by message") {
  const auto* route = GENERATE("auto", "ipc");
  const auto records = GENERATE(1u, 7u, 5000u);
  INFO(route << ", " << records << " records");
  World world(records);
  Cluster cluster(world, 4);
  world.spawn_main("writer", [&](Actor& self) {
    ClientSide side(self);
    auto client = connected(side, route, 4);
    must(put(client, "/file", contents(records, 5)));
  });
  world.run();
  world.spawn_main("reader", [&](Actor& self) {
    ClientSide side(self);
    auto client = connected(side, route, 4);
    REQUIRE(must(get(client, "/file")) == contents(records, 5));
  });
  world.run();
  require_clean(cluster);
}

TEST_CASE("a whole file system has the same history for the same seed") {
  const auto first = history_of_a_session(5);
  REQUIRE(first == history_of_a_session(5));
  REQUIRE(first != history_of_a_session(6));
}

TEST_CASE("whatever dies at whatever step, files are old or new and whole, and nothing is left behind") {
  const auto* route = GENERATE("auto", "ipc");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed << ", route " << route);
    CrashRun run(seed, route);
    run.run();
  }
}
