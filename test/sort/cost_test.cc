// The formulas of a sort.
#include "../../tools/pif_sort/cost.h"

#include <catch2/catch.hpp>

using namespace pif;
using namespace pif::sort;

namespace {

constexpr std::uint64_t kMany = 10'000'000;

// 64 cores, so that no worker waits for one.
tool::Calibration calibration() {
  tool::Calibration made;
  made.hardware.cores = 64;
  tool::Constants& c = made.constants;
  c.sort_record = 100e-9;
  c.compare = 1e-9;
  c.merge_record = c.merge_run_record = 80e-9;
  c.merge_choice = 5e-9;
  c.pass_record = c.flow_record = 200e-9;
  c.token_act = 1e-6;
  c.token_key = 5e-9;
  c.token_pass = 99e-6;
  c.figure_act = 10e-6;
  c.figure_pass = 30e-6;
  return made;
}

CostShape shape_of(std::uint32_t width, std::uint64_t batch = kTokenBatch) {
  return {kMany, 100 * kMany, width, width, 0, batch};
}

double seconds(const CostShape& shape, MergeKind merge, const char* phase) {
  return predict(calibration(), shape, merge).find(phase)->seconds();
}
double merge_of(MergeKind kind, std::uint32_t width, std::uint64_t batch = kTokenBatch) {
  return seconds(shape_of(width, batch), kind, kMergePhase);
}

}  // namespace

TEST_CASE("a sort of twice the width takes half the time, as far as there are cores") {
  const auto sort = [](std::uint32_t width) { return seconds(shape_of(width), MergeKind::kSplit, kSortPhase); };
  CHECK(sort(2) / sort(4) == Approx(2).epsilon(0.05));
  CHECK(sort(1) == Approx(kMany * (100e-9 + 1e-9 * std::log2(kMany))));
  CHECK(merge_of(MergeKind::kSplit, 2) / merge_of(MergeKind::kSplit, 4) > 1.5);
  tool::Calibration narrow = calibration();
  narrow.hardware.cores = 2;
  const double two = predict(narrow, shape_of(2), MergeKind::kSplit).seconds();
  CHECK(predict(narrow, shape_of(4), MergeKind::kSplit).seconds() == Approx(two).epsilon(0.1));
}

TEST_CASE("one token decides on all records, however many workers there are") {
  const double blocks = std::ceil(10e6 / 4096);
  CHECK(merge_of(MergeKind::kPipelined, 64, 4096) == Approx(blocks * 100e-6 + 10e6 * 5e-9));
  CHECK(predict(calibration(), shape_of(64, 4096), MergeKind::kPipelined).find(kMergePhase)->largest() == "token_pass");
}

TEST_CASE("a pass moves all records, and there is one for each doubling of the width") {
  CHECK(merge_of(MergeKind::kToken, 2) == Approx(10e6 * 200e-9 / 2).epsilon(0.01));
  // Of three, the first pass merges two workers' records.
  CHECK(merge_of(MergeKind::kToken, 3) == Approx(10e6 * 200e-9 * 2 / 3 / 2 + 10e6 * 200e-9 / 3).epsilon(0.01));
  CHECK(merge_of(MergeKind::kToken, 4) == Approx(2 * 10e6 * 200e-9 / 4).epsilon(0.01));
}

TEST_CASE("figure 5.4 takes a hop for every record and every crossing") {
  CHECK(merge_of(MergeKind::kToken, 2, 0) == Approx(1.5 * 10e6 * 40e-6));
  CHECK(token_counts(shape_of(2, 0)).hops == Approx(15e6));
  CHECK(token_counts(shape_of(2, 0)).crossings == Approx(5e6));
  CHECK(token_counts(shape_of(4, 0)).hops == Approx(30e6));
  // Of ours, measured with two LFSs: 0.499 of the hops with blocks of 1 record, 0.861 of 16, 0.926 of 64.
  const auto crossing = [](std::uint64_t batch) {
    const TokenCounts counts = token_counts(shape_of(2, batch));
    return counts.crossings / counts.hops;
  };
  CHECK(crossing(1) == Approx(0.499).margin(0.02));
  CHECK(crossing(16) == Approx(0.861).margin(0.02));
  CHECK(crossing(64) == Approx(0.926).margin(0.02));
  CHECK(merge_of(MergeKind::kToken, 2, 1) == Approx(10e6 * (100e-6 + 5e-9)));
  CHECK(merge_of(MergeKind::kToken, 2, 1) > merge_of(MergeKind::kToken, 2, 64));
}

TEST_CASE("what is short of memory is sorted in more runs, which take longer to merge") {
  CostShape shape = shape_of(2);
  const double in_memory = seconds(shape, MergeKind::kSplit, kMergePhase);
  double before = in_memory;
  for (const std::uint64_t memory : {400u << 20, 100u << 20, 50u << 20}) {
    shape.memory = memory;
    const double now = seconds(shape, MergeKind::kSplit, kMergePhase);
    CHECK(now > before);
    before = now;
  }
}

TEST_CASE("more of anything takes no less time") {
  for (const auto& [merge, name] : kMerges) {
    for (const std::uint64_t batch : {0, 1, 64, 4096}) {
      CostShape small = shape_of(5, batch), large = small;
      large.records += 1000;
      large.bytes += 100'000;
      INFO(name << " " << batch);
      CHECK(predict(calibration(), large, merge).seconds() > predict(calibration(), small, merge).seconds());
      for (const tool::ConstantEntry& entry : tool::constant_entries()) {
        tool::Calibration slower = calibration();
        slower.constants.*entry.value += 1e-9;
        CHECK(predict(slower, small, merge).seconds() >= predict(calibration(), small, merge).seconds());
      }
    }
  }
}

TEST_CASE("nothing to sort takes what does not depend on it") {
  CostShape none;
  for (const auto& [merge, name] : kMerges) CHECK(predict(calibration(), none, merge).seconds() < 1e-3);
}

TEST_CASE("the thesis's constants have its names") {
  tool::Calibration made = calibration();
  made.constants.disk_read_byte_8 = made.constants.disk_write_byte_8 = 10e-9;
  const auto table = thesis_constants(made, shape_of(2, 0));
  const auto value = [&](const std::string& name) {
    const auto found = std::find_if(table.begin(), table.end(), [&](const auto& line) { return line.first == name; });
    return found == table.end() ? std::string("none") : found->second;
  };
  CHECK(value("T_act").find("10 us") == 0);
  CHECK(value("T_pass").find("30 us") == 0);
  CHECK(value("crossings") == "5000000 of 15000000 hops");
  CHECK(value("p_max").find("0.08 ") == 0);  // 2 us / (10 us + 30 us / 2)
  for (const char* const name : {"T_delete", "T_fixed", "T_disk"}) CHECK(value(name) != "none");
}
