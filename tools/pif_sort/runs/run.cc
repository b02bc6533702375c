#include "runs/run.h"

#include <algorithm>

#include <fmt/format.h>

#include "runs/loaded.h"
#include "runs/merge.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kEndsAtOnce = 4096;
constexpr std::uint64_t kOwnBytes = 12u << 20;    // of a worker, whatever it sorts
constexpr std::size_t kFileRoomBytes = 4u << 20;  // gathered before they are written, by all threads together
constexpr std::size_t kFileRoomMin = 64u << 10;   // by one of them
constexpr std::uint64_t kBudgetAim =
    1u << 20;  // for runs even where there is not so much: many short ones cost more than they save
constexpr std::uint64_t kBudgetMin = 4u << 10;
constexpr std::uint64_t kWindowMin = 8u << 10;  // of a run on a disk: a page for each half
constexpr std::uint64_t kWindowMax = 2u << 20;  // more makes no disk faster

template <typename T>
std::span<T> as_array(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <typename T>
std::span<const T> as_array(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Where a part's records go in memory.
class MemoryRoom {
 public:
  explicit MemoryRoom(std::byte* at) : at_(at) {}
  Result<std::byte*> operator()(std::size_t bytes) { return std::exchange(at_, at_ + bytes); }
  Status finish() { return {}; }

 private:
  std::byte* at_;
};

// And in a scratch file, where there is a place for them already.
class FileRoom {
 public:
  FileRoom(const tool::Scratch& file, std::uint64_t offset, std::size_t buffer_bytes)
      : file_(file), offset_(offset), buffer_(buffer_bytes) {}
  Result<std::byte*> operator()(std::size_t bytes) {
    if (used_ + bytes > buffer_.size()) {
      PIF_TRY(finish());
      if (bytes > buffer_.size()) buffer_.resize(bytes);
    }
    return buffer_.data() + std::exchange(used_, used_ + bytes);
  }
  Status finish() {
    const auto made = std::span(std::as_const(buffer_)).first(std::exchange(used_, 0));
    return file_.write_at(std::exchange(offset_, offset_ + made.size()), made);
  }

 private:
  const tool::Scratch& file_;
  std::uint64_t offset_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
};
}  // namespace

// ---- all of a component --------------------------------------------------------------------------------------------

namespace {

Status load_parts(LoadedParts& parts, const First& first, Ties ties) {
  return first.records > 0 ? parts.load_first(first) : parts.load(ties);
}

// Fixed records: only what orders them takes memory.
Status load_in_place(tool::Worker& worker, Inputs& inputs, const KeyMaker& maker, const RunOptions& options,
                     Runs& runs) {
  runs.by_row = true;
  PIF_TRY_VALUE(runs.elements.memory, tool::SharedMemory::make(inputs.rows() * sizeof(Element)));
  const auto elements = as_array<Element>(runs.elements.memory.bytes());
  LoadedParts loaded(worker, inputs, maker, {0, inputs.rows()}, elements, false, &runs.records.file);
  PIF_TRY(load_parts(loaded, options.first, Ties::kNow));
  loaded.describe(runs.counts, runs.traits);
  return {};
}

Status load_in_memory(tool::Worker& worker, Inputs& inputs, const KeyMaker& maker, const tool::Scratch* mapped,
                      const RunOptions& options, Runs& runs) {
  PIF_TRY_VALUE(runs.elements.memory, tool::SharedMemory::make(inputs.rows() * sizeof(Element)));
  LoadedParts loaded(worker, inputs, maker, {0, inputs.rows()}, as_array<Element>(runs.elements.memory.bytes()),
                     options.apart, mapped);
  const bool fixed = inputs.format().is_fixed();
  PIF_TRY(load_parts(loaded, options.first, fixed ? Ties::kNow : Ties::kLater));
  loaded.describe(runs.counts, runs.traits);
  const std::uint64_t count = loaded.records();
  PIF_TRY_VALUE(runs.records.memory,
                tool::SharedMemory::make(fixed ? count * inputs.format().record_length : loaded.bytes()));
  if (!fixed) {
    PIF_TRY_VALUE(runs.ends.memory, tool::SharedMemory::make((count + loaded.size()) * sizeof(std::uint64_t)));
  }
  std::byte* const at = runs.records.memory.bytes().data();
  std::uint64_t* const ends = fixed ? nullptr : as_array<std::uint64_t>(runs.ends.memory.bytes()).data();
  PIF_TRY(loaded.put_in_order([at](std::uint64_t before) { return MemoryRoom(at + before); }, ends));
  return fixed || options.first.records > 0 ? Status() : loaded.settle(at, ends);
}

// What a record takes while its run is made, beside itself.
std::uint64_t row_overhead(const Format& format, const KeyMaker& maker) {
  const bool has_no_keys = maker.is_text() || (maker.fixed_length() && *maker.fixed_length() <= kChunkBytes);
  return sizeof(Element) + (format.is_fixed() ? 0 : 2 * sizeof(std::uint64_t)) +
         (has_no_keys ? 0 : sizeof(std::pair<std::string, Element>) + kChunkBytes);
}

// The rows from `first` on that can be sorted in `budget` bytes, one at least, end there.
Result<Row> end_of_run(Inputs& inputs, const KeyMaker& maker, Row first, std::uint64_t budget) {
  const Format& format = inputs.format();
  // A key that is not in the record's own bytes may be as long as the record, and is made where prefixes are equal.
  const std::uint64_t times = maker.fixed_length() || maker.is_text() ? 1 : 2;
  const std::uint64_t overhead = row_overhead(format, maker);
  if (format.is_fixed()) {
    const std::uint64_t rows = budget / (times * format.record_length + overhead);
    return first + std::clamp<std::uint64_t>(rows, 1, inputs.rows() - first);
  }
  std::uint64_t used = 0;
  std::vector<std::uint64_t> ends(kEndsAtOnce + 1);
  for (Row end = first; end < inputs.rows();) {
    const std::uint64_t count = std::min(kEndsAtOnce, inputs.rows() - end);
    PIF_TRY(inputs.read_ends(end, count, std::span(ends).first(count + 1)));
    for (std::uint64_t i = 0; i < count; ++i, ++end) {
      used += times * (ends[i + 1] - ends[i]) + overhead;
      if (used > budget && end > first) return end;
    }
  }
  return inputs.rows();
}

// Makes runs of what fits into a budget, in scratch files.
class RunMaker {
 public:
  RunMaker(tool::Worker& worker, Inputs& inputs, const KeyMaker& maker, std::uint64_t budget, const RunOptions& options,
           Runs& runs)
      : worker_(worker), inputs_(inputs), maker_(maker), budget_(budget), options_(options), runs_(runs) {}

  [[nodiscard]] Status make() {
    PIF_TRY_VALUE(runs_.elements.file, worker_.scratch());
    PIF_TRY_VALUE(runs_.records.file, worker_.scratch());
    if (!inputs_.format().is_fixed()) {
      PIF_TRY_VALUE(runs_.ends.file, worker_.scratch());
    }
    for (Row first = 0; first < inputs_.rows();) {
      PIF_TRY_VALUE(const Row end, end_of_run(inputs_, maker_, first, budget_));
      PIF_TRY(make_run({first, end}));
      first = end;
    }
    PIF_TRY(runs_.elements.file.map());
    PIF_TRY(runs_.records.file.map());
    return runs_.ends.file.map();
  }

 private:
  [[nodiscard]] Status make_run(Range rows);

  tool::Worker& worker_;
  Inputs& inputs_;
  const KeyMaker& maker_;
  std::uint64_t budget_;
  const RunOptions& options_;
  Runs& runs_;
};

Status RunMaker::make_run(Range rows) {
  PrivateMemory elements(rows.size() * sizeof(Element));
  const auto made = as_array<Element>(elements.bytes());
  LoadedParts loaded(worker_, inputs_, maker_, rows, made, options_.apart);
  PIF_TRY(load_parts(loaded, options_.first, Ties::kNow));
  loaded.describe(runs_.counts, runs_.traits);
  PIF_TRY_VALUE(const std::uint64_t begin, runs_.records.file.reserve(loaded.bytes()));
  const std::size_t buffer_bytes = std::max(kFileRoomBytes / std::max<std::size_t>(loaded.size(), 1), kFileRoomMin);
  const auto room_of = [&](std::uint64_t before) { return FileRoom(runs_.records.file, begin + before, buffer_bytes); };
  if (inputs_.format().is_fixed()) {
    PIF_TRY(loaded.put_in_order(room_of, nullptr));
  } else {
    std::vector<std::uint64_t> ends(loaded.records() + loaded.size());
    PIF_TRY(loaded.put_in_order(room_of, ends.data()));
    PIF_TRY(runs_.ends.file.append(std::as_bytes(std::span(ends))));
  }
  return runs_.elements.file.append(std::as_bytes(made.first(loaded.records())));
}

}  // namespace

bool holds_together(const Runs& runs, const Format& format, std::uint64_t records, const First& first) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : runs.counts) {
    if (count > records - all) return false;
    all += count;
  }
  const bool has_elements = all <= runs.elements.bytes().size() / sizeof(Element);
  if ((all != records && first.records == 0) || !has_elements) return false;
  if (format.is_fixed()) return all <= runs.records.bytes().size() / format.record_length;
  const std::size_t lists = runs.by_row ? 1 : runs.counts.size();  // of ends, each of one more than it has records
  return all == 0 || all + lists <= runs.ends.bytes().size() / sizeof(std::uint64_t);
}

