// What becomes of a job when one of its parts ends before its time.
#include <catch2/catch.hpp>

#include <set>

#include <fmt/format.h>

#include "job.pb.h"
#include "libtool/sim_tools.h"
#include "pif/tool/exchange.h"

namespace pif {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kSoon = seconds(2);  // by then the tool has ended and no worker is left

Status exchange_rows(tool::Worker& worker) {
  PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
  PIF_TRY_VALUE(tool::Output* const output, worker.output(0));
  return tool::exchange(worker, *input, *output);
}

// Works until it is killed.
Status never_end(sim::Actor& self) {
  while (self.pause(milliseconds(10))) {
  }
  return fail(Code::kCancelled, "killed");
}

// A file system of four LFSs with the file "/a" on all of them, and a tool that makes "/b".
class Job {
 public:
  explicit Job(sim::WorkerBody work, std::uint64_t seed = 1, sim::Spoil spoil = {})
      : world_(seed), cluster_(world_, 4) {
    sim::register_tool(
        cluster_, names_,
        [this, work = std::move(work)](tool::Worker& worker, sim::Actor& self) -> Status {
          started_.insert(self.name());
          if (!is_late_) PIF_TRY(worker.output(0));  // a half-made component
          return work(worker, self);
        },
        std::move(spoil));
  }

  sim::World& world() { return world_; }
  sim::Cluster& cluster() { return cluster_; }
  tool::ControllerOptions& options() { return options_; }

  std::size_t workers_alive() const {
    std::size_t count = 0;
    for (const auto& name : started_) count += world_.find(name) ? 1 : 0;
    return count;
  }
  std::size_t workers_started() const { return started_.size(); }
  // Ends the first worker that is alive, as kill -9 would.
  void kill_a_worker() {
    for (const auto& name : started_) {
      if (const auto actor = world_.find(name)) return world_.kill(*actor);
    }
  }

  // Runs the tool; afterwards took(), workers_left() and target_exists() say what became of it.
  Status run() {
    Status outcome;
    world_.spawn_main(
        "client",
        [&](sim::Actor& self) {
          sim::ClientSide side(self);
          auto client = sim::sim_client(side, 4);
          REQUIRE(client);
          put(*client);
          start_ = self.clock().now();
          outcome = control(*client);
          took_ = self.clock().now() - start_;
          self.pause(kSoon - std::min(kSoon, took_));
          workers_left_ = workers_alive();
          target_exists_ = client->stat("/b").has_value();
        },
        sim::Who{0, {0}});
    world_.run();
    return outcome;
  }
  Duration took() const { return took_; }
  std::size_t workers_left() const { return workers_left_; }
  bool target_exists() const { return target_exists_; }
  void set_value(std::string value) { value_ = std::move(value); }
  const std::vector<std::string>& results() const { return results_; }
  // The output is created when the workers have ended.
  void create_late() { is_late_ = true; }

  static void put(Client& client) {
    CreateOptions create;
    create.format = Format::fixed(100);
    create.width = 4;
    auto file = client.create("/a", create);
    REQUIRE(file);
    REQUIRE(file->write(std::vector<std::byte>(100 * 200)));
    REQUIRE(file->commit());
  }

  Status control(Client& client) {
    tool::Controller controller(client, options_);
    PIF_TRY(controller.open("/a"));
    CreateOptions create;
    create.format = Format::fixed(100);
    create.nodes = {4, 3, 2, 1};
    if (!is_late_) PIF_TRY(controller.create("/b", create));
    tool::Job job;
    job.value = value_;
    PIF_TRY_VALUE(results_, controller.run(job));
    if (is_late_) PIF_TRY(controller.create("/b", create));
    if (is_late_) controller.set_file_length(0, {200, 20000});
    return controller.commit();
  }

