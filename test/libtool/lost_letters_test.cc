// Workers on several machines, between which letters are lost, late or doubled, in the simulated world.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "job.pb.h"
#include "libtool/tool_fixtures.h"
#include "pif/tool/channel.h"
#include "pif/tool/team.h"

namespace pif {
namespace {

using std::chrono::seconds;

constexpr unsigned kLfss = 3;
constexpr std::uint64_t kNone = UINT64_MAX;
constexpr const char* kLost = "did not come in 30 s: lost when their connection broke";

struct Word {
  std::uint32_t number = 0;
  static auto members(auto& self) { return std::tie(self.number); }
};

// Loses the n-th letter of worker 1, from 0.
class Loss {
 public:
  void begin(std::uint64_t left) { left_ = left, has_lost_ = false; }
  bool has_lost() const { return has_lost_; }
  sim::Spoil spoil() {
    return [this](net::Packet& packet) {
      if (!packet.envelope.has_worker_mail() || packet.envelope.worker_mail().from() != 1 || left_ == kNone) return;
      if (left_-- > 0) return;
      left_ = kNone;
      has_lost_ = true;
      packet.envelope.Clear();
    };
  }

 private:
  std::uint64_t left_ = kNone;
  bool has_lost_ = false;
};

// How a job ended, and after how long.
struct Outcome {
  std::string error;
  Duration took{};
};

Outcome run_apart(Client& client, sim::Actor& self) {
  tool::ControllerOptions options = sim::sim_controller();
  options.apart = true;
  tool::Controller controller(client, options);
  const Time begin = self.clock().now();
  const auto done = controller.run({});
  return {done ? std::string() : done.error().to_string(), self.clock().now() - begin};
}

// A value up and down the tree, words from each to each, and turns: so workers end at different times.
Status talk_together(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  PIF_TRY_VALUE(const auto sums, team.sum({1}));
  if (sums.at(0) != worker.width()) return fail(Code::kInternal, "another sum");
  {
    tool::Talk talk(team);
    std::vector<std::uint32_t> come(worker.width());
    tool::ChannelOptions options;
    options.window = 1000;
    tool::Channel<Word> words(talk, 1, options, [&](const tool::Channel<Word>::Item& item) -> Status {
      return item.head.number == come[item.from]++ ? Status() : fail(Code::kInternal, "out of order");
    });
    for (std::uint32_t i = 0; i < 6; ++i) {
      for (std::uint32_t to = 0; to < worker.width(); ++to) PIF_TRY(words.send(to, {i}, net::Buffer(300)));
    }
    PIF_TRY(talk.until([&] { return std::count(come.begin(), come.end(), 6) == worker.width(); }));
    PIF_TRY(talk.end());
  }
  return team.in_turn([](std::string& state) -> Status { return state += "x", Status(); });
}

sim::Options travelling(double drop, double duplicate, double reorder) {
  sim::Options options;
  options.drop = drop;
  options.duplicate = duplicate;
  options.reorder = reorder;
  options.reorder_max = seconds(25);
  options.steps_max = UINT64_MAX / 2;
  return options;
}

}  // namespace

TEST_CASE("whichever letter is lost, the job fails within a minute and says whose, or nobody needed it") {
  Loss loss;
  sim::ToolFixture fixture(1, kLfss, talk_together, loss.spoil());
  std::uint64_t failed = 0, letters = 0;
  fixture.run([&](Client& client, sim::Actor& self) {
    REQUIRE(run_apart(client, self).error.empty());
    while (true) {
      loss.begin(letters);
      const Outcome outcome = run_apart(client, self);
      INFO("letter " << letters << ": " << outcome.error);
      if (!loss.has_lost()) break;
      ++letters;
      REQUIRE(outcome.took < seconds(60));
      if (outcome.error.empty()) continue;
      ++failed;
      CHECK(outcome.error.find(kLost) != std::string::npos);
      CHECK(outcome.error.find(" of worker 1 on lfs1 did not come") != std::string::npos);
    }
  });
  CHECK(letters > 20);
  CHECK(failed + 4 > letters);
}

TEST_CASE("the last letter of a worker that has ended is missed") {
  Loss loss;
  sim::ToolFixture fixture(
      1, kLfss,
      [](tool::Worker& worker) -> Status {
        PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
        return team.in_turn([](std::string& state) -> Status { return state += "x", Status(); });
      },
      loss.spoil());
  fixture.run([&](Client& client, sim::Actor& self) {
    loss.begin(0);
    const Outcome outcome = run_apart(client, self);
    CHECK(loss.has_lost());
    CHECK(outcome.took < seconds(60));
    INFO(outcome.error);
    CHECK(outcome.error.find("worker 2 on lfs2 failed: a message of worker 1 on lfs1 did not come") !=
          std::string::npos);
  });
}

TEST_CASE("a letter is missed also if its sender is busy, when a later one has come") {
  Loss loss;
  sim::World world(1);
  sim::Cluster cluster(world, 2);
  sim::Names names;
  const auto work = [](tool::Worker& worker, sim::Actor& self) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    tool::Talk talk(team);
    std::uint32_t come = 0;
    tool::Channel<Word> words(talk, 1, {},
                              [&](const tool::Channel<Word>::Item&) -> Status { return ++come, Status(); });
    if (worker.rank() == 1) {
      for (std::uint32_t i = 0; i < 3; ++i) PIF_TRY(words.send(0, {i}));
      if (!self.pause(std::chrono::hours(2))) return fail(Code::kCancelled, "killed");
    }
    PIF_TRY(talk.until([&] { return worker.rank() == 1 || come == 3; }));
    return talk.end();
  };
  sim::register_tool(cluster, names, work, loss.spoil());
  world.spawn_main(
      "tool",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        loss.begin(1);
        const Outcome outcome = run_apart(*client, self);
        CHECK(outcome.took < seconds(60));
        INFO(outcome.error);
        CHECK(outcome.error.find("worker 0 on lfs0 failed: 2 messages of worker 1 on lfs1 did not come") !=
              std::string::npos);
      },
      sim::Who{0, {0}});
  world.run();
}

TEST_CASE("letters that only come late, or twice, do no harm") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    sim::ToolFixture fixture(seed, kLfss, talk_together, {}, travelling(0, 0.3, 0.3));
    fixture.run([&](Client& client, sim::Actor& self) {
      const Outcome outcome = run_apart(client, self);
      INFO("seed " << seed);
      CHECK(outcome.error == "");
      CHECK(outcome.took > seconds(30));  // some were nearly as late as what counts as lost
    });
  }
}

TEST_CASE("where any letter may be lost, a job succeeds or fails for that within a minute") {
  unsigned failed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    sim::ToolFixture fixture(seed, kLfss, talk_together, {}, travelling(0.01, 0.1, 0));
    fixture.run([&](Client& client, sim::Actor& self) {
      const Outcome outcome = run_apart(client, self);
      INFO("seed " << seed << ": " << outcome.error);
      CHECK(outcome.took < seconds(60));
      CHECK((outcome.error.empty() || outcome.error.find(kLost) != std::string::npos));
      failed += outcome.error.empty() ? 0 : 1;
    });
  }
  CHECK(failed > 10);
}

}  // namespace pif
