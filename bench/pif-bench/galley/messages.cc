// By message: one request for all records of a process against one request for each, over access patterns and sizes of
// records (Nieuwejaar and Kotz, IOPADS 1996, figures 3 to 9; here requests block, where theirs were asynchronous).
#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/crew.h"
#include "galley/need.h"
#include "galley/plot.h"
#include "galley/task.h"
#include "harness.h"

namespace pif::bench {
namespace {

constexpr unsigned kClients = 16, kSmokeClients = 4;
constexpr double kSeconds = 1;  // that requests for single records take, and strided reads at least half of
constexpr std::uint64_t kOldSeed = 1, kNewSeed = 2;
constexpr std::uint64_t kSmallest = 64, kLargest = 64 << 10;
constexpr std::uint64_t kBytesMax = 128u << 20;

struct Cell {
  const char* name;
  Work work;
  Shape shape;
  double goal;  // of records of kSmallest bytes
};
constexpr Cell kCells[] = {
    {"read broadcast", Work::kRead, Shape::kBroadcast, 100},
    {"read partitioned", Work::kRead, Shape::kPartitioned, 60},
    {"read interleaved", Work::kRead, Shape::kInterleaved, 60},
    {"write partitioned", Work::kWrite, Shape::kPartitioned, 40},
    {"write interleaved", Work::kWrite, Shape::kInterleaved, 40},
    {"overwrite partitioned", Work::kOverwrite, Shape::kPartitioned, 0},
    {"overwrite interleaved", Work::kOverwrite, Shape::kInterleaved, 0},
};

class Messages {
 public:
  Messages(Context& context, unsigned lfss)
      : c_(context),
        clients_(context.options.smoke ? kSmokeClients : kClients),
        lfss_(lfss),
        system_(context.options, "galley", lfss, {}, context.watch),
        client_(connect_to(system_.folder())),
        bytes_(std::clamp<std::uint64_t>(context.options.bytes / 8, kLargest * clients_ * lfss, kBytesMax)) {}

  // Ratios by size of record.
  std::map<std::uint64_t, double> measure(const Cell& cell) {
    std::map<std::uint64_t, double> out;
    if (cell.work != Work::kWrite) make_file(client_, "/galley", bytes_, kOldSeed);
    for (std::uint64_t record = kSmallest; record <= kLargest; record *= c_.options.smoke ? 1024 : 4) {
      const bool counts = record == kSmallest && cell.goal > 0;
      std::vector<double> ones, alls, ratios;
      for (unsigned round = 0; round < (counts ? std::min(3u, c_.options.repeats) : 1u); ++round) {
        ones.push_back(rate(cell, record, true));
        alls.push_back(rate(cell, record, false));
        ratios.push_back(alls.back() / ones.back());
      }
      out[record] = median(ratios);
      add(cell, record, median(alls), median(ones), out[record], counts ? cell.goal : 0);
    }
    return out;
  }

 private:
  void add(const Cell& cell, std::uint64_t record, double all, double one, double ratio, double goal) {
    constexpr double kMiB = 1 << 20;
    c_.report.add({fmt::format("{} {} B, {} : {} LFSs", cell.name, record, clients_, lfss_),
                   fmt::format("{:.1f} MiB/s", all / kMiB), fmt::format("{:.2f} MiB/s", one / kMiB), ratio, goal, true,
                   ""});
  }

  std::vector<Task> tasks_of(const Cell& cell, std::uint64_t record, bool one_by_one) const {
    Task task;
    task.folder = system_.folder();
    task.route = c_.options.route;
    task.by_message = true;
    task.path = "/galley";
    task.work = cell.work;
    task.shape = cell.shape;
    task.count = clients_;
    task.lfss = lfss_;
    task.record = record;
    task.bytes = cell.shape == Shape::kBroadcast ? bytes_ / 8 : bytes_;
    task.seed = cell.work == Work::kRead ? kOldSeed : kNewSeed;
    task.one_by_one = one_by_one;
    task.seconds_max = c_.options.smoke ? 0.05 : kSeconds;
    task.seconds_min = task.seconds_max / 2;
    if (cell.work == Work::kOverwrite) task.request_records = 64;
    std::vector<Task> tasks(clients_, task);
    for (unsigned i = 0; i < clients_; ++i) tasks[i].index = i;
    return tasks;
  }

  double rate(const Cell& cell, std::uint64_t record, bool one_by_one) {
    std::vector<Task> tasks = tasks_of(cell, record, one_by_one);
    if (cell.work == Work::kWrite) return rate_of_new_file(tasks);
    const std::vector<Turn> turns = run_crew(c_, tasks);
    if (cell.work == Work::kOverwrite) check_overwritten(tasks, turns);
    return rate_of(tasks, turns);
  }

  // The file is never committed: what is measured is the way of the records, not the disk.
  double rate_of_new_file(std::vector<Task>& tasks) {
    File file = need(client_.create("/galley-new"));
    const std::string token = to_hex(need(file.share()));
    for (Task& task : tasks) task.token = token;
    const std::vector<Turn> turns = run_crew(c_, tasks);
    check_written(file, tasks, turns, {});
    need(file.abort());
    return rate_of(tasks, turns);
  }

  void check_overwritten(const std::vector<Task>& tasks, const std::vector<Turn>& turns) {
    File file = need(client_.open("/galley"));
    check_written(file, tasks, turns, kOldSeed);
    need(file.close());
    make_file(client_, "/galley", bytes_, kOldSeed);
  }

  Context& c_;
  const unsigned clients_, lfss_;
  const System system_;
  Client client_;
  const std::uint64_t bytes_;  // of the files
};

}  // namespace

void bench_galley_messages(Context& c) {
  c.report.note(
      fmt::format("galley: by message ({}), {} clients. ours: one request for all records of a client; other: "
                  "one request a record, for {} s at most. Overwrites: requests of 64, 256, ... records for "
                  "as long. Goal 0: none",
                  c.options.route, c.options.smoke ? kSmokeClients : kClients, kSeconds));
  std::vector<Line> lines;
  for (const unsigned lfss : {4u, 16u}) {
    if (c.options.smoke && lfss > 4) continue;
    Messages messages(c, lfss);
    for (const Cell& cell : kCells)
      lines.push_back({fmt::format("{} : {}", cell.name, lfss), messages.measure(cell), lfss > 4});
  }
  if (!c.options.svg_file.empty())
    std::ofstream(c.options.svg_file) << plot_svg(fmt::format("One request for all records : one for each, {} clients, "
                                                              "4 and 16 LFSs",
                                                              kClients),
                                                  lines);
}

}  // namespace pif::bench