 private:
  sim::Names names_;
  std::set<std::string> started_;
  tool::ControllerOptions options_ = sim::sim_controller();
  sim::World world_;
  sim::Cluster cluster_;
  std::string value_;
  bool is_late_ = false;
  std::vector<std::string> results_;  // of the workers
  Time start_{};
  Duration took_{};
  std::size_t workers_left_ = 0;
  bool target_exists_ = false;
};

bool says(const Status& status, const std::string& text) {
  return status.error().to_string().find(text) != std::string::npos;
}

TEST_CASE("a job whose workers all succeed commits its output") {
  Job job([](tool::Worker& worker, sim::Actor&) { return exchange_rows(worker); });
  REQUIRE(job.run());
  REQUIRE(job.target_exists());
  REQUIRE(job.workers_started() == 4);
  REQUIRE(job.workers_left() == 0);
}

TEST_CASE("workers are started through a tree, whatever its fan-out") {
  for (const std::uint32_t fan_out : {1u, 2u, 3u, 8u}) {
    Job job([](tool::Worker& worker, sim::Actor&) { return exchange_rows(worker); });
    job.options().fan_out = fan_out;
    const Status outcome = job.run();
    INFO("fan-out " << fan_out << (outcome ? "" : ": " + outcome.error().to_string()));
    REQUIRE(outcome);
    REQUIRE(job.workers_started() == 4);
    REQUIRE(job.target_exists());
  }
}

TEST_CASE("a worker's error ends the job everywhere, names it, and leaves no output") {
  Job job([](tool::Worker& worker, sim::Actor& self) -> Status {
    if (worker.rank() == 2) return fail(Code::kNoSpace, "the disk is full");
    return never_end(self);
  });
  const Status outcome = job.run();
  REQUIRE(!outcome);
  REQUIRE(outcome.error().code == Code::kNoSpace);
  REQUIRE(says(outcome, "worker 2 on lfs"));
  REQUIRE(says(outcome, "the disk is full"));
  REQUIRE(job.took() < kSoon);
  REQUIRE(job.workers_left() == 0);
  REQUIRE(!job.target_exists());
}

TEST_CASE("what a worker finds wrong is a failure of the job, not of its command line") {
  Job job([](tool::Worker& worker, sim::Actor& self) -> Status {
    if (worker.rank() == 1) return fail(Code::kInvalid, "no number in record 7");
    return never_end(self);
  });
  const Status outcome = job.run();
  REQUIRE(!outcome);
  REQUIRE(outcome.error().code != Code::kInvalid);
  REQUIRE(says(outcome, "no number in record 7"));
}

TEST_CASE("progress has an end, whatever the workers come to") {
  for (const bool fails : {false, true}) {
    Job job([fails](tool::Worker& worker, sim::Actor& self) -> Status {
      worker.progress(1, 2);
      self.pause(seconds(1));
      return fails ? fail(Code::kCorrupt, "bad") : exchange_rows(worker);
    });
    std::string seen;
    job.options().on_progress = [&](std::uint64_t, std::uint64_t) { seen += seen.ends_with('p') ? "" : "p"; };
    job.options().on_finish = [&] { seen += 'f'; };
    REQUIRE(job.run().has_value() == !fails);
    REQUIRE(seen == "pf");
  }
}

TEST_CASE("a report has what the tool has found, as values in JSON and as lines for people") {
  tool::Report report;
  report.add_result("sorted", false);
  report.add_result("first", std::uint64_t{7});
  report.add_result("where", "here \"there\"");
  const std::string expected = R"("results": {
    "sorted": false,
    "first": 7,
    "where": "here \"there\""
  })";
  REQUIRE(report.to_json().find(expected) != std::string::npos);
  REQUIRE(report.to_text().find("  sorted false\n  first 7\n") != std::string::npos);
}

TEST_CASE("a worker that is killed ends the job everywhere, and the message says of what it died") {
  Job job([](tool::Worker& worker, sim::Actor&) { return exchange_rows(worker); });
  job.world().on_step([&, done = false](std::uint64_t) mutable {
    if (done || job.workers_alive() < 4) return;
    done = true;
    job.kill_a_worker();
  });
  const Status outcome = job.run();
  REQUIRE(!outcome);
  REQUIRE(says(outcome, "died of signal 9"));
  REQUIRE(job.took() < kSoon);
  REQUIRE(job.workers_left() == 0);
  REQUIRE(!job.target_exists());
}

TEST_CASE("an LFS that is killed takes its worker with it and ends the job everywhere") {
  Job job([](tool::Worker&, sim::Actor& self) { return never_end(self); });
  job.world().on_step([&, done = false](std::uint64_t) mutable {
    if (done || job.workers_alive() < 4) return;
    done = true;
    job.cluster().kill_lfs(1);
  });
  const Status outcome = job.run();
  REQUIRE(!outcome);
  REQUIRE(says(outcome, "lfs1"));
  REQUIRE(job.took() < kSoon);
  REQUIRE(job.workers_left() == 0);
  REQUIRE(!job.target_exists());
}

