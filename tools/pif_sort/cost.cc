#include "cost.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "pif/tool/channel.h"

namespace pif::sort {
namespace {

constexpr unsigned kRounds = 8;  // of the word that is timed

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

struct Hop {
  std::uint32_t number = 0;
  static auto members(auto& self) { return std::tie(self.number); }
};

// Seconds that a word takes from one worker to the next: it goes round some times.
Result<double> time_hop(tool::Worker& worker, tool::Team& team) {
  const std::uint32_t next = worker.rank() + 1 < worker.width() ? worker.rank() + 1 : 0;
  const std::uint32_t last = kRounds * worker.width();
  PIF_TRY(team.barrier());
  tool::Talk talk(team, std::chrono::minutes(1));
  std::optional<tool::Channel<Hop>> hops;
  unsigned seen = 0;
  hops.emplace(talk, 1, tool::ChannelOptions(), [&](const tool::Channel<Hop>::Item& item) -> Status {
    ++seen;
    return item.head.number < last ? hops->send(next, {item.head.number + 1}) : Status();
  });
  const Time begin = worker.clock().now();
  if (worker.rank() == 0) PIF_TRY(hops->send(next, {1}));
  PIF_TRY(talk.until([&] { return seen == kRounds; }));
  const double all = seconds_of(worker.clock().now() - begin);
  PIF_TRY(talk.end());
  return all / last;
}

double log2_of(double x) { return std::log2(std::max(x, 2.0)); }

}  // namespace

Result<Constants> measure(tool::Worker& worker, tool::Team& team, tool::Input& input, const KeyMaker& maker) {
  Constants out;
  PIF_TRY_VALUE(out.hop, time_hop(worker, team));
  out.crowd = std::max(1.0, static_cast<double>(worker.width()) / std::max(1U, std::thread::hardware_concurrency()));
  out.threads = worker.threads();
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
    sum.threads = one.threads;
    if (one.load == 0) continue;  // it has no records
    ++count;
    sum.load += one.load;
    sum.compare += one.compare;
    sum.move += one.move;
  }
  if (count == 0) return sum;
  return {sum.load / count, sum.compare / count, sum.move / count, sum.hop, sum.crowd, sum.threads};
}

Cost predict(const Constants& measured, const CostShape& shape, MergeKind merge) {
  Constants c = measured;
  for (double* const each : {&c.load, &c.compare, &c.move}) *each *= c.crowd;
  const auto records = static_cast<double>(shape.records), width = static_cast<double>(shape.width);
  const double own = records / width, passes = std::ceil(std::log2(width));
  Cost cost;
  cost.sort = own * (c.load + c.compare * log2_of(own) + (shape.on_disk ? c.move : 0)) / c.threads;
  if (merge == MergeKind::kSplit) {
    cost.merge = own * (c.move + c.compare * log2_of(width)) / c.threads;
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
