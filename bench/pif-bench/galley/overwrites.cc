// Interleaved overwrites of a committed file by several clients at once, against dd of as many bytes, durable too.
#include <algorithm>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/crew.h"
#include "galley/need.h"
#include "galley/task.h"
#include "harness.h"

namespace pif::bench {
namespace {

constexpr unsigned kClients = 4;
constexpr std::uint64_t kOldSeed = 5, kNewSeed = 6;
constexpr std::uint64_t kFirstRequest = 1u << 12;  // records
constexpr std::uint32_t kChunkBytes = 4096;        // of records of that length

std::vector<Task> tasks_of(const Context& c, const System& system, std::uint64_t bytes) {
  Task task;
  task.folder = system.folder();
  task.path = "/overwritten";
  task.work = Work::kOverwrite;
  task.count = kClients;
  task.bytes = bytes;
  task.seed = kNewSeed;
  task.seconds_max = c.options.smoke ? 0.1 : 10;
  task.request_records = c.options.smoke ? 64 : kFirstRequest;
  std::vector<Task> tasks(kClients, task);
  for (unsigned i = 0; i < kClients; ++i) tasks[i].index = i;
  return tasks;
}

// What the LFSs' redo logs have taken so far.
std::uint64_t log_written(Client& client) {
  std::uint64_t bytes = 0;
  for (const DaemonStats& daemon : need(client.daemon_stats())) bytes += daemon.log_written;
  return bytes;
}

// Bytes of the chunks that were touched.
std::uint64_t touched_bytes(const std::vector<Task>& tasks, const std::vector<Turn>& turns) {
  std::vector<bool> touched(tasks[0].bytes / kChunkBytes);
  for (std::size_t i = 0; i < tasks.size(); ++i)
    for (std::uint64_t record = 0; record < turns[i].records; ++record)
      touched[tasks[i].offset_of(record) / kChunkBytes] = true;
  return static_cast<std::uint64_t>(std::count(touched.begin(), touched.end(), true)) * kChunkBytes;
}

double dd_seconds(const Context& c, std::uint64_t bytes) {
  return must_run({"dd", "if=" + c.source, "of=" + c.options.folder + "/dd", "bs=1M", "conv=fsync,notrunc",
                   "iflag=count_bytes", "count=" + std::to_string(bytes)});
}

}  // namespace

void bench_galley_overwrites(Context& c) {
  const System system(c.options, "galley", 4, {}, c.watch);
  Client client = connect_to(system.folder());
  const std::uint64_t bytes = std::min<std::uint64_t>(c.options.bytes / 4, 256u << 20);
  std::vector<double> ours, others, ratios, log_ratios;
  std::uint64_t moved = 0;
  for (unsigned round = 0; round < std::min(3u, c.options.repeats); ++round) {
    make_file(client, "/overwritten", bytes, kOldSeed, kChunkBytes);
    system.settle();
    const std::vector<Task> tasks = tasks_of(c, system, bytes);
    const std::uint64_t log_before = log_written(client);
    const std::vector<Turn> turns = run_crew(c, tasks);
    const std::uint64_t logged = log_written(client) - log_before;
    const std::uint64_t touched = touched_bytes(tasks, turns);
    c.report.note(
        fmt::format("overwrite: the redo logs took {} KiB; chunks touched {} KiB", logged >> 10, touched >> 10));
    log_ratios.push_back(static_cast<double>(logged) / static_cast<double>(touched));
    File file = need(client.open("/overwritten"));
    check_written(file, tasks, turns, kOldSeed);
    moved = 0;
    for (const Turn& turn : turns) moved += turn.records * tasks[0].record;
    dd_seconds(c, moved);  // makes the file that is overwritten then
    ours.push_back(rate_of(tasks, turns));
    others.push_back(static_cast<double>(moved) / dd_seconds(c, moved));
    ratios.push_back(ours.back() / others.back());
  }
  c.report.add({"overwrite 64 B, 4 clients interleaved : dd", rate_text(median(ours)), rate_text(median(others)),
                median(ratios), 0.25, true, fmt::format("{} KiB in 10 s at most", moved >> 10)});
  c.report.add({"overwrite 64 B: redo log : chunks touched", "", "", median(log_ratios), 1.3, false, ""});
}

}  // namespace pif::bench
