#include "runs/run.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <hwy/contrib/sort/vqsort.h>
#include <sys/mman.h>

#include "pif/base/assert.h"
#include "pif/tool/parts.h"
#include "pif/tool/read_ahead.h"
#include "runs/merge.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kReadBytes = 1u << 20;  // at once: what is read is still in the cache when its keys are made
constexpr std::uint64_t kRowsMax = UINT32_MAX;  // an element has 32 bits for its row
constexpr std::uint64_t kEndsAtOnce = 4096;
constexpr std::uint64_t kOwnBytes = 12u << 20;    // of a worker, whatever it sorts
constexpr std::size_t kFileRoomBytes = 4u << 20;  // gathered before they are written, by all threads together
constexpr std::size_t kFileRoomMin = 64u << 10;   // by one of them
constexpr std::uint64_t kPartRows = 1024;         // a part of fewer is not worth a thread
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

// Memory of this process alone, in huge pages where there are any: records are picked from it in no order, and small
// pages would cost more than the records themselves.
class PrivateMemory {
 public:
  explicit PrivateMemory(std::size_t bytes) : bytes_(bytes) {
    void* const at =
        ::mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(at);
    (void)::madvise(at, bytes, MADV_HUGEPAGE);
  }
  ~PrivateMemory() { ::munmap(data_, std::max<std::size_t>(bytes_, 1)); }
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

using Advance = std::function<void(std::uint64_t bytes)>;  // so many more are read

// Consecutive rows of a component, in memory. Several may be read and sorted at once.
class Loaded {
 public:
  // elements: one for each row with data.
  // in_place: the component, mapped, where all of its rows stay.
  Loaded(tool::Input& input, const KeyMaker& maker, Range rows, std::span<Element> elements,
         const tool::Scratch* in_place = nullptr)
      : input_(input),
        maker_(maker),
        order_(maker, input.layout()),
        rows_(rows),
        elements_(elements),
        in_place_(in_place) {
    if (in_place != nullptr) base_ = in_place->bytes().data() + rows.begin * input.format().record_length;
    if (maker.fixed_length())
      lengths_.add(std::max(input.format().record_length + kNumberBytes, maker.full_key_bytes({})), elements.size());
  }

  [[nodiscard]] Status read(const Advance& advance);
  void sort();
  // The records in the order of the elements, where room(bytes) says. ends: as a run has them; null for fixed records.
  template <typename Room>
  [[nodiscard]] Status put_in_order(Room& room, std::uint64_t* ends) const;

  Range rows() const { return rows_; }
  std::uint64_t bytes() const { return records_->bytes().size(); }
  const Lengths& lengths() const { return lengths_; }  // as Runs has them
  std::span<const Element> elements() const { return elements_; }
  std::span<const std::uint64_t> ends() const { return ends_; }

 private:
  Bytes record(std::uint32_t row) const {
    const std::uint64_t at = row - rows_.begin, length = input_.format().record_length;
    if (ends_.empty()) return {base_ + at * length, length};
    return {base_ + (ends_[at] - ends_[0]), ends_[at + 1] - ends_[at]};
  }
  void make_room(std::uint64_t bytes);
  [[nodiscard]] Status read_fixed(const Advance& advance);
  [[nodiscard]] Status read_variable(const Advance& advance);
  [[nodiscard]] Status add(Row row);
  void sort_by_keys(std::span<Element> group);
  void sort_behind_prefix();

