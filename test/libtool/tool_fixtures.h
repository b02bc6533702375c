// Tools as their tests run them in the simulated world: whole, and with somebody killed on the way.
#pragma once

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "libtool/sim_tools.h"

namespace pif::sim {

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().to_string());
}

inline std::vector<std::byte> random_bytes(std::size_t count, std::uint32_t seed) {
  std::vector<std::byte> bytes(count);
  for (auto& b : bytes) b = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

// A whole file, in one write.
inline void put(Client& client, const std::string& path, const CreateOptions& options,
                std::span<const std::byte> bytes) {
  File file = must(client.create(path, options));
  must(file.write(bytes));
  must(file.commit());
}

inline std::vector<std::byte> get(Client& client, const std::string& path) {
  File file = must(client.open(path));
  std::vector<std::byte> bytes(must(file.file_length()).bytes);
  bytes.resize(must(file.pread(bytes, 0)));
  return bytes;
}

// A file system and a tool. has_threads: as register_tool() has it.
struct ToolFixture {
  ToolFixture(std::uint64_t seed, unsigned lfss, tool::WorkerFunction work, Spoil spoil = {},
              const Options& options = {.steps_max = UINT64_MAX / 2}, bool has_threads = false)
      : world(seed, options), cluster(world, lfss) {
    register_tool(
        cluster, names, [work = std::move(work)](tool::Worker& worker, Actor&) { return work(worker); },
        std::move(spoil), has_threads);
  }
  void run(const std::function<void(Client&)>& body) {
    run([&body](Client& client, Actor&) { body(client); });
  }
  void run(const std::function<void(Client&, Actor&)>& body) {
    world.spawn_main(
        "client",
        [&](Actor& self) {
          ClientSide side(self);
          Client client = must(sim_client(side, cluster.size()));
          body(client, self);
        },
        Who{0, {0}});
    world.run();
  }

  Names names;
  World world;
  Cluster cluster;
};

// One run of a tool of which somebody is killed: what a test adds is what it puts, what it runs, and what it looks at.
class KilledTool {
 public:
  KilledTool(std::uint64_t seed, unsigned lfss, tool::WorkerFunction work) : world_(seed), cluster_(world_, lfss) {
    register_tool(cluster_, names_, [work = std::move(work)](tool::Worker& worker, Actor&) { return work(worker); });
  }
  virtual ~KilledTool() = default;

  // Runs the tool, kills `victim` at its n-th step, and looks at what is there. False: it was over before.
  bool run(const std::string& victim, std::uint64_t steps) {
    world_.spawn_main(
        "keeper", [this](Actor& self) { keep(self); }, Who{0, {0}});
    world_.on_step([this, &victim, steps](std::uint64_t) {
      if (is_at_work_ && ++seen_ == steps) kill(victim);
    });
    world_.run();
    return killed_;
  }

 protected:
  virtual void put(Client& client) = 0;
  virtual tool::ControllerOptions controller_options() const { return sim_controller(); }
  virtual bool control_tool(tool::Controller& controller) = 0;  // whether it succeeded
  virtual void look(Client& client) = 0;
  bool succeeded() const { return succeeded_; }

 private:
  void keep(Actor& self) {
    ClientSide side(self);
    auto client = sim_client(side, cluster_.size());
    REQUIRE(client);
    put(*client);
    const auto controller = world_.spawn(
        "controller", [this](Actor& actor) { control_it(actor); }, Who{0, {0}});
    while (world_.is_alive(controller)) self.pause(std::chrono::milliseconds(1));
    for (unsigned i = 0; i < cluster_.size(); ++i)
      if (!cluster_.lfs_runs(i)) cluster_.restart_lfs(i);
    self.pause(std::chrono::seconds(5));
    ClientSide later_side(self);
    auto later = sim_client(later_side, cluster_.size());
    REQUIRE(later);
    look(*later);
  }
  void control_it(Actor& actor) {
    ClientSide side(actor);
    auto client = sim_client(side, cluster_.size());
    if (!client) return;
    tool::Controller controller(*client, controller_options());
    is_at_work_ = true;
    succeeded_ = control_tool(controller);
    is_at_work_ = false;
  }
  void kill(const std::string& victim) {
    killed_ = true;
    if (victim == "lfs") return cluster_.kill_lfs(static_cast<unsigned>(seen_ % cluster_.size()));
    const auto found = world_.find_all(victim);
    if (!found.empty()) world_.kill(found[seen_ % found.size()]);
  }

  Names names_;
  World world_;
  Cluster cluster_;
  bool is_at_work_ = false, succeeded_ = false, killed_ = false;
  std::uint64_t seen_ = 0;
};

}  // namespace pif::sim
