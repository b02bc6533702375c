// A process of a galley benchmark.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/crew.h"
#include "galley/need.h"
#include "galley/task.h"
#include "harness.h"
#include "pif/base/limits.h"
#include "pif/client/parallel.h"

namespace pif::bench {
namespace {

constexpr std::byte kUntouched{0xee};  // what memory holds that nothing is read into

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

std::span<std::byte> place_of(const Task& task, std::vector<std::byte>& memory, std::uint64_t record) {
  return std::span(memory).subspan(record * task.memory_stride(), task.record);
}

// ---- reading --------------------------------------------------------------------------------------------------------

Turn read_one_by_one(const Task& task, File& file, std::vector<std::byte>& memory) {
  Turn turn{now(), 0, 0};
  for (turn.end = turn.begin; turn.end - turn.begin < task.seconds_max; turn.end = now(), ++turn.records) {
    const std::uint64_t record = turn.records % task.records();
    if (need(file.pread(place_of(task, memory, record), task.offset_of(record))) != task.record) die("a short read");
  }
  return turn;
}

Turn read_pieces(const Task& task, File& file, std::vector<std::byte>& memory) {
  Turn turn{now(), 0, 0};
  do {
    const auto bytes = need(file.read_pieces(task.pieces(0, task.records()), memory));
    if (bytes != task.records() * task.record) die("a short read");
    turn.records += task.records();
    turn.end = now();
  } while (turn.end - turn.begin < task.seconds_min);
  return turn;
}

void check_read(const Task& task, std::vector<std::byte>& memory, std::uint64_t records) {
  for (std::uint64_t record = 0; record < records; ++record) {
    const std::uint64_t end = (record + 1) * task.memory_stride();
    bool good = are_contents(place_of(task, memory, record), task.offset_of(record), task.seed);
    for (std::uint64_t at = end - (task.memory_stride() - task.record); at < end; ++at)
      good = good && memory[at] == kUntouched;
    if (!good) die(fmt::format("{}: wrong bytes were read of byte {}", task.path, task.offset_of(record)));
  }
}

Turn read(const Task& task, Client& client) {
  File file = need(client.open(task.path));
  std::vector<std::byte> memory(task.records() * task.memory_stride(), kUntouched);
  await_go();
  const Turn turn = task.one_by_one ? read_one_by_one(task, file, memory) : read_pieces(task, file, memory);
  check_read(task, memory, std::min(turn.records, task.records()));
  return turn;
}

// ---- writing --------------------------------------------------------------------------------------------------------

void write_one_by_one(const Task& task, File& file, std::vector<std::byte>& memory, Turn& turn) {
  for (; turn.records < task.records() && now() - turn.begin < task.seconds_max; ++turn.records)
    need(file.pwrite(place_of(task, memory, turn.records), task.offset_of(turn.records)));
}

void write_pieces(const Task& task, File& file, std::vector<std::byte>& memory, Turn& turn) {
  std::uint64_t size = task.request_records == 0 ? task.records() : task.request_records;
  for (; turn.records < task.records() && (turn.records == 0 || now() - turn.begin < task.seconds_max); size *= 4) {
    size = std::min(size, task.records() - turn.records);
    need(file.write_pieces(task.pieces(turn.records, size), memory));
    turn.records += size;
  }
}

Turn write(const Task& task, Client& client) {
  const bool is_new = task.work == Work::kWrite;
  File file = is_new ? need(client.join(from_hex(task.token))) : need(client.open(task.path, Client::Mode::kWrite));
  std::vector<std::byte> memory(task.records() * task.memory_stride(), kUntouched);
  for (std::uint64_t record = 0; record < task.records(); ++record)
    fill_contents(place_of(task, memory, record), task.offset_of(record), task.seed);
  await_go();
  Turn turn{now(), 0, 0};
  task.one_by_one ? write_one_by_one(task, file, memory, turn) : write_pieces(task, file, memory, turn);
  if (is_new) need(file.done());
  turn.end = now();
  return turn;
}

// ---- parallel-open --------------------------------------------------------------------------------------------------

// Here the file's own records are moved, of task.record bytes each.
Turn read_rounds(const Task& task, Client& client) {
  ParallelMember member = need(ParallelMember::join(client, from_hex(task.token), task.index));
  std::vector<std::byte> memory(task.records() * task.record, kUntouched);
  await_go();
  Turn turn{now(), 0, 0};
  for (std::size_t at = 0; at < memory.size();) {
    const auto moved = need(member.read(std::span(memory).subspan(at)));
    if (!moved) die("rounds ended early");
    at += moved->bytes;
    turn.records += moved->records;
  }
  turn.end = now();
  if (need(member.read(memory)))
    die("more rounds than the file has");  // who goes before the last round ends it for all
  check_read(task, memory, turn.records);
  return turn;
}

Turn read_records(const Task& task, Client& client) {
  File file = need(client.open(task.path));
  std::vector<std::byte> memory(task.records() * task.record, kUntouched);
  await_go();
  Turn turn{now(), 0, 0};
  while (turn.records < task.records()) {
    const std::uint64_t n = std::min(task.request_records, task.records() - turn.records);
    turn.records += need(file.read(std::span(memory).subspan(turn.records * task.record), n));
  }
  turn.end = now();
  if (!are_contents(memory, 0, task.seed)) die(task.path + ": wrong bytes were read");
  return turn;
}

Turn run_task(const Task& task, Client& client) {
  switch (task.work) {
    case Work::kRead: return read(task, client);
    case Work::kWrite:
    case Work::kOverwrite: return write(task, client);
    case Work::kReadRounds: return read_rounds(task, client);
    case Work::kReadRecords: return read_records(task, client);
  }
  die("a task that does not exist");
}

}  // namespace

int task_main(const std::string& text) {
  const Task task = Task::from_text(text);
  Client client = connect_to(task.folder, task.by_message ? DataPath::kMessages : DataPath::kAuto, task.route);
  report(run_task(task, client));
  return 0;
}

}  // namespace pif::bench