std::vector<RunView> views_of(const Runs& runs, const Format& format, const KeyMaker& maker, std::uint32_t source) {
  std::vector<RunView> views;
  const auto elements = as_array<Element>(runs.elements.bytes());
  const auto ends = as_array<std::uint64_t>(runs.ends.bytes());
  const std::byte* records = runs.records.bytes().data();
  std::uint64_t first = 0, first_end = 0;
  for (const std::uint64_t count : runs.counts) {
    RunView view;
    view.source = source;
    view.elements = elements.subspan(first, count);
    view.records = records;
    view.record_length = format.record_length;
    view.by_row = runs.by_row;
    view.has_levels = wants_levels(maker);
    view.has_zeros = runs.traits.has_zeros;
    view.is_ended = runs.traits.is_ended;
    if (!format.is_fixed()) view.ends = ends.data() + first_end;
    if (!runs.by_row) records += format.is_fixed() ? count * format.record_length : view.ends[count];
    first += count;
    if (!runs.by_row) first_end += count + 1;
    if (count > 0) views.push_back(view);
  }
  return views;
}

void share_memory(std::span<RunView> runs, std::uint64_t memory, std::size_t merges) {
  const std::uint64_t half = (memory - std::min(memory, kOwnBytes)) / 2;
  const std::uint64_t bytes = std::clamp(half / std::max(runs.size() * merges, 1UL), kWindowMin, kWindowMax);
  for (RunView& run : runs) {
    const std::size_t count = run.elements.size();
    const std::uint64_t records = run.ends == nullptr ? run.record_length : (run.ends[count] - run.ends[0]) / count;
    const std::uint64_t beside = sizeof(Element) + (run.ends == nullptr ? 0 : sizeof(std::uint64_t));
    run.window = std::max<std::uint64_t>(bytes / (records + beside), 1);
  }
}

