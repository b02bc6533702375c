// What becomes of a transpose when one of its parts dies: the whole output or none of it.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "../../tools/pif_transpose/transpose.h"
#include "libtool/sim_tools.h"
#include "matrix/bits.h"

namespace pif::transpose {
namespace {

constexpr unsigned kLfss = 4;
constexpr std::uint64_t kRows = 300, kColumns = 500;
constexpr matrix::Element kElement{1, matrix::BitOrder::kMsb};

class Killed {
 public:
  Killed(Algorithm algorithm, std::uint64_t seed) : algorithm_(algorithm), world_(seed), cluster_(world_, kLfss), random_(seed) {
    sim::register_tool(cluster_, names_, [](tool::Worker& worker, sim::Actor&) { return work(worker); });
    matrix_ = matrix::random_bytes(kRows * kElement.bytes_of(kColumns), random_);
  }

  // Transposes, kills `victim` at its n-th step, and looks at what is there. False: it was over before.
  bool run(const std::string& victim, std::uint64_t steps) {
    world_.spawn_main("keeper", [this](sim::Actor& self) { keep(self); }, sim::Who{0, {0}});
    world_.on_step([this, &victim, steps](std::uint64_t) { if (is_at_work_ && ++seen_ == steps) kill(victim); });
    world_.run();
    return killed_;
  }

 private:
  void keep(sim::Actor& self) {
    sim::ClientSide side(self);
    auto client = sim::sim_client(side, kLfss);
    REQUIRE(client);
    put(*client);
    const auto controller = world_.spawn("controller", [this](sim::Actor& actor) { control_it(actor); }, sim::Who{0, {0}});
    while (world_.is_alive(controller)) self.pause(std::chrono::milliseconds(1));
    for (unsigned i = 0; i < kLfss; ++i) if (!cluster_.lfs_runs(i)) cluster_.restart_lfs(i);
    self.pause(std::chrono::seconds(5));
    look(*client);
  }
  void put(Client& client) {
    CreateOptions options;
    options.format = Format::fixed(static_cast<std::uint32_t>(kElement.bytes_of(kColumns)));
    options.width = kLfss;
    auto file = client.create("/in", options);
    REQUIRE(file);
    REQUIRE(file->write(matrix_));
    REQUIRE(file->commit());
  }
  void control_it(sim::Actor& actor) {
    sim::ClientSide side(actor);
    auto client = sim::sim_client(side, kLfss);
    if (!client) return;
    Wish wish;
    wish.source = "/in";
    wish.target = "/out";
    wish.columns = kColumns;
    wish.algorithm = algorithm_;
    wish.memory = 100'000;  // several stripes, several passes
    tool::Controller controller(*client, sim::sim_controller());
    is_at_work_ = true;
    succeeded_ = control(controller, wish).has_value();
    is_at_work_ = false;
  }
  void kill(const std::string& victim) {
    killed_ = true;
    if (victim == "lfs") return cluster_.kill_lfs(static_cast<unsigned>(seen_ % kLfss));
    const auto found = world_.find_all(victim);
    if (!found.empty()) world_.kill(found[seen_ % found.size()]);
  }
  void look(Client& client) {
    const auto there = client.stat("/out");
    if (succeeded_) REQUIRE(there);
    if (!there) return;
    auto file = client.open("/out");
    REQUIRE(file);
    matrix::Bytes got(kColumns * kElement.bytes_of(kRows));
    REQUIRE(file->pread(got, 0) == got.size());
    REQUIRE(got == matrix::transposed(matrix_, kRows, kColumns, kElement));
  }

  Algorithm algorithm_;
  sim::Names names_;
  sim::World world_;
  sim::Cluster cluster_;
  std::mt19937_64 random_;
  matrix::Bytes matrix_;
  bool is_at_work_ = false, succeeded_ = false, killed_ = false;
  std::uint64_t seen_ = 0;
};

}  // namespace

TEST_CASE("whoever dies at whatever moment of a transpose, there is a whole output or none") {
  std::uint64_t seed = 0;
  unsigned kills = 0;
  for (const auto& [algorithm, name] : kAlgorithms) {
    for (const char* victim : {"/", "lfs", "controller"}) {
      for (std::uint64_t steps = 20; steps < 2000; steps = steps * 3 / 2) {
        INFO(name << ", " << victim << " at step " << steps);
        kills += Killed(algorithm, ++seed).run(victim, steps) ? 1 : 0;
      }
    }
  }
  REQUIRE(kills > 30);
}

}  // namespace pif::transpose
