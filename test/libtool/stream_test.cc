// What workers find comes to the controller while they look for it, in the order of records.
#include <catch2/catch.hpp>

#include "libtool/sim_tools.h"
#include "pif/tool/stream.h"

namespace pif {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kRecords = 200;

// Every record of its component, with bytes of its own.
Status put_all(tool::Worker& worker, std::size_t bytes) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  tool::RecordStream stream(worker);
  for (Row row = 0; row < input->rows(); ++row) {
    const RecordNumber record = input->layout().record_at({input->index(), row});
    const std::vector<std::byte> found(bytes, static_cast<std::byte>(record));
    PIF_TRY(stream.put({0, record}, found));
    PIF_TRY(stream.pass({0, record + 1}));
  }
  return stream.end();
}

struct Outcome {
  Status status;
  std::size_t results = 0;
  std::uint64_t taken = 0;
  bool is_in_order = true;
  std::size_t workers_left = 0;
};

// A file of 200 records on four LFSs, and a job whose workers put them all into streams.
Outcome run_job(std::size_t bytes, const std::function<void(sim::Actor&, tool::StreamTaker&, const Outcome&)>& set) {
  sim::World world(7);
  sim::Cluster cluster(world, 4);
  sim::Names names;
  std::set<std::string> started;
  sim::register_tool(cluster, names, [&](tool::Worker& worker, sim::Actor& self) -> Status {
    started.insert(self.name());
    return put_all(worker, bytes);
  });
  Outcome outcome;
  const auto control = [&](sim::Actor& self, Client& client) -> Status {
    tool::ControllerOptions options = sim::sim_controller();
    tool::Controller controller(client, options);
    PIF_TRY(controller.open("/a"));
    tool::Job job;
    job.stream.take = [&](tool::StreamKey key, std::string_view found) -> Result<bool> {
      const bool is_it = key == tool::StreamKey{0, outcome.taken} && found.size() == bytes &&
                         static_cast<std::byte>(found.front()) == static_cast<std::byte>(key.record);
      outcome.is_in_order = outcome.is_in_order && is_it;
      ++outcome.taken;
      return true;
    };
    set(self, job.stream, outcome);
    PIF_TRY_VALUE(const auto results, controller.run(job));
    outcome.results = results.size();
    return {};
  };
  world.spawn_main(
      "client",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 4);
        REQUIRE(client);
        CreateOptions create;
        create.format = Format::fixed(100);
        create.width = 4;
        auto file = client->create("/a", create);
        REQUIRE(file);
        REQUIRE(file->write(std::vector<std::byte>(100 * kRecords)));
        REQUIRE(file->commit());
        outcome.status = control(self, *client);
        self.pause(seconds(2));
        for (const auto& name : started) outcome.workers_left += world.find(name) ? 1 : 0;
      },
      sim::Who{0, {0}});
  world.run();
  return outcome;
}

void take_at_once(sim::Actor&, tool::StreamTaker&, const Outcome&) {}

}  // namespace

TEST_CASE("all that workers put comes in order, once, and their results after it") {
  const std::size_t bytes = GENERATE(1, 1000, 100'000);
  const Outcome outcome = run_job(bytes, take_at_once);
  INFO((outcome.status ? "" : outcome.status.error().text));
  REQUIRE(outcome.status);
  CHECK(outcome.taken == kRecords);
  CHECK(outcome.is_in_order);
  CHECK(outcome.results == 4);
}

TEST_CASE("workers wait for who takes nothing for a while, however long") {
  const Outcome outcome = run_job(100'000, [](sim::Actor& self, tool::StreamTaker& taker, const Outcome& so_far) {
    const Time until = self.clock().now() + seconds(100);
    taker.is_full = [&self, &so_far, until] { return so_far.taken >= 3 && self.clock().now() < until; };
  });
  INFO((outcome.status ? "" : outcome.status.error().text));
  REQUIRE(outcome.status);
  CHECK(outcome.taken == kRecords);
  CHECK(outcome.is_in_order);
}

TEST_CASE("a job whose taker has seen enough ends well, and its workers everywhere") {
  const Outcome outcome = run_job(100'000, [](sim::Actor&, tool::StreamTaker& taker, const Outcome& so_far) {
    taker.take = [take = taker.take, &so_far](tool::StreamKey key, std::string_view found) -> Result<bool> {
      PIF_TRY(take(key, found));
      return so_far.taken < 5;
    };
  });
  INFO((outcome.status ? "" : outcome.status.error().text));
  REQUIRE(outcome.status);
  CHECK(outcome.taken == 5);
  CHECK(outcome.results == 0);
  CHECK(outcome.workers_left == 0);
}

TEST_CASE("an error of who takes ends the job") {
  const Outcome outcome = run_job(10, [](sim::Actor&, tool::StreamTaker& taker, const Outcome&) {
    taker.take = [](tool::StreamKey, std::string_view) -> Result<bool> { return fail(Code::kNoSpace, "it is full"); };
  });
  REQUIRE(!outcome.status);
  CHECK(outcome.status.error().code == Code::kNoSpace);
  CHECK(outcome.workers_left == 0);
}

}  // namespace pif
