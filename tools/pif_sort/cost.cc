#include "cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "token/token_sort.h"

namespace pif::sort {
namespace {

constexpr double kElementBytes = 16;         // what orders a record
constexpr double kOwnBytes = 12u << 20;      // of a worker's memory, whatever it sorts (run.cc)
constexpr double kBlockBytesMax = 4u << 20;  // of a token's block (sorter.cc)
constexpr double kBudgetMin = 4u << 10, kBudgetAim = 1u << 20;

constexpr double kManyLog2 = 4;  // records of a block, from which on more of them do not go to more places

double log2_of(double x) { return std::log2(std::max(x, 1.0)); }

// The shape with what follows from it.
struct Job {
  Job(const tool::Calibration& calibration, const CostShape& shape)
      : c(calibration.constants),
        records(static_cast<double>(shape.records)),
        bytes(static_cast<double>(shape.bytes)),
        width(std::max(shape.width, 1U)),
        on_disk(shape.memory != 0) {
    const unsigned all = calibration.hardware.cores;
    const double cores = shape.threads == 0 ? all : std::min(all, std::max(shape.threads, shape.width));
    threads = std::max(1.0, std::floor((shape.threads == 0 ? cores : std::max(shape.threads, 1U)) / width));
    busy = std::min(cores, width * threads);
    alone = std::min(cores, width);
    merging = on_disk || shape.threads == 0 ? busy : std::min(busy, shape.threads * threads);
    budget = static_cast<double>(shape.memory) / width;
    block = std::max(1.0, std::min(static_cast<double>(shape.token_batch), kBlockBytesMax / shape.record_length()));
  }

  const tool::Constants& c;
  double records, bytes, width;
  bool on_disk;
  double threads = 1;  // of a worker
  double busy = 1;     // cores, where each worker uses all its threads
  double alone = 1;    // where it has one
  double merging = 1;  // where no more workers than threads were asked for have a share of the result
  double budget = 0;   // bytes of a worker
  double block = 1;    // records that a token decides on