TEST_CASE("a user who wants to end a job ends it everywhere") {
  Job job([](tool::Worker&, sim::Actor& self) { return never_end(self); });
  job.options().is_cancelled = [&] { return job.workers_alive() == 4; };
  const Status outcome = job.run();
  REQUIRE(!outcome);
  REQUIRE(outcome.error().code == Code::kCancelled);
  REQUIRE(job.took() < kSoon);
  REQUIRE(job.workers_left() == 0);
  REQUIRE(!job.target_exists());
}

TEST_CASE("a controller that is killed leaves neither workers nor output") {
  Job job([](tool::Worker&, sim::Actor& self) { return never_end(self); });
  std::size_t left = 99;
  job.world().spawn(
      "controller",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 4);
        REQUIRE(client);
        Job::put(*client);
        (void)job.control(*client).has_value();
      },
      sim::Who{0, {0}});
  job.world().spawn_main(
      "watcher",
      [&](sim::Actor& self) {
        while (job.workers_alive() < 4) self.pause(milliseconds(1));
        job.world().kill(*job.world().find("controller"));
        self.pause(kSoon);
        left = job.workers_alive();
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 4);
        REQUIRE(client);
        REQUIRE(client->stat("/b").error().code == Code::kNotFound);
      },
      sim::Who{0, {0}});
  job.world().run();
  REQUIRE(left == 0);
}

// Stops an actor, once, when all workers are there: as SIGSTOP and, later, SIGCONT.
void stall_when_working(Job& job, const std::string& name, Duration duration) {
  job.world().on_step([&job, name, duration, done = false](std::uint64_t) mutable {
    if (done || job.workers_alive() < 4) return;
    done = true;
    job.world().stall(*job.world().find(name), duration);
  });
}

TEST_CASE("a controller that is stopped for long finds its job as it was") {
  Job job([](tool::Worker& worker, sim::Actor& self) -> Status {
    self.pause(seconds(5));
    return exchange_rows(worker);
  });
  stall_when_working(job, "client", seconds(20));
  const Status outcome = job.run();
  INFO((outcome ? "" : outcome.error().to_string()));
  REQUIRE(outcome);
  REQUIRE(job.took() > seconds(20));
  REQUIRE(job.target_exists());
}

TEST_CASE("an LFS that is stopped for seconds ends no job, and one that is stopped for longer does, by its name") {
  for (const int stopped : {3, 7, 30}) {
    Job job([](tool::Worker& worker, sim::Actor& self) -> Status {
      self.pause(seconds(5));
      return exchange_rows(worker);
    });
    stall_when_working(job, "lfs1", seconds(stopped));
    const Status outcome = job.run();
    INFO(stopped << " s: " << (outcome ? "" : outcome.error().to_string()));
    REQUIRE(outcome.has_value() == (stopped < 8));
    if (!outcome) REQUIRE(says(outcome, "lfs1 has said nothing for 8 s"));
  }
}

TEST_CASE("an LFS that is silent from the beginning is waited for once, and not by every step of a job") {
  Job job([](tool::Worker& worker, sim::Actor&) { return exchange_rows(worker); });
  Status outcome;
  Duration took{};
  job.world().spawn_main(
      "client",
      [&](sim::Actor& self) {
        sim::ClientSide side(self), other_side(self);
        auto client = sim::sim_client(side, 4), other = sim::sim_client(other_side, 4);
        REQUIRE((client && other));
        Job::put(*other);
        job.world().stall(*job.world().find("lfs2"), seconds(60));
        const Time begin = self.clock().now();
        outcome = job.control(*client);
        took = self.clock().now() - begin;
      },
      sim::Who{0, {0}});
  job.world().run();
  REQUIRE(!outcome);
  INFO(outcome.error().to_string());
  CHECK(says(outcome, "lfs2 has said nothing for 8 s"));
  CHECK(took < seconds(10));
}

TEST_CASE("any single worker may die at any moment of an exchange, and nothing is left") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Job job([](tool::Worker& worker, sim::Actor&) { return exchange_rows(worker); }, seed);
    std::uint64_t seen = 0;
    job.world().on_step([&](std::uint64_t) {
      if (job.workers_alive() > 0 && ++seen == seed * 7) job.kill_a_worker();
    });
    const Status outcome = job.run();
    REQUIRE(job.workers_left() == 0);
    REQUIRE(job.target_exists() == outcome.has_value());
  }
}

// Other bytes for every worker.
std::string long_result(std::uint32_t rank, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 2654435761u >> 13) ^ rank);
  return bytes;
}

