#include "pif/tool/fetch.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/packed.h"
#include "pif/tool/channel.h"
#include "pif/tool/message.h"

namespace pif::tool {
namespace {

constexpr std::size_t kAskedAtOnce = 8192;        // rows in a message
constexpr std::size_t kReplyBytes = 256u << 10;   // of records in a message, unless one is longer
constexpr std::uint64_t kQueuedBytes = 8u << 20;  // of replies that wait for others to take them
constexpr std::uint64_t kGapRows = 16;            // not asked for, but read with those around them

struct Asked {
  bool is_last = false;  // of its sender's
  static auto members(auto& self) { return std::tie(self.is_last); }
};
struct Given {
  std::uint32_t count = 0;  // records; the body has their lengths, then the records
  static auto members(auto& self) { return std::tie(self.count); }
};

// What this worker wants of one other: rows there, rising, and what it has got of them so far.
struct Wanted {
  std::vector<Row> rows;
  std::vector<std::span<const std::byte>> records;
  std::vector<net::Buffer> bodies;  // of messages, which have them
};

class Fetch {
 public:
  Fetch(Worker& worker, Team& team, Input& input)
      : input_(input),
        wanted_(worker.width()),
        talk_(team),
        asks_(talk_, 1, {}, [this](auto item) { return take_ask(std::move(item)); }),
        gifts_(talk_, 2, {}, [this](auto item) { return take_gift(std::move(item)); }) {}
  Status plan(Worker& worker, std::span<const RecordNumber> numbers);
  Status run();
  RowBatch batch() const;

 private:
  struct Place {
    std::uint32_t rank = 0;
    std::size_t at = 0;  // of that worker's rows
  };
  struct Task {
    std::uint32_t from = 0;
    std::vector<Row> rows;
    std::size_t done = 0;
  };
  Status ask(std::uint32_t rank);
  Status take_ask(Channel<Asked>::Item item);
  Status take_gift(Channel<Given>::Item item);
  Status give();
  bool has_all() const {
    return std::all_of(wanted_.begin(), wanted_.end(),
                       [](const Wanted& w) { return w.records.size() == w.rows.size(); });
  }

  Input& input_;
  std::vector<Wanted> wanted_;  // by rank
  std::vector<Place> places_;   // by number that was asked for
  std::deque<Task> tasks_;      // what others, and this one, want of this worker
  std::uint32_t ended_ = 0;     // of those who ask
  Talk talk_;
  Channel<Asked> asks_;
  Channel<Given> gifts_;
};

// ---- asking ---------------------------------------------------------------------------------------------------------

Status Fetch::plan(Worker& worker, std::span<const RecordNumber> numbers) {
  PIF_TRY_VALUE(const auto ranks, worker.ranks_on(input_));
  struct Sought {
    std::uint32_t rank = 0;
    Row row = 0;
    std::size_t i = 0;
    auto operator<=>(const Sought&) const = default;
  };
  std::vector<Sought> sought;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= input_.file_length().records)
      return fail(Code::kInvalid, fmt::format("{} has no record {}: it has {}", input_.file().path, numbers[i],
                                              input_.file_length().records));
    const Cell cell = input_.layout().locate(numbers[i]);
    PIF_ASSERT(cell.lfs < ranks.size(), cell.lfs, ranks.size());
    sought.push_back({ranks[cell.lfs], cell.row, i});
  }
  std::sort(sought.begin(), sought.end());
  places_.resize(numbers.size());
  for (const Sought& one : sought) {
    auto& rows = wanted_[one.rank].rows;
    if (rows.empty() || rows.back() != one.row) rows.push_back(one.row);
    places_[one.i] = {one.rank, rows.size() - 1};
  }
  return {};
}

Status Fetch::ask(std::uint32_t rank) {
  const std::vector<Row>& rows = wanted_[rank].rows;
  std::size_t at = 0;
  do {
    const auto part = std::span(rows).subspan(at, std::min(kAskedAtOnce, rows.size() - at));
    at += part.size();
    const std::string body = packed(std::span<const Row>(part));
    PIF_TRY(asks_.send(rank, {at == rows.size()}, net::Buffer::copy_of(std::as_bytes(std::span(body)))));
  } while (at < rows.size());
  return {};
}

