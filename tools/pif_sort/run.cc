#include "run.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <hwy/contrib/sort/vqsort.h>
#include <sys/mman.h>

namespace pif::sort {
namespace {

constexpr std::uint64_t kReadBytes = 1u << 20;     // at once: what is read is still in the cache when its keys are made
constexpr std::uint64_t kRowsMax = UINT32_MAX;     // an element has 32 bits for its row
constexpr std::size_t kAhead = 16;                 // records that are fetched before they are copied

template <typename T>
std::span<T> as_array(const tool::SharedMemory& memory) {
  return {reinterpret_cast<T*>(memory.bytes().data()), memory.bytes().size() / sizeof(T)};
}

std::uint64_t big_endian(const std::byte* bytes, std::size_t count) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, count);
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

// Memory of this process alone, in huge pages where there are any: records are picked from it in no order, and small pages
// would cost more than the records themselves.
class PrivateMemory {
 public:
  explicit PrivateMemory(std::size_t bytes) : bytes_(bytes) {
    void* const at = ::mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

// A component in memory, by row.
class Loaded {
 public:
  Loaded(tool::Input& input, const KeyMaker& maker)
      : input_(input), maker_(maker), order_(maker, input.layout()),
        records_(input.format().is_fixed() ? input.rows() * input.format().record_length : input.bytes()) {}

  // Reads it; `elements`: one for each row with data.
  [[nodiscard]] Status read(tool::Worker& worker, std::span<Element> elements);
  void sort();
  // The records in the order of the elements.
  [[nodiscard]] Status put_in_order(Run& run) const;

 private:
  Bytes record(std::uint32_t row) const {
    const std::uint64_t length = input_.format().record_length;
    if (ends_.empty()) return records_.bytes().subspan(row * length, length);
    return records_.bytes().subspan(ends_[row], ends_[row + 1] - ends_[row]);
  }
  [[nodiscard]] Status read_fixed(tool::Worker& worker);
  [[nodiscard]] Status read_variable(tool::Worker& worker);
  [[nodiscard]] Status add(Row row);
  void sort_by_keys(std::span<Element> group);
  void sort_behind_prefix();

  tool::Input& input_;
  const KeyMaker& maker_;
  Order order_;
  PrivateMemory records_;
  std::vector<std::uint64_t> ends_;  // variable: ends_[row], ends_[row + 1]
  std::span<Element> elements_;
  std::size_t made_ = 0;             // of them
  std::string key_;
};

Status Loaded::add(Row row) {
  if (input_.layout().has_parity() && input_.layout().is_parity({input_.index(), row})) return {};
  const auto number = static_cast<std::uint32_t>(row);
  if (maker_.plain_offset()) {
    const auto* const at = reinterpret_cast<const char*>(record(number).data()) + *maker_.plain_offset();
    elements_[made_++] = element_of({at, std::min<std::size_t>(*maker_.fixed_length(), kPrefixBytes)}, number);
    return {};
  }
  PIF_TRY(maker_.make_key(record(number), key_));
  elements_[made_++] = element_of(key_, number);
  return {};
}

Status Loaded::read_fixed(tool::Worker& worker) {
  const std::uint64_t length = input_.format().record_length;
  const std::uint64_t step = std::max<std::uint64_t>(1, kReadBytes / length);
  for (Row first = 0; first < input_.rows(); first += step) {
    const std::uint64_t count = std::min(step, input_.rows() - first);
    PIF_TRY(input_.reader().read_rows(first, count, {records_.bytes().data() + first * length, length}));
    for (Row row = first; row < first + count; ++row) PIF_TRY(add(row));
    input_.count_read(count * length);
    worker.progress(input_.bytes_read(), 2 * input_.bytes());
  }
  return {};
}

Status Loaded::read_variable(tool::Worker& worker) {
  ends_.resize(input_.rows() + 1);
  PIF_TRY(input_.reader().read_ends(0, input_.rows(), ends_));
  for (Row first = 0; first < input_.rows();) {
    Row end = first + 1;
    while (end < input_.rows() && ends_[end + 1] - ends_[first] <= kReadBytes) ++end;
    const std::uint64_t bytes = ends_[end] - ends_[first];
    if (bytes > 0) PIF_TRY(input_.reader().read_bytes(ends_[first], records_.bytes().subspan(ends_[first], bytes)));
    for (Row row = first; row < end; ++row) PIF_TRY(add(row));
    input_.count_read(bytes);
    worker.progress(input_.bytes_read(), 2 * input_.bytes());
    first = end;
  }
  return {};
}

Status Loaded::read(tool::Worker& worker, std::span<Element> elements) {
  elements_ = elements;
  return input_.format().is_fixed() ? read_fixed(worker) : read_variable(worker);
}

// Elements of equal prefix, by row. Each key is made once; not even that where all records are the same.
void Loaded::sort_by_keys(std::span<Element> group) {
  const auto same = [](Bytes a, Bytes b) { return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0; };
  const Bytes first = record(row_of(group[0]));
  if (std::all_of(group.begin() + 1, group.end(), [&](const Element& e) { return same(first, record(row_of(e))); })) return;
  std::vector<std::pair<std::string, Element>> keyed(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    (void)maker_.make_key(record(row_of(group[i])), keyed[i].first);  // it was made before, so it can be made
    keyed[i].second = group[i];
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
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

Status Loaded::put_in_order(Run& run) const {
  const bool fixed = input_.format().is_fixed();
  const std::size_t count = elements_.size();
  PIF_TRY_VALUE(run.records, tool::SharedMemory::make(fixed ? count * input_.format().record_length : records_.bytes().size()));
  if (!fixed) {
    PIF_TRY_VALUE(run.ends, tool::SharedMemory::make((count + 1) * sizeof(std::uint64_t)));
  }
  const auto ends = as_array<std::uint64_t>(run.ends);
  std::byte* const base = run.records.bytes().data();
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const Bytes later = record(row_of(elements_[i + kAhead]));
      for (std::size_t line = 0; line < std::min<std::size_t>(later.size(), 256); line += 64) __builtin_prefetch(later.data() + line);
    }
    const Bytes next = record(row_of(elements_[i]));
    if (!next.empty()) std::memcpy(base + at, next.data(), next.size());
    at += next.size();
    if (!fixed) ends[i + 1] = at;
  }
  return {};
}

std::uint64_t data_rows(const tool::Input& input) {
  std::uint64_t count = input.rows();
  if (!input.layout().has_parity()) return count;
  for (Row row = 0; row < input.rows(); ++row) count -= input.layout().is_parity({input.index(), row}) ? 1 : 0;
  return count;
}

}  // namespace

Element element_of(std::string_view key, std::uint32_t row) {
  std::byte prefix[16] = {};
  std::memcpy(prefix, key.data(), std::min(key.size(), kPrefixBytes));
  Element element;
  element.hi = big_endian(prefix, 8);
  element.lo = big_endian(prefix + 8, 8) | row;
  return element;
}

RecordNumber Order::number(const RunView& run, std::size_t i) const {
  return layout_->record_at({run.lfs, row_of(run.elements[i])}).value_or(0);
}

int Order::compare_keys(Bytes a, Bytes b) {
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) return 0;
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

RunView view_of(const Run& run, const Format& format, LfsIndex lfs) {
  RunView view;
  view.lfs = lfs;
  view.elements = as_array<Element>(run.elements);
  view.records = run.records.bytes().data();
  if (format.is_fixed()) {
    view.record_length = format.record_length;
  } else {
    view.ends = as_array<std::uint64_t>(run.ends).data();
  }
  return view;
}

Result<Run> load_run(tool::Worker& worker, tool::Input& input, const KeyMaker& maker) {
  Run run;
  if (!input.is_here() || input.rows() == 0) return run;
  if (input.rows() > kRowsMax)
    return fail(Code::kTooLarge, fmt::format("{}: {} rows on one LFS; {} can be sorted", input.file().path, input.rows(), kRowsMax));
  PIF_TRY_VALUE(run.elements, tool::SharedMemory::make(data_rows(input) * sizeof(Element)));
  Loaded loaded(input, maker);
  PIF_TRY(loaded.read(worker, as_array<Element>(run.elements)));
  loaded.sort();
  PIF_TRY(loaded.put_in_order(run));
  return run;
}

std::uint64_t run_bytes(const Format& format, const Extent& extent) {
  return 2 * extent.bytes + extent.records * (sizeof(Element) + (format.is_fixed() ? 0 : 2 * sizeof(std::uint64_t)));
}

}  // namespace pif::sort