  tool::Input& input_;
  const KeyMaker& maker_;
  Order order_;
  Range rows_;
  std::span<Element> elements_;
  const std::byte* base_ = nullptr;  // the first row
  const tool::Scratch* in_place_;
  std::optional<PrivateMemory> records_;
  std::vector<std::uint64_t> ends_;  // variable: of the component's rows, from the first of these on
  std::size_t made_ = 0;             // of them
  Lengths lengths_;
  std::string key_;
};

Status Loaded::add(Row row) {
  const auto number = static_cast<std::uint32_t>(row);
  if (maker_.plain_offset()) {
    const auto* const at = reinterpret_cast<const char*>(record(number).data()) + *maker_.plain_offset();
    elements_[made_++] = element_of({at, std::min<std::size_t>(*maker_.fixed_length(), kPrefixBytes)}, number);
    return {};
  }
  PIF_TRY(maker_.make_key(record(number), key_));
  if (!maker_.fixed_length())
    lengths_.add(std::max<std::uint64_t>(record(number).size() + kNumberBytes, maker_.full_key_bytes(key_)));
  elements_[made_++] = element_of(key_, number);
  return {};
}

// For all rows, or for what is read at once.
void Loaded::make_room(std::uint64_t bytes) {
  if (in_place_ != nullptr) return;
  records_.emplace(bytes);
  base_ = records_->bytes().data();
}

Status Loaded::read_fixed(const Advance& advance) {
  const std::uint64_t length = input_.format().record_length;
  const std::uint64_t chunk = component::chunk_bytes_for(input_.format());
  const std::uint64_t step = std::max<std::uint64_t>(1, kReadBytes / chunk) * (chunk / length);
  make_room(rows_.size() * length);
  for (Row first = rows_.begin; first < rows_.end; first += step) {
    const std::uint64_t count = std::min(step, rows_.end - first);
    if (in_place_ != nullptr) {
      PIF_TRY(input_.check(first * length, count * length, *in_place_));
    } else {
      PIF_TRY(
          input_.reader().read_rows(first, count, {records_->bytes().data() + (first - rows_.begin) * length, length}));
    }
    for (Row row = first; row < first + count; ++row) PIF_TRY(add(row));
    advance(count * length);
  }
  return {};
}

Status Loaded::read_variable(const Advance& advance) {
  ends_.resize(rows_.size() + 1);
  PIF_TRY(input_.reader().read_ends(rows_.begin, rows_.size(), ends_));
  make_room(ends_.back() - ends_[0]);
  if (in_place_ != nullptr) base_ += ends_[0];
  for (std::uint64_t first = 0; first < rows_.size();) {
    std::uint64_t end = first + 1;
    while (end < rows_.size() && ends_[end + 1] - ends_[first] <= kReadBytes) ++end;
    const std::uint64_t bytes = ends_[end] - ends_[first];
    if (in_place_ != nullptr) {
      PIF_TRY(input_.check(ends_[first], bytes, *in_place_));
    } else if (bytes > 0) {
      PIF_TRY(input_.reader().read_bytes(ends_[first], records_->bytes().subspan(ends_[first] - ends_[0], bytes)));
    }
    for (std::uint64_t i = first; i < end; ++i) PIF_TRY(add(rows_.begin + i));
    advance(bytes);
    first = end;
  }
  return {};
}

Status Loaded::read(const Advance& advance) {
  PIF_TRY(input_.format().is_fixed() ? read_fixed(advance) : read_variable(advance));
  PIF_ASSERT(made_ == elements_.size(), made_, elements_.size());
  return {};
}

// Elements of equal prefix, by row. Each key is made once; not even that where all records are the same.
void Loaded::sort_by_keys(std::span<Element> group) {
  const auto same = [](Bytes a, Bytes b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
  };
  const Bytes first = record(row_of(group[0]));
  if (std::all_of(group.begin() + 1, group.end(), [&](const Element& e) { return same(first, record(row_of(e))); }))
    return;
  std::vector<std::pair<std::string, Element>> keyed(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    (void)maker_.make_key(record(row_of(group[i])), keyed[i].first);  // it was made before, so it can be made
    keyed[i].second = group[i];
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
    const int by_key = a.first.compare(b.first);
    return by_key != 0 ? by_key < 0 : row_of(a.second) < row_of(b.second);
  });
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = keyed[i].second;
}

// Equal prefixes are together now, by row; where keys go on behind them, the rest decides.
void Loaded::sort_behind_prefix() {
  for (std::size_t begin = 0; begin < elements_.size();) {
    std::size_t end = begin + 1;
    while (end < elements_.size() && compare_prefix(elements_[begin], elements_[end]) == 0) ++end;
    if (end - begin > 1) sort_by_keys(elements_.subspan(begin, end - begin));
    begin = end;
  }
}

void Loaded::sort() {
  hwy::Sorter()(elements_.data(), elements_.size(), hwy::SortAscending());
  if (!order_.prefix_is_all()) sort_behind_prefix();
}

template <typename Room>
Status Loaded::put_in_order(Room& room, std::uint64_t* ends) const {
  const std::size_t count = elements_.size();
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) fetch(record(row_of(elements_[i + kAhead])));
    const Bytes next = record(row_of(elements_[i]));
    PIF_TRY_VALUE(std::byte* const to, room(next.size()));
    if (!next.empty()) std::memcpy(to, next.data(), next.size());
    end += next.size();
    if (ends != nullptr) ends[i + 1] = end;
  }
  return {};
}