Status Fetch::take_gift(Channel<Given>::Item item) {
  Wanted& wanted = wanted_[item.from];
  PIF_ASSERT(wanted.records.size() <= wanted.rows.size(), wanted.records.size(), wanted.rows.size());
  std::span<const std::byte> rest = std::as_const(item.body).span();
  const auto lengths = PackedNumbers<std::uint32_t>::take(rest, item.head.count);
  if (!lengths || item.head.count > wanted.rows.size() - wanted.records.size())
    return fail(Code::kInvalid, "records that were not asked for");
  for (std::size_t i = 0; i < lengths->size(); ++i) {
    if ((*lengths)[i] > rest.size()) return fail(Code::kInvalid, "records that are cut off");
    wanted.records.push_back(rest.first((*lengths)[i]));
    rest = rest.subspan((*lengths)[i]);
  }
  wanted.bodies.push_back(std::move(item.body));  // its bytes stay where they are
  return rest.empty() ? Status() : fail(Code::kInvalid, "more than the records that it names");
}

// ---- giving ---------------------------------------------------------------------------------------------------------

Status Fetch::take_ask(Channel<Asked>::Item item) {
  const auto bytes = std::as_const(item.body).span();
  const auto rows = PackedNumbers<Row>::all_of(bytes, bytes.size() / sizeof(Row));
  if (!rows || rows->size() > kAskedAtOnce) return fail(Code::kInvalid, "rows that cannot be read");
  Task task{item.from, {}, 0};
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const bool is_there = input_.is_here() && (*rows)[i] < input_.rows();
    if (!is_there || (i > 0 && (*rows)[i] <= (*rows)[i - 1])) return fail(Code::kInvalid, "rows that are not there");
    task.rows.push_back((*rows)[i]);
  }
  if (!task.rows.empty()) tasks_.push_back(std::move(task));
  ended_ += item.head.is_last ? 1 : 0;
  return {};
}

// A message full of the first task's records: rows that are close together are read at once.
Status Fetch::give() {
  PIF_ASSERT(!tasks_.empty());
  Task& task = tasks_.front();
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> records;
  RowBatch batch;
  while (task.done < task.rows.size() && records.size() < kReplyBytes) {
    const Row first = task.rows[task.done];
    std::size_t end = task.done + 1;
    while (end < task.rows.size() && task.rows[end] - task.rows[end - 1] <= kGapRows) ++end;
    PIF_TRY(input_.read(first, task.rows[end - 1] + 1 - first, kReplyBytes, batch));
    PIF_ASSERT(batch.first == first && batch.count > 0, first, batch.first, batch.count);  // so at least one is done
    Row row = batch.first;
    batch.for_each([&](std::span<const std::byte> record) {
      if (task.done == end || row++ != task.rows[task.done]) return;
      ++task.done;
      lengths.push_back(static_cast<std::uint32_t>(record.size()));
      records.insert(records.end(), record.begin(), record.end());
    });
  }
  net::Buffer body(lengths.size() * sizeof(std::uint32_t) + records.size());
  std::byte* const at = pack_numbers(std::span<const std::uint32_t>(lengths), body.data());
  std::copy(records.begin(), records.end(), at);
  const std::uint32_t to = task.from;
  if (task.done == task.rows.size()) tasks_.pop_front();
  return gifts_.send(to, {static_cast<std::uint32_t>(lengths.size())}, std::move(body));
}

Status Fetch::run() {
  for (std::uint32_t rank = 0; rank < wanted_.size(); ++rank) PIF_TRY(ask(rank));
  while (!has_all() || ended_ < wanted_.size() || !tasks_.empty()) {
    const bool gives = !tasks_.empty() && gifts_.queued_bytes() < kQueuedBytes;
    if (gives) PIF_TRY(give());
    PIF_TRY(talk_.go_on(!gives));
  }
  return talk_.end();
}

RowBatch Fetch::batch() const {
  RowBatch batch;
  batch.count = places_.size();
  for (const Place& place : places_) {
    PIF_ASSERT(place.at < wanted_[place.rank].records.size(), place.rank, place.at);
    const auto record = wanted_[place.rank].records[place.at];
    batch.lengths.push_back(static_cast<std::uint32_t>(record.size()));
    batch.data.insert(batch.data.end(), record.begin(), record.end());
  }
  return batch;
}

}  // namespace

Result<RowBatch> fetch(Worker& worker, Team& team, Input& input, std::span<const RecordNumber> numbers) {
  Fetch fetch(worker, team, input);
  PIF_TRY(fetch.plan(worker, numbers));
  PIF_TRY(fetch.run());
  return fetch.batch();
}

}  // namespace pif::tool