  // Of a worker, in the local phase: it has room for so many records at once.
  double run_records() const {
    const double own = std::max(records / width, 1.0);
    if (!on_disk) return std::max(own / threads, 1.0);
    const double room =
        budget >= kOwnBytes + kBudgetAim ? budget - kOwnBytes : std::clamp(budget / 8, kBudgetMin, kBudgetAim);
    return std::max(1.0, std::min(own, room / (bytes / std::max(records, 1.0) + kElementBytes)) / threads);
  }
  double runs() const { return std::max(1.0, std::ceil(records / run_records() - 1e-9)); }
};

tool::Terms sort_terms(const Job& job) {
  const tool::Constants& c = job.c;
  tool::Terms terms = {{"sort_record", job.records * c.sort_record / job.busy},
                       {"sort_byte", job.bytes * c.sort_byte / job.busy},
                       {"compare", job.records * c.compare * log2_of(job.run_records()) / job.busy}};
  if (job.on_disk) {
    terms.emplace_back("run_record", job.records * c.run_record / job.alone);
    terms.emplace_back("run_byte", job.bytes * c.run_byte / job.alone);
  }
  return terms;
}

tool::Terms split_terms(const Job& job) {
  const tool::Constants& c = job.c;
  tool::Terms terms = {{"merge_fixed", c.merge_fixed},
                       {job.on_disk ? "merge_run_record" : "merge_record",
                        job.records * (job.on_disk ? c.merge_run_record : c.merge_record) / job.merging},
                       {"merge_byte", job.bytes * c.merge_byte / job.merging},
                       {"merge_choice", job.records * c.merge_choice * log2_of(job.runs()) / job.merging}};
  return terms;
}

// ---- token merges ---------------------------------------------------------------------------------------------------

// The merges of one depth of the tree.
struct Level {
  double records = 0;  // of all of them
  double workers = 0;
  double hops = 0;  // of all tokens
  double crossings = 0;
  double serial_hops = 0;  // of the token that travels most,
  double decided = 0;      // and what it decides on
};

std::vector<Level> levels_of(const CostShape& shape, double block) {
  std::vector<Level> levels;
  const double each = static_cast<double>(shape.records) / std::max(shape.width, 1U);
  for (const TreeNode& node : make_tree(std::max(shape.width, 1U))) {
    if (node.is_leaf() && node.depth > 0) continue;
    if (levels.size() <= node.depth) levels.resize(node.depth + 1);
    Level& level = levels[node.depth];
    const double records = each * node.width(), blocks = std::ceil(records / block);
    // Figure 5.4: one for each record, and one for each crossing, of which there are N / 2 (5.3.3). Ours: one for each
    // block, which nearly always ends after the rest of the other side's does, the more so the more records it has.
    const double crossings = node.is_leaf()           ? 0
                             : shape.token_batch == 0 ? records / 2
                                                      : blocks * (1 - 0.5 / std::sqrt(block));
    const double hops = shape.token_batch == 0 ? records + crossings : blocks;
    level.records += records;
    level.workers += node.width();
    level.hops += hops;
    level.crossings += crossings;
    level.serial_hops = std::max(level.serial_hops, hops);
    level.decided = std::max(level.decided, records);
  }
  return levels;
}

struct TokenTimes {
  double act, key, pass, work;
};
// Records of a block go to the more places the more there are, up to some.
TokenTimes token_times(const tool::Constants& c, bool figure, double block) {
  if (figure) return {c.figure_act, 0, c.figure_pass, c.figure_work};
  const double many = std::min(log2_of(block) / kManyLog2, 1.0);
  return {c.token_act, c.token_key, c.token_pass, c.token_work + many * std::max(c.block_work - c.token_work, 0.0)};
}

// The token is alone: nothing else makes it faster.
tool::Terms serial_terms(const Level& level, const TokenTimes& t) {
  return {{"token_act", level.serial_hops * t.act},
          {"token_key", level.decided * t.key},
          {"token_pass", level.serial_hops * t.pass}};
}

tool::Terms pass_terms(const Job& job, const Level& level, const TokenTimes& t, bool flows) {
  const tool::Constants& c = job.c;
  const double cores = std::min(job.alone, level.workers), length = job.bytes / std::max(job.records, 1.0);
  tool::Terms terms = {{"token_work", level.hops * t.work / cores}};
  if (flows) {
    terms.emplace_back("flow_record", level.records * c.flow_record / cores);
    terms.emplace_back("flow_byte", level.records * length * c.flow_byte / cores);
    return terms;
  }
  terms.emplace_back(job.on_disk ? "pass_disk_record" : "pass_record",
                     level.records * (job.on_disk ? c.pass_disk_record : c.pass_record) / cores);
  terms.emplace_back(job.on_disk ? "pass_disk_byte" : "pass_byte",
                     level.records * length * (job.on_disk ? c.pass_disk_byte : c.pass_byte) / cores);
  return terms;
}

void add_to(tool::Terms& sum, const tool::Terms& more) {
  for (const auto& [name, seconds] : more) {
    const auto found =
        std::find_if(sum.begin(), sum.end(), [&name = name](const auto& one) { return one.first == name; });
    if (found == sum.end()) {
      sum.emplace_back(name, seconds);
    } else {
      found->second += seconds;
    }
  }
}

// Before a level or pass begins to write, it has read a block of each reader, and nobody else has anything to do then:
// what that takes, of so many seconds for moving all records.
double fill_seconds(const Job& job, const tool::Terms& pass) {
  const double blocks = std::max(1.0, job.records / job.width / job.block);
  double moving = 0;
  for (const auto& [name, seconds] : pass) moving += name == "token_work" ? 0 : seconds;
  return moving / blocks;
}

// writing: becomes the seconds in which the output is written: of passes one after another that is the last one.
tool::Terms token_terms(const Job& job, const CostShape& shape, MergeKind merge, double& writing) {
  const TokenTimes times = token_times(job.c, shape.token_batch == 0, job.block);
  const std::vector<Level> levels = levels_of(shape, job.block);
  if (merge == MergeKind::kToken) {
    tool::Terms sum = {{"pass_fixed", static_cast<double>(levels.size()) * job.c.pass_fixed}};
    for (std::size_t depth = levels.size(); depth-- > 0;) {
      tool::Terms moved = pass_terms(job, levels[depth], times, false);
      moved.emplace_back("pass_fill", fill_seconds(job, moved));
      const tool::Terms pass = tool::longer(std::move(moved), serial_terms(levels[depth], times));
      writing = tool::seconds_of(pass);
      add_to(sum, pass);
    }
    return sum;
  }
  tool::Terms all;
  for (const Level& level : levels) add_to(all, pass_terms(job, level, times, true));
  all.emplace_back("flow_fill", fill_seconds(job, all) * static_cast<double>(levels.size() - 1));
  tool::Terms sum = {{"flow_fixed", job.c.flow_fixed}};
  add_to(sum, tool::longer(std::move(all), serial_terms(levels.front(), times)));
  writing = tool::seconds_of(sum);
  return sum;
}

std::string micros(double seconds) {
  const double value = seconds * 1e6;
  return value >= 1000 ? fmt::format("{:.0f} us", value) : fmt::format("{:.4g} us", value);
}

}  // namespace

double CostShape::record_length() const {
  return std::max(static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(records, 1)), 1.0);
}