Result<Runs> load_runs(tool::Worker& worker, Inputs& inputs, const KeyMaker& maker, const RunOptions& options) {
  const std::uint64_t memory = options.memory;
  Runs runs;
  if (inputs.rows() == 0) return runs;
  if (memory == 0) {
    auto mapped = inputs.map();
    if (!mapped && mapped.error().code != Code::kUnsupported) return fail(std::move(mapped.error()));
    if (mapped && inputs.format().is_fixed()) {
      runs.records.file = std::move(*mapped);
      PIF_TRY(load_in_place(worker, inputs, maker, options, runs));
    } else {
      PIF_TRY(load_in_memory(worker, inputs, maker, mapped ? &*mapped : nullptr, options, runs));
    }
  } else {
    const std::uint64_t budget =
        memory >= kOwnBytes + kBudgetAim ? memory - kOwnBytes : std::clamp(memory / 8, kBudgetMin, kBudgetAim);
    PIF_TRY(RunMaker(worker, inputs, maker, budget, options, runs).make());
  }
  return runs;
}

Result<std::vector<Area>> share(tool::Team& team, const Area& own, bool writable) {
  PIF_TRY_VALUE(auto memories, team.share(own.memory));
  for (const tool::SharedMemory& memory : memories) memory.populate(0, memory.bytes().size());
  PIF_TRY_VALUE(auto files, writable ? team.share_writable(own.file) : team.share(own.file));
  std::vector<Area> all(memories.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = {std::move(memories[rank]), std::move(files[rank])};
  return all;
}

std::uint64_t run_bytes(const Format& format, const KeyMaker& maker, const FileLength& file_length) {
  return 2 * file_length.bytes + file_length.records * (row_overhead(format, maker) + sizeof(Bytes));
}

}  // namespace pif::sort
