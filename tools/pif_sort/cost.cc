#include "cost.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace pif::sort {
namespace {

constexpr unsigned kRounds = 8;  // of the word that is timed

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

// Seconds that a word takes from one worker to the next.
Result<double> time_hop(tool::Worker& worker, tool::Team& team) {
  PIF_TRY(team.barrier());
  team.begin_talk();
  const Time begin = worker.clock().now();
  const std::uint32_t next = worker.rank() + 1 < worker.width() ? worker.rank() + 1 : 0;
  if (worker.rank() == 0) PIF_TRY(team.send(next, "hop"));
  for (unsigned round = 0; round < kRounds; ++round) {
    PIF_TRY_VALUE(const auto word, team.receive(worker.clock().now() + std::chrono::minutes(1)));
    if (!word) return fail(Code::kTimeout, "the other workers do not answer");
    if (worker.rank() != 0 || round + 1 < kRounds) PIF_TRY(team.send(next, "hop"));
  }
  const double all = seconds_of(worker.clock().now() - begin);
  PIF_TRY(team.barrier());
  return all / (kRounds * worker.width());
}

double log2_of(double x) { return std::log2(std::max(x, 2.0)); }

}  // namespace

Result<Constants> measure(tool::Worker& worker, tool::Team& team, tool::Input& input, const KeyMaker& maker) {
  Constants out;
  PIF_TRY_VALUE(out.hop, time_hop(worker, team));
  out.crowd = std::max(1.0, static_cast<double>(worker.width()) / std::max(1U, std::thread::hardware_concurrency()));
  SampleTimes times;
  PIF_TRY(team.in_turn([&](std::string&) -> Status {  // else they would be in each other's way on few cores, sometimes
    PIF_TRY_VALUE(times, time_sample(worker, input, maker));
    return {};
  }));
  if (times.records == 0) return out;
  const auto count = static_cast<double>(times.records);
  out.load = seconds_of(times.load) / count;
  out.compare = seconds_of(times.sort) / (count * log2_of(count));
  out.move = seconds_of(times.move) / count;
  return out;
}

Constants mean_of(const std::vector<Constants>& all) {
  Constants sum;
  double count = 0;
  for (const Constants& one : all) {
    sum.hop = std::max(sum.hop, one.hop);
    sum.crowd = one.crowd;
    if (one.load == 0) continue;  // it has no records
    ++count;
    sum.load += one.load;
    sum.compare += one.compare;
    sum.move += one.move;
  }
  if (count == 0) return sum;
  return {sum.load / count, sum.compare / count, sum.move / count, sum.hop, sum.crowd};
}

Cost predict(const Constants& measured, const CostShape& shape, MergeKind merge) {
  Constants c = measured;
  for (double* const each : {&c.load, &c.compare, &c.move}) *each *= c.crowd;
  const auto records = static_cast<double>(shape.records), width = static_cast<double>(shape.width);
  const double own = records / width, passes = std::ceil(std::log2(width));
  Cost cost;
  cost.sort = own * (c.load + c.compare * log2_of(own) + (shape.on_disk ? c.move : 0));
  if (merge == MergeKind::kSplit) {
    cost.merge = own * (c.move + c.compare * log2_of(width));
    return cost;
  }
  // Every pass reads and moves all records, on all nodes at once; its token decides on one block after another.
  const double pass = own * (c.load + c.compare + c.move);
  const double batch = std::max<double>(static_cast<double>(shape.token_batch), 1);
  const double serial = records / batch * (c.hop + batch * measured.compare);
  double sum = pass;
  const double last = std::max(pass, serial);
  if (merge == MergeKind::kPipelined) {
    cost.merge = std::max(pass * std::max(passes, 1.0), serial);
    return cost;
  }
  for (double i = 1, each = serial / 2; i < passes; ++i, each /= 2) sum += std::max(pass, each);
  cost.merge = sum - pass + last;
  return cost;
}

}  // namespace pif::sort