// Consecutive rows in as many parts as the worker has threads. Each is loaded and sorted by one of them, and is a run:
// merging a few more costs less than to make one of them.
class LoadedParts {
 public:
  // As Loaded.
  LoadedParts(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, Range rows, std::span<Element> elements,
              const tool::Scratch* in_place = nullptr);

  [[nodiscard]] Status load();  // and sort
  // Adds the runs, in the order of parts.
  void describe(Runs& runs) const;
  // Each part on a thread: its records go to the place that room_of(bytes of the parts before it) makes, as Loaded's do
  // to a room. ends: of each part, one behind another.
  template <typename RoomOf>
  [[nodiscard]] Status put_in_order(const RoomOf& room_of, std::uint64_t* ends) const;

  std::size_t size() const { return parts_.size(); }
  std::uint64_t bytes() const;
  // ends: of all rows and where the first one begins. Variable records.
  void copy_ends(std::span<std::uint64_t> ends) const;

 private:
  tool::Worker& worker_;
  tool::Input& input_;
  Row first_;
  std::vector<std::unique_ptr<Loaded>> parts_;
};

LoadedParts::LoadedParts(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, Range rows,
                         std::span<Element> elements, const tool::Scratch* in_place)
    : worker_(worker), input_(input), first_(rows.begin) {
  const Format& format = input.format();
  const std::uint64_t unit =
      format.is_fixed() ? std::max<std::uint64_t>(component::chunk_bytes_for(format) / format.record_length, 1) : 1;
  const tool::Parts parts(rows, {.most = worker.threads(), .least = kPartRows, .unit = unit});  // whole chunks
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto its = elements.subspan(parts[i].begin - rows.begin, parts[i].size());
    parts_.push_back(std::make_unique<Loaded>(input, maker, parts[i], its, in_place));
  }
}

Status LoadedParts::load() {
  const std::uint64_t before = input_.bytes_read();
  std::atomic<std::uint64_t> read = 0;
  const Status loaded = worker_.run_tasks(parts_.size(), [&](std::size_t i) -> Status {
    PIF_TRY(parts_[i]->read([&](std::uint64_t bytes) {
      read += bytes;
      if (i == 0) worker_.progress(before + read, 2 * input_.bytes());  // that part is on the worker's own thread
    }));
    parts_[i]->sort();
    return {};
  });
  input_.count_read(read);
  return loaded;
}

void LoadedParts::describe(Runs& runs) const {
  for (const auto& part : parts_) {
    runs.counts.push_back(part->elements().size());
    runs.lengths.add(part->lengths());
  }
}

template <typename RoomOf>
Status LoadedParts::put_in_order(const RoomOf& room_of, std::uint64_t* ends) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t*>> begins;
  std::uint64_t bytes = 0;
  for (const auto& part : parts_) {
    begins.emplace_back(bytes, ends);
    bytes += part->bytes();
    if (ends != nullptr) ends += part->elements().size() + 1;
  }
  return worker_.run_tasks(parts_.size(), [&](std::size_t i) -> Status {
    auto room = room_of(begins[i].first);
    PIF_TRY(parts_[i]->put_in_order(room, begins[i].second));
    return room.finish();
  });
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

std::uint64_t LoadedParts::bytes() const {
  std::uint64_t all = 0;
  for (const auto& part : parts_) all += part->bytes();
  return all;
}

void LoadedParts::copy_ends(std::span<std::uint64_t> ends) const {
  for (const auto& part : parts_)
    std::memcpy(ends.data() + (part->rows().begin - first_), part->ends().data(), part->ends().size_bytes());
}

}  // namespace

void RunView::read_ahead(std::size_t begin, std::size_t end) const {
  PIF_ASSERT(!by_row && begin <= end && end <= elements.size(), by_row, begin, end);
  tool::read_ahead(std::as_bytes(elements.subspan(begin, end - begin)));
  if (ends == nullptr) return tool::read_ahead({records + begin * record_length, (end - begin) * record_length});
  tool::read_ahead(std::as_bytes(std::span(ends + begin, end - begin + 1)));
  tool::read_ahead({records + ends[begin], ends[end] - ends[begin]});
}

RecordNumber Order::number(const RunView& run, std::size_t i) const {
  return layout_->record_at({run.lfs, row_of(run.elements[i])});
}

int Order::compare_keys(Bytes a, Bytes b) {
  if (a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0)) return 0;
  (void)maker_->make_key(a, first_);  // it was made before, so it can be made
  (void)maker_->make_key(b, second_);
  return first_.compare(second_);
}

