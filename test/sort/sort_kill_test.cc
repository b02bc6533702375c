// What becomes of a sort when one of its parts dies: the whole output or none of it, and the input as it was.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "libtool/sim_tools.h"
#include "../../tools/pif_sort/sort.h"

namespace pif::sort {
namespace {

using std::chrono::seconds;

constexpr unsigned kLfss = 4;
constexpr unsigned kRecords = 3000;

std::string record(unsigned i) { return fmt::format("{:08}", i * 7919U % kRecords); }

class Killed {
 public:
  // apart: workers share nothing.
  Killed(MergeKind merge, bool apart, std::uint64_t seed) : merge_(merge), apart_(apart), world_(seed), cluster_(world_, kLfss) {
    sim::register_tool(cluster_, names_, [](tool::Worker& worker, sim::Actor&) { return work(worker); });
  }

  // Runs the sort, kills `victim` at its n-th step, and looks at what is there. False: it was over before.
  bool run(const std::string& victim, std::uint64_t steps) {
    world_.spawn_main("keeper", [this](sim::Actor& self) { keep(self); }, sim::Who{0, {0}});
    world_.on_step([this, &victim, steps](std::uint64_t) { if (sorting_ && ++seen_ == steps) kill(victim); });
    world_.run();
    return killed_;
  }

 private:
  void put(Client& client) {
    CreateOptions options;
    options.format = Format::fixed(8);
    options.width = kLfss;
    auto file = client.create("/in", options);
    REQUIRE(file);
    for (unsigned i = 0; i < kRecords; ++i) REQUIRE(file->write(std::as_bytes(std::span<const char>(record(i)))));
    REQUIRE(file->commit());
  }
  void keep(sim::Actor& self) {
    sim::ClientSide side(self);
    auto client = sim::sim_client(side, kLfss);
    REQUIRE(client);
    put(*client);
    const auto controller = world_.spawn("controller", [this](sim::Actor& actor) { control_sort(actor); }, sim::Who{0, {0}});
    while (world_.is_alive(controller)) self.pause(std::chrono::milliseconds(1));
    for (unsigned i = 0; i < kLfss; ++i) if (!cluster_.lfs_runs(i)) cluster_.restart_lfs(i);
    self.pause(seconds(5));
    look(self);
  }
  void control_sort(sim::Actor& actor) {
    sim::ClientSide side(actor);
    auto client = sim::sim_client(side, kLfss);
    if (!client) return;
    Wish wish;
    wish.source = "/in";
    wish.target = "/out";
    wish.merge = merge_;
    wish.token_batch = 16;
    wish.memory = 1;  // runs and sub-files in scratch files
    tool::ControllerOptions options = sim::sim_controller();
    options.apart = apart_;
    tool::Controller controller(*client, std::move(options));
    sorting_ = true;
    const auto done = control(controller, wish);
    succeeded_ = done.has_value();
    sorting_ = false;
  }
  void kill(const std::string& victim) {
    killed_ = true;
    if (victim == "lfs") return cluster_.kill_lfs(static_cast<unsigned>(seen_ % kLfss));
    const auto found = world_.find_all(victim);
    if (!found.empty()) world_.kill(found[seen_ % found.size()]);
  }
  std::vector<std::string> get(Client& client, const std::string& path) {
    auto file = client.open(path);
    REQUIRE(file);
    std::vector<std::string> records;
    std::vector<std::byte> bytes(8);
    for (unsigned i = 0; i < kRecords; ++i) {
      REQUIRE(file->read_at(i, bytes, 1));
      records.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return records;
  }
  void look(sim::Actor& self) {
    sim::ClientSide side(self);
    auto client = sim::sim_client(side, kLfss);
    REQUIRE(client);
    auto input = get(*client, "/in");
    for (unsigned i = 0; i < kRecords; ++i) REQUIRE(input[i] == record(i));
    const auto there = client->stat("/out");
    if (succeeded_) REQUIRE(there);
    if (!there) return;
    std::sort(input.begin(), input.end());
    REQUIRE(get(*client, "/out") == input);
  }

  MergeKind merge_;
  bool apart_;
  sim::Names names_;
  sim::World world_;
  sim::Cluster cluster_;
  bool sorting_ = false, succeeded_ = false, killed_ = false;
  std::uint64_t seen_ = 0;
};

}  // namespace

TEST_CASE("whoever dies at whatever moment of a sort, there is a whole output or none, and the input is as it was") {
  std::uint64_t seed = 0;
  unsigned kills = 0;
  for (const MergeKind merge : {MergeKind::kSplit, MergeKind::kToken, MergeKind::kPipelined}) {
    for (const char* victim : {"/", "lfs", "controller"}) {
      for (std::uint64_t steps = 20; steps < 2000; steps = steps * 3 / 2) {
        for (const bool apart : {false, true}) {
          INFO("merge " << static_cast<int>(merge) << (apart ? " over the network, " : ", ") << victim << " at step " << steps);
          kills += Killed(merge, apart, ++seed).run(victim, steps) ? 1 : 0;
        }
      }
    }
  }
  REQUIRE(kills > 50);
}

}  // namespace pif::sort
