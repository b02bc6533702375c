// What workers put together: arrays of numbers, values of any type, and what each has for each.
#include "pif/tool/reduce.h"

#include <numeric>
#include <random>

#include "libtool/tool_fixtures.h"

namespace pif::tool {
namespace {

using sim::must;

void put_empty(Client& client, std::uint32_t width) {
  CreateOptions options;
  options.width = width;
  sim::put(client, "/in", options, {});
}

// Runs `work` on so many workers; what each sets as its result.
std::vector<std::string> run_on(std::uint32_t width, const WorkerFunction& work) {
  std::vector<std::string> results;
  sim::ToolFixture fixture(width, width, work);
  fixture.run([&](Client& client) {
    put_empty(client, width);
    Controller controller(client, sim::sim_controller());
    must(controller.open("/in"));
    results = must(controller.run({}));
  });
  return results;
}

// Numbers of which the sum depends on the order.
std::vector<double> doubles_of(std::uint32_t rank, std::size_t count) {
  std::mt19937_64 random(rank + 1);
  std::vector<double> numbers(count);
  for (double& number : numbers)
    number = std::uniform_real_distribution<double>(-1, 1)(random) * std::pow(10, static_cast<double>(random() % 17));
  return numbers;
}

TEST_CASE("reduce: sums of doubles are those of the order of ranks, at all workers, at one, and part by part") {
  for (const std::uint32_t width : {1u, 2u, 5u, 11u}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{200'000}}) {
      std::vector<double> expected(count);
      for (std::uint32_t rank = 0; rank < width; ++rank)
        std::transform(expected.begin(), expected.end(), doubles_of(rank, count).begin(), expected.begin(),
                       [rank](double a, double b) { return rank == 0 ? b : a + b; });
      const auto results = run_on(width, [&](Worker& worker) -> Status {
        PIF_TRY_VALUE(Team team, Team::join(worker));
        const std::vector<double> own = doubles_of(worker.rank(), count);
        const std::span<const double> numbers(own);
        PIF_TRY_VALUE(const auto all, all_reduce(team, worker, numbers, std::plus<>()));
        PIF_TRY_VALUE(const auto one, reduce(team, worker, numbers, std::plus<>(), width - 1));
        PIF_TRY_VALUE(const auto part, reduce_scatter(team, worker, numbers, std::plus<>()));
        const Range own_part = part_of_array(count, worker.rank(), width);
        const bool is_right =
            all == expected && (worker.rank() + 1 == width ? one == expected : one.empty()) &&
            part.size() == own_part.size() &&
            std::equal(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(own_part.begin));
        worker.set_result(is_right ? "right" : "wrong");
        return {};
      });
      INFO(width << " workers, " << count << " numbers");
      CHECK(results == std::vector<std::string>(width, "right"));
    }
  }
}

TEST_CASE("reduce: prefix sums, largest values, and a worker with another number of numbers") {
  const auto before = run_on(6, [](Worker& worker) -> Status {
    PIF_TRY_VALUE(Team team, Team::join(worker));
    const std::vector<std::uint64_t> own = {worker.rank(), 100 - worker.rank()};
    const std::span<const std::uint64_t> numbers(own);
    PIF_TRY_VALUE(const auto sums, reduce_before(team, worker, numbers, std::plus<>()));
    const auto most = [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); };
    PIF_TRY_VALUE(const auto largest, all_reduce(team, worker, numbers, most));
    worker.set_result(fmt::format("{} {} {}", sums[0], sums[1], fmt::join(largest, " ")));
    return {};
  });
  CHECK(before == std::vector<std::string>{"0 0 5 100", "0 100 5 100", "1 199 5 100", "3 297 5 100", "6 394 5 100",
                                           "10 490 5 100"});
  sim::ToolFixture fixture(7, 3, [](Worker& worker) -> Status {
    PIF_TRY_VALUE(Team team, Team::join(worker));
    const std::vector<std::uint32_t> own(worker.rank() == 1 ? 30 : 3);
    PIF_TRY(all_reduce(team, worker, std::span<const std::uint32_t>(own), std::plus<>()));
    return {};
  });
  fixture.run([&](Client& client) {
    put_empty(client, 3);
    Controller controller(client, sim::sim_controller());
    must(controller.open("/in"));
    const auto result = controller.run({});
    REQUIRE_FALSE(result);
    CHECK(result.error().text.find("bytes of numbers") != std::string::npos);
  });
}

TEST_CASE("reduce: values of any type, what each has for each, and what one gathers") {
  for (const std::uint32_t width : {1u, 3u, 20u}) {
    const auto results = run_on(width, [width](Worker& worker) -> Status {
      PIF_TRY_VALUE(Team team, Team::join(worker));
      PIF_TRY_VALUE(std::string letters, team.all_reduce(std::string(1, static_cast<char>('a' + worker.rank())),
                                                         [](std::string& to, std::string_view value) -> Status {
                                                           to += value;
                                                           return {};
                                                         }));
      std::sort(letters.begin(), letters.end());
      std::vector<std::string> own;
      for (std::uint32_t to = 0; to < width; ++to) own.push_back(fmt::format("{}>{}", worker.rank(), to));
      PIF_TRY_VALUE(const auto come, team.all_to_all({own.begin(), own.end()}));
      PIF_TRY_VALUE(const auto gathered, team.gather(std::to_string(worker.rank()), width - 1));
      worker.set_result(fmt::format("{} {} {}", letters, fmt::join(come, ","), fmt::join(gathered, ",")));
      return {};
    });
    for (std::uint32_t rank = 0; rank < width; ++rank) {
      std::string letters, come, gathered;
      for (std::uint32_t from = 0; from < width; ++from) {
        letters += static_cast<char>('a' + from);
        come += fmt::format("{}{}>{}", from == 0 ? "" : ",", from, rank);
        gathered += fmt::format("{}{}", from == 0 ? "" : ",", from);
      }
      CHECK(results[rank] == fmt::format("{} {} {}", letters, come, rank + 1 == width ? gathered : ""));
    }
  }
}

struct Point {
  double x = 0;
  std::int32_t y = 0;
  static auto members(auto& self) { return std::tie(self.x, self.y); }
};
struct Wish {
  std::string name;
  std::vector<Point> points;
  std::vector<std::uint64_t> numbers;
  bool is_last = false;
  static auto members(auto& self) { return std::tie(self.name, self.points, self.numbers, self.is_last); }
};

TEST_CASE("reduce: structs are jobs' values and results") {
  std::vector<Wish> wishes;
  sim::ToolFixture fixture(3, 2, [](Worker& worker) -> Status {
    PIF_TRY_VALUE(Wish wish, worker.value_as<Wish>());
    wish.numbers.push_back(worker.rank());
    for (Point& point : wish.points) point.x *= 2;
    worker.set_result_as(wish);
    return {};
  });
  fixture.run([&](Client& client) {
    put_empty(client, 2);
    Controller controller(client, sim::sim_controller());
    must(controller.open("/in"));
    Job job;
    job.value = pack_head(Wish{"name", {{0.5, -3}, {-1e300, 7}}, {1, UINT64_MAX}, true});
    wishes = must(results_as<Wish>(must(controller.run(job))));
    CHECK_FALSE(results_as<Wish>({"nonsense"}));
  });
  REQUIRE(wishes.size() == 2);
  CHECK((wishes[1].name == "name" && wishes[1].is_last && wishes[1].points[0].x == 1.0 && wishes[1].points[1].y == 7));
  CHECK(wishes[1].numbers == std::vector<std::uint64_t>{1, UINT64_MAX, 1});
}

}  // namespace
}  // namespace pif::tool