int Order::compare_keys(const RunView& a, std::size_t i, const RunView& b, std::size_t j) {
  const int by_prefix = compare_prefix(a.elements[i], b.elements[j]);
  return by_prefix != 0 || prefix_is_all_ ? by_prefix : compare_keys(a.record(i), b.record(j));
}

bool Order::less(const RunView& a, std::size_t i, const RunView& b, std::size_t j) {
  const int by_key = compare_keys(a, i, b, j);
  return by_key != 0 ? by_key < 0 : number(a, i) < number(b, j);
}

// ---- all of a component --------------------------------------------------------------------------------------------

namespace {

// Only what orders the records takes memory.
Status load_in_place(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, Runs& runs) {
  runs.by_row = true;
  PIF_TRY_VALUE(runs.elements.memory, tool::SharedMemory::make(input.rows() * sizeof(Element)));
  const auto elements = as_array<Element>(runs.elements.memory.bytes());
  LoadedParts loaded(worker, input, maker, {0, input.rows()}, elements, &runs.records.file);
  PIF_TRY(loaded.load());
  loaded.describe(runs);
  if (input.format().is_fixed()) return {};
  PIF_TRY_VALUE(runs.ends.memory, tool::SharedMemory::make((input.rows() + 1) * sizeof(std::uint64_t)));
  loaded.copy_ends(as_array<std::uint64_t>(runs.ends.memory.bytes()));
  return {};
}

Status load_in_memory(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, Runs& runs) {
  const std::uint64_t count = input.rows();
  PIF_TRY_VALUE(runs.elements.memory, tool::SharedMemory::make(count * sizeof(Element)));
  LoadedParts loaded(worker, input, maker, {0, input.rows()}, as_array<Element>(runs.elements.memory.bytes()));
  PIF_TRY(loaded.load());
  loaded.describe(runs);
  const bool fixed = input.format().is_fixed();
  PIF_TRY_VALUE(runs.records.memory,
                tool::SharedMemory::make(fixed ? count * input.format().record_length : loaded.bytes()));
  if (!fixed) {
    PIF_TRY_VALUE(runs.ends.memory, tool::SharedMemory::make((count + loaded.size()) * sizeof(std::uint64_t)));
  }
  std::byte* const at = runs.records.memory.bytes().data();
  return loaded.put_in_order([at](std::uint64_t before) { return MemoryRoom(at + before); },
                             fixed ? nullptr : as_array<std::uint64_t>(runs.ends.memory.bytes()).data());
}

// What a record takes while its run is made, beside itself.
std::uint64_t row_overhead(const Format& format, const KeyMaker& maker) {
  const bool prefix_is_all = maker.fixed_length() && *maker.fixed_length() <= kPrefixBytes;
  return sizeof(Element) + (format.is_fixed() ? 0 : 2 * sizeof(std::uint64_t)) +
         (prefix_is_all ? 0 : sizeof(std::pair<std::string, Element>) + kPrefixBytes);
}

// The rows from `first` on that can be sorted in `budget` bytes, one at least, end there.
Result<Row> end_of_run(tool::Input& input, const KeyMaker& maker, Row first, std::uint64_t budget) {
  const Format& format = input.format();
  // A key that is not in the record's own bytes may be as long as the record, and is made where prefixes are equal.
  const std::uint64_t times = maker.fixed_length() ? 1 : 2;
  const std::uint64_t overhead = row_overhead(format, maker);
  if (format.is_fixed()) {
    const std::uint64_t rows = budget / (times * format.record_length + overhead);
    return first + std::clamp<std::uint64_t>(rows, 1, input.rows() - first);
  }
  std::uint64_t used = 0;
  std::vector<std::uint64_t> ends(kEndsAtOnce + 1);
  for (Row end = first; end < input.rows();) {
    const std::uint64_t count = std::min(kEndsAtOnce, input.rows() - end);
    PIF_TRY(input.reader().read_ends(end, count, std::span(ends).first(count + 1)));
    for (std::uint64_t i = 0; i < count; ++i, ++end) {
      used += times * (ends[i + 1] - ends[i]) + overhead;
      if (used > budget && end > first) return end;
    }
  }
  return input.rows();
}

// Makes runs of what fits into a budget, in scratch files.
class RunMaker {
 public:
  RunMaker(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, std::uint64_t budget, Runs& runs)
      : worker_(worker), input_(input), maker_(maker), budget_(budget), runs_(runs) {}