tool::Prediction predict(const tool::Calibration& calibration, const CostShape& shape, MergeKind merge) {
  const Job job(calibration, shape);
  tool::Prediction prediction;
  prediction.add(kSortPhase, sort_terms(job));
  if (merge == MergeKind::kSplit) {
    prediction.add(kMergePhase, split_terms(job));
    prediction.writing = prediction.phases.back().seconds();
  } else {
    prediction.add(kMergePhase, token_terms(job, shape, merge, prediction.writing));
  }
  return prediction;
}

TokenCounts token_counts(const CostShape& shape) {
  const Job job(tool::Calibration(), shape);
  TokenCounts counts;
  for (const Level& level : levels_of(shape, job.block)) {
    counts.hops += level.hops;
    counts.crossings += level.crossings;
  }
  return counts;
}

std::vector<std::pair<std::string, std::string>> thesis_constants(const tool::Calibration& calibration,
                                                                  const CostShape& shape) {
  const Job job(calibration, shape);
  const tool::Constants& c = job.c;
  const TokenTimes t = token_times(c, shape.token_batch == 0, job.block);
  const double length = shape.record_length(), block = job.block;
  const double act = t.act + block * t.key, per_hop = shape.token_batch == 0 ? 0.5 : 1;
  const double disk = length * (c.disk_read_byte_8 + c.disk_write_byte_8);
  const double cached = c.pass_record + length * c.pass_byte;
  const auto p_max = [&](double each) { return fmt::format("{:.3g}", block * each / (act + per_hop * t.pass)); };
  const TokenCounts counts = token_counts(shape);
  return {
      {"T_act", fmt::format("{} a hop, which decides on {:.0f} record{}", micros(act), block, block > 1 ? "s" : "")},
      {"T_pass", micros(t.pass) + " a hop"},
      {"T_delete", micros(length * c.remove_byte) + " a record"},
      {"T_fixed", micros(c.pass_fixed) + " a pass"},
      {"T_disk", micros(disk) + " a record, read and written by one LFS"},
      {"crossings", fmt::format("{:.0f} of {:.0f} hops", counts.crossings, counts.hops)},
      {"p_max", p_max(disk) + " disks, where these are the limit"},
      {"p_max_cached", p_max(cached) + " cores, where records are in the page cache"}};
}

}  // namespace pif::sort
