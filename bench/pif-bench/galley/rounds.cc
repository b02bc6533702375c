// Parallel-open: members that read a file in rounds, against as many readers of files of their own.
#include <algorithm>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/crew.h"
#include "galley/need.h"
#include "galley/task.h"
#include "harness.h"
#include "pif/client/parallel.h"

namespace pif::bench {
namespace {

constexpr unsigned kMembers = 16;
constexpr std::uint64_t kBytesMax = 512u << 20;
constexpr std::uint64_t kInFlight = 64;  // rounds, and records of a request of the others
constexpr std::uint64_t kSeed = 8;

void make_records(Client& client, const std::string& path, std::uint64_t bytes, std::uint32_t record) {
  CreateOptions options;
  options.format = Format::fixed(record);
  File file = need(client.create(path, options));
  std::vector<std::byte> all(bytes);
  fill_contents(all, 0, kSeed);
  need(file.write(all));
  need(file.commit());
}

std::vector<Task> tasks_of(const System& system, Work work, std::uint32_t record, std::uint64_t bytes) {
  Task task;
  task.folder = system.folder();
  task.path = "/rounds";
  task.work = work;
  task.count = kMembers;
  task.record = record;
  task.bytes = bytes;
  task.seed = kSeed;
  task.request_records = kInFlight;
  std::vector<Task> tasks(kMembers, task);
  for (unsigned i = 0; i < kMembers; ++i) {
    tasks[i].index = i;
    if (work == Work::kReadRounds) continue;
    tasks[i].path += std::to_string(i);
    tasks[i].count = 1;
    tasks[i].bytes /= kMembers;
  }
  return tasks;
}

double rounds_rate(Context& c, Client& client, std::vector<Task> tasks) {
  File file = need(client.open("/rounds"));
  ParallelOptions options;
  options.members = kMembers;
  options.rounds_in_flight = kInFlight;
  ParallelController controller = need(ParallelController::open(file, options));
  for (Task& task : tasks) task.token = to_hex(controller.token());
  Crew crew(c, tasks);
  crew.go();
  while (need(controller.read(kInFlight / 2)) > 0) {
  }
  need(controller.close());  // members wait for that
  return rate_of(tasks, crew.finish());
}

void measure(Context& c, const System& system, Client& client, std::uint32_t record) {
  const std::uint64_t bytes = std::min(c.options.bytes, kBytesMax);
  make_records(client, "/rounds", bytes, record);
  for (unsigned i = 0; i < kMembers; ++i) make_records(client, fmt::format("/rounds{}", i), bytes / kMembers, record);
  const std::vector<Task> readers = tasks_of(system, Work::kReadRecords, record, bytes);
  std::vector<double> ours, others, ratios;
  for (unsigned round = 0; round < c.options.repeats; ++round) {
    ours.push_back(rounds_rate(c, client, tasks_of(system, Work::kReadRounds, record, bytes)));
    others.push_back(rate_of(readers, run_crew(c, readers)));
    ratios.push_back(ours.back() / others.back());
  }
  c.report.add({fmt::format("parallel-open, 16 members, {} KiB : alone", record >> 10), rate_text(median(ours)),
                rate_text(median(others)), median(ratios), 0.8, true, fmt::format("{} rounds in flight", kInFlight)});
}

}  // namespace

void bench_galley_rounds(Context& c) {
  const System system(c.options, "galley", 4, {}, c.watch);
  Client client = connect_to(system.folder());
  for (const std::uint32_t record : {4u << 10, 64u << 10}) measure(c, system, client, record);
}

}  // namespace pif::bench
