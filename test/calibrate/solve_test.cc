// Constants from what was measured.
#include "../../tools/pif_calibrate/solve.h"

#include <catch2/catch.hpp>

#include "../../tools/pif_calibrate/machine.h"
#include "../../tools/pif_calibrate/runs.h"
#include "../../tools/pif_sort/cost.h"
#include "calibrate.pb.h"

namespace pif::calibrate {
namespace {

using C = tool::Constants;

Formula sort_phase(std::uint64_t records, std::uint32_t length) {
  return [=](const tool::Calibration& calibration) {
    const sort::CostShape shape{records, records * length, 4, 0, 0, 4096};
    return sort::predict(calibration, shape, sort::MergeKind::kSplit).find(sort::kSortPhase)->seconds();
  };
}

}  // namespace

TEST_CASE("a formula is solved for one constant") {
  tool::Calibration made, found;
  made.constants.compare = found.constants.compare = 1e-9;
  made.constants.sort_record = 70e-9;
  const Formula formula = sort_phase(1'000'000, 100);
  solve(found, &C::sort_record, formula(made), formula);
  CHECK(found.constants.sort_record == Approx(70e-9));
  solve(found, &C::sort_record, 0, formula);  // what is known of others is more than that
  CHECK(found.constants.sort_record == Approx(0).margin(1e-15));
}

TEST_CASE("a record and its bytes are told apart by runs of two lengths") {
  tool::Calibration made, found;
  made.constants.sort_record = 70e-9;
  made.constants.sort_byte = 0.2e-9;
  const Formula shorter = sort_phase(1'000'000, 100), longer = sort_phase(100'000, 1000);
  solve(found, &C::sort_record, &C::sort_byte, {100, shorter(made), shorter}, {1000, longer(made), longer});
  CHECK(found.constants.sort_record == Approx(70e-9));
  CHECK(found.constants.sort_byte == Approx(0.2e-9));
  // Long records that took less than short ones: then nothing is of the bytes.
  solve(found, &C::sort_record, &C::sort_byte, {100, shorter(made), shorter}, {1000, 0, longer});
  CHECK(found.constants.sort_byte == 0);
  CHECK(found.constants.sort_record == Approx(90e-9));
}

TEST_CASE("a record that takes nothing beside its bytes takes no less than nothing") {
  for (int i = 1; i <= 2000; ++i) {
    tool::Calibration calibration;
    const double length = 90 + i % 37;
    const auto takes = [&](double records_bytes) {
      return [records_bytes, length](const tool::Calibration& c) {
        return 1e5 * (c.constants.merge_record + records_bytes * length * c.constants.merge_byte);
      };
    };
    const double seconds = 1e-3 / i;
    solve(calibration, &tool::Constants::merge_record, &tool::Constants::merge_byte, {length, seconds, takes(1)},
          {10 * length, 10.5 * seconds, takes(10)});
    REQUIRE(calibration.constants.merge_record >= 0);
    REQUIRE(calibration.constants.merge_byte > 0);
  }
}

TEST_CASE("a tool's report is read, and of several the middle one counts") {
  const auto report = [](double work, double sort) {
    return parse_report("{\"seconds\": {\"work\": " + std::to_string(work) +
                        "}, \"parts\": {\"sort\": " + std::to_string(sort) + "}, \"counts\": {\"token_hops\": 3}}")
        .value();
  };
  const ToolRun middle = median_of({report(5, 1), report(2, 9), report(3, 2)});
  CHECK(middle.phase("work") == 3);
  CHECK(middle.part("sort") == 2);
  CHECK(middle.count("token_hops") == 3);
  CHECK(middle.phase("nothing") == 0);
  CHECK(middle.parts_together() == 2);
  for (const char* const text : {"", "[]", "{}", "{\"seconds\": 3}", "{\"seconds\": {\"work\": \"x\"}}"})
    CHECK(!parse_report(text));
}

TEST_CASE("of what workers measured the middle one counts, and none may say what cannot be") {
  std::vector<std::string> results;
  for (const double hop : {3e-5, 1e-3, 1e-5}) {
    message::Measured measured;
    measured.set_hop(hop);
    results.push_back(measured.SerializeAsString());
  }
  tool::Constants constants;
  REQUIRE(take_measured(results, constants));
  CHECK(constants.hop == 3e-5);
  for (const double wrong : {-1.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
    message::Measured measured;
    measured.set_sync(wrong);
    results[1] = measured.SerializeAsString();
    const Status taken = take_measured(results, constants);
    REQUIRE(!taken);
    CHECK(taken.error().text.find("worker 1") != std::string::npos);
  }
  results[1] = "\xff";
  CHECK(!take_measured(results, constants));
}

}  // namespace pif::calibrate