TEST_CASE("a value of some MiB comes to every worker, and results of some MiB from every worker") {
  const std::string value = long_result(99, 5'000'001);
  for (const std::uint32_t fan_out : {1u, 8u}) {
    Job job([&](tool::Worker& worker, sim::Actor&) -> Status {
      if (worker.value() != value) return fail(Code::kInternal, "another value");
      worker.set_result(long_result(worker.rank(), 3'000'000 + worker.rank()));
      return exchange_rows(worker);
    });
    job.options().fan_out = fan_out;
    job.set_value(value);
    const Status outcome = job.run();
    INFO((outcome ? "" : outcome.error().to_string()));
    REQUIRE(outcome);
    REQUIRE(job.results().size() == 4);
    for (std::uint32_t rank = 0; rank < 4; ++rank) CHECK((job.results()[rank] == long_result(rank, 3'000'000 + rank)));
    CHECK(job.target_exists());
  }
}

TEST_CASE("an output that no worker has seen is not committed with the length of one that was written") {
  Job job([](tool::Worker&, sim::Actor&) { return Status(); });
  job.create_late();
  const Status outcome = job.run();
  REQUIRE(!outcome);
  CHECK(says(outcome, "/b: the workers made 0 rows"));
  CHECK(!job.target_exists());
}

TEST_CASE("values and results may be as long as the headers say, and not longer") {
  for (const std::size_t more : {0, 1}) {
    Job with_value([](tool::Worker& worker, sim::Actor&) { return exchange_rows(worker); });
    with_value.set_value(std::string(tool::kJobValueBytesMax + more, 'v'));
    const Status told = with_value.run();
    REQUIRE(told.has_value() == (more == 0));
    if (!told) {
      CHECK(told.error().code == Code::kTooLarge);
      CHECK(says(told, fmt::format("a job's value of {} bytes; at most {} are allowed", tool::kJobValueBytesMax + 1,
                                   tool::kJobValueBytesMax)));
    }
    Job with_result([more](tool::Worker& worker, sim::Actor&) {
      if (worker.rank() == 2) worker.set_result(std::string(tool::kJobResultBytesMax + more, 'r'));
      return exchange_rows(worker);
    });
    const Status found = with_result.run();
    REQUIRE(found.has_value() == (more == 0));
    if (found) continue;
    CHECK(found.error().code == Code::kTooLarge);
    CHECK(says(found, fmt::format("a worker's result of {} bytes; at most {} are allowed", tool::kJobResultBytesMax + 1,
                                  tool::kJobResultBytesMax)));
    CHECK(says(found, "worker 2 on lfs"));
    CHECK(!with_result.target_exists());
  }
}

TEST_CASE("a worker whose progress or report cannot be read ends the job by its name") {
  for (const bool in_progress : {true, false}) {
    Job job(
        [](tool::Worker& worker, sim::Actor&) {
          worker.progress(1, 2);
          return exchange_rows(worker);
        },
        1,
        [&](net::Packet& packet) {
          if (in_progress && packet.envelope.has_worker_progress())
            packet.envelope.mutable_worker_progress()->set_progress("\xff");
          if (!in_progress && packet.envelope.has_worker_result())
            packet.envelope.mutable_worker_result()->set_result("\xff");
        });
    const Status outcome = job.run();
    REQUIRE(!outcome);
    CHECK(outcome.error().code == Code::kVersion);
    CHECK(says(outcome, " on lfs"));
    CHECK(says(outcome, "cannot be read"));
    CHECK(!job.target_exists());
  }
}

TEST_CASE("a worker's report of other outputs than the job has ends it by its name") {
  Job job([](tool::Worker& worker, sim::Actor&) { return exchange_rows(worker); }, 1,
          [](net::Packet& packet) {
            if (!packet.envelope.has_worker_result()) return;
            job::WorkerEnd end;
            REQUIRE(end.ParseFromString(packet.envelope.worker_result().result()));
            end.add_outputs();
            packet.envelope.mutable_worker_result()->set_result(end.SerializeAsString());
          });
  const Status outcome = job.run();
  REQUIRE(!outcome);
  CHECK(outcome.error().code == Code::kCorrupt);
  CHECK(says(outcome, "worker 0 sent nonsense: 2 outputs of a job that has 1"));
}

TEST_CASE("a program that is not there is an error that names it") {
  Job job([](tool::Worker&, sim::Actor& self) { return never_end(self); });
  job.options().program = "/bin/nothing";
  const Status outcome = job.run();
  REQUIRE(!outcome);
  REQUIRE(says(outcome, "/bin/nothing"));
  REQUIRE(!job.target_exists());
}

}  // namespace
}  // namespace pif