  [[nodiscard]] Status make() {
    PIF_TRY_VALUE(runs_.elements.file, worker_.scratch());
    PIF_TRY_VALUE(runs_.records.file, worker_.scratch());
    if (!input_.format().is_fixed()) {
      PIF_TRY_VALUE(runs_.ends.file, worker_.scratch());
    }
    for (Row first = 0; first < input_.rows();) {
      PIF_TRY_VALUE(const Row end, end_of_run(input_, maker_, first, budget_));
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
  tool::Input& input_;
  const KeyMaker& maker_;
  std::uint64_t budget_;
  Runs& runs_;
};

Status RunMaker::make_run(Range rows) {
  PrivateMemory elements(rows.size() * sizeof(Element));
  const auto made = as_array<Element>(elements.bytes());
  LoadedParts loaded(worker_, input_, maker_, rows, made);
  PIF_TRY(loaded.load());
  loaded.describe(runs_);
  PIF_TRY_VALUE(const std::uint64_t begin, runs_.records.file.reserve(loaded.bytes()));
  const std::size_t buffer_bytes = std::max(kFileRoomBytes / std::max<std::size_t>(loaded.size(), 1), kFileRoomMin);
  const auto room_of = [&](std::uint64_t before) { return FileRoom(runs_.records.file, begin + before, buffer_bytes); };
  if (input_.format().is_fixed()) {
    PIF_TRY(loaded.put_in_order(room_of, nullptr));
  } else {
    std::vector<std::uint64_t> ends(made.size() + loaded.size());
    PIF_TRY(loaded.put_in_order(room_of, ends.data()));
    PIF_TRY(runs_.ends.file.append(std::as_bytes(std::span(ends))));
  }
  return runs_.elements.file.append(std::as_bytes(made));
}

}  // namespace

bool holds_together(const Runs& runs, const Format& format, std::uint64_t records) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : runs.counts) {
    if (count > records - all) return false;
    all += count;
  }
  const bool has_elements = all <= runs.elements.bytes().size() / sizeof(Element);
  if (all != records || !has_elements) return false;
  if (format.is_fixed()) return all <= runs.records.bytes().size() / format.record_length;
  const std::size_t lists = runs.by_row ? 1 : runs.counts.size();  // of ends, each of one more than it has records
  return all == 0 || all + lists <= runs.ends.bytes().size() / sizeof(std::uint64_t);
}

std::vector<RunView> views_of(const Runs& runs, const Format& format, LfsIndex lfs) {
  std::vector<RunView> views;
  const auto elements = as_array<Element>(runs.elements.bytes());
  const auto ends = as_array<std::uint64_t>(runs.ends.bytes());
  const std::byte* records = runs.records.bytes().data();
  std::uint64_t first = 0, first_end = 0;
  for (const std::uint64_t count : runs.counts) {
    RunView view{lfs, elements.subspan(first, count), records, nullptr, format.record_length, runs.by_row};
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

Result<Runs> load_runs(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, std::uint64_t memory) {
  Runs runs;
  if (!input.is_here() || input.rows() == 0) return runs;
  if (input.rows() > kRowsMax)
    return fail(Code::kTooLarge,
                fmt::format("{}: {} rows on one LFS; {} can be sorted", input.file().path, input.rows(), kRowsMax));
  if (memory == 0) {
    auto mapped = input.map();
    if (!mapped && mapped.error().code != Code::kUnsupported) return fail(std::move(mapped.error()));
    if (mapped) runs.records.file = std::move(*mapped);
    PIF_TRY(mapped ? load_in_place(worker, input, maker, runs) : load_in_memory(worker, input, maker, runs));
  } else {
    const std::uint64_t budget =
        memory >= kOwnBytes + kBudgetAim ? memory - kOwnBytes : std::clamp(memory / 8, kBudgetMin, kBudgetAim);
    PIF_TRY(RunMaker(worker, input, maker, budget, runs).make());
  }
  return runs;
}

Result<std::vector<std::uint64_t>> records_by_rank(const tool::Worker& worker, const tool::Input& input) {
  PIF_TRY_VALUE(const auto ranks, worker.ranks_on(input));
  std::vector<std::uint64_t> records(worker.width());
  for (LfsIndex lfs = 0; lfs < ranks.size(); ++lfs)
    records[ranks[lfs]] += input.layout().rows(lfs, input.file_length().records);
  return records;
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
  return 2 * file_length.bytes + file_length.records * (row_overhead(format, maker) + sizeof(Pick));
}

}  // namespace pif::sort
