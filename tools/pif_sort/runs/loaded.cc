#include "runs/loaded.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <sys/mman.h>

#include "pif/base/assert.h"
#include "pif/tool/parts.h"
#include "runs/level_sort.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kReadBytes = 1u << 20;   // at once: what is read is still in the cache when its keys are made
constexpr std::uint64_t kGroupBytes = 1u << 20;  // of records with one chunk that are copied to be put in order
constexpr std::uint64_t kPartRows = 1024;        // a part of fewer is not worth a thread

}  // namespace

PrivateMemory::PrivateMemory(std::size_t bytes) : bytes_(bytes) {
  void* const at =
      ::mmap(nullptr, std::max<std::size_t>(bytes, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(at);
  (void)::madvise(at, bytes, MADV_HUGEPAGE);
}

PrivateMemory::~PrivateMemory() { ::munmap(data_, std::max<std::size_t>(bytes_, 1)); }

void Traits::add(const Traits& others) {
  lengths.add(others.lengths);
  has_zeros = has_zeros || others.has_zeros;
  is_ended = is_ended && others.is_ended;
}

Loaded::Loaded(const Inputs& inputs, const KeyMaker& maker, Range rows, std::span<Element> elements,
               const tool::Scratch* in_place)
    : inputs_(inputs),
      maker_(maker),
      order_(maker, inputs.numbers()),
      rows_(rows),
      elements_(elements),
      in_place_(in_place) {
  if (in_place != nullptr) base_ = in_place->bytes().data() + rows.begin * inputs.format().record_length;
  if (maker.fixed_length())
    traits_.lengths.add(std::max(inputs.format().record_length + kNumberBytes, maker.full_key_bytes({})),
                        elements.size());
}

// The key is text as it is in the record.
void Loaded::add_text(std::uint32_t row) {
  const std::string_view text = maker_.text_of(record(row));
  elements_[made_++] = order_.chunk(text, 0, row);
  if (maker_.fixed_length()) return;
  traits_.has_zeros = traits_.has_zeros || (!text.empty() && std::memchr(text.data(), 0, text.size()) != nullptr);
  traits_.lengths.add(std::max<std::uint64_t>(record(row).size() + kNumberBytes, maker_.full_key_bytes(text)));
}

Status Loaded::add(Row row) {
  const auto number = static_cast<std::uint32_t>(row);
  const Bytes bytes = record(number);
  if (!inputs_.format().is_fixed()) traits_.is_ended = traits_.is_ended && is_ended(bytes, inputs_.format());
  if (maker_.is_text()) {
    add_text(number);
    return {};
  }
  PIF_TRY(maker_.make_key(bytes, key_));
  if (!maker_.fixed_length())
    traits_.lengths.add(std::max<std::uint64_t>(bytes.size() + kNumberBytes, maker_.full_key_bytes(key_)));
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
  const std::uint64_t length = inputs_.format().record_length;
  const std::uint64_t chunk = component::chunk_bytes_for(inputs_.format());
  const std::uint64_t step = std::max<std::uint64_t>(1, kReadBytes / chunk) * (chunk / length);
  make_room(rows_.size() * length);
  for (Row first = rows_.begin; first < rows_.end; first += step) {
    const std::uint64_t count = std::min(step, rows_.end - first);
    if (in_place_ != nullptr) {
      PIF_TRY(inputs_.check(first * length, count * length, *in_place_));
    } else {
      PIF_TRY(inputs_.read_rows(first, count, {records_->bytes().data() + (first - rows_.begin) * length, length}));
    }
    for (Row row = first; row < first + count; ++row) PIF_TRY(add(row));
    advance(count * length);
  }
  return {};
}

Status Loaded::read_variable(const Advance& advance) {
  ends_.resize(rows_.size() + 1);
  PIF_TRY(inputs_.read_ends(rows_.begin, rows_.size(), ends_));
  make_room(ends_.back() - ends_[0]);
  if (in_place_ != nullptr) base_ += ends_[0];
  for (std::uint64_t first = 0; first < rows_.size();) {
    std::uint64_t end = first + 1;
    while (end < rows_.size() && ends_[end + 1] - ends_[first] <= kReadBytes) ++end;
    const std::uint64_t bytes = ends_[end] - ends_[first];
    if (in_place_ != nullptr) {
      PIF_TRY(inputs_.check(ends_[first], bytes, *in_place_));
    } else if (bytes > 0) {
      PIF_TRY(inputs_.read_bytes(ends_[first], records_->bytes().subspan(ends_[first] - ends_[0], bytes)));
    }
    for (std::uint64_t i = first; i < end; ++i) PIF_TRY(add(rows_.begin + i));
    advance(bytes);
    first = end;
  }
  return {};
}

Status Loaded::read(const Advance& advance) {
  PIF_TRY(inputs_.format().is_fixed() ? read_fixed(advance) : read_variable(advance));
  PIF_ASSERT(made_ == elements_.size(), made_, elements_.size());
  return {};
}

// Elements of equal chunks, by row. Each key is made once; not even that where all records are the same.
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

// Equal chunks are together now, by row; where keys go on behind them, the rest decides.
void Loaded::sort_behind_chunk(std::span<Element> group) {
  for (std::size_t begin = 0; begin < group.size();) {
    std::size_t end = begin + 1;
    while (end < group.size() && is_same_chunk(group[begin], group[end])) ++end;
    if (end - begin > 1 && !order_.decides(group[begin])) sort_by_keys(group.subspan(begin, end - begin));
    begin = end;
  }
}

void Loaded::sort(std::span<Element> group, Ties ties) {
  const bool has_levels = wants_levels(maker_);
  if (has_levels && ties == Ties::kNow) return LevelSort(order_, *this, traits_.has_zeros).sort(group);
  sort_elements(group);
  if (has_levels) return;
  if (!order_.chunk_is_all()) sort_behind_chunk(group);
}

// ---- the first ones of the order ------------------------------------------------------------------------------------

// Elements from `begin` on, with their first chunks: those that have the lowest `count` chunks come first. Returns
// where these end: behind all that have the highest one of them, for what comes behind a chunk may order these.
std::size_t Loaded::select(std::size_t begin, std::size_t count) {
  if (count >= elements_.size() - begin) return elements_.size();
  const auto last = elements_.begin() + static_cast<std::ptrdiff_t>(begin + count - 1);
  std::nth_element(elements_.begin() + static_cast<std::ptrdiff_t>(begin), last, elements_.end(), is_less);
  const auto end = std::partition(last + 1, elements_.end(), [&](const Element& e) { return is_same_chunk(e, *last); });
  return static_cast<std::size_t>(end - elements_.begin());
}

// Whether `next`, which is sorted behind a, has its key.
bool Loaded::is_same_key(const Element& a, const Element& next) {
  if (wants_levels(maker_)) return level_of(next) == kSameKey;
  if (!is_same_chunk(a, next)) return false;
  return order_.decides(a) || order_.compare_keys(record(row_of(a)), record(row_of(next))) == 0;
}

// Of the sorted group those with keys of their own, behind the `kept` ones, which have others. How many are kept then.
std::size_t Loaded::drop_equal(std::size_t kept, Range group) {
  for (std::size_t i = group.begin, last = i; i < group.end; ++i) {
    const Element next = elements_[i];
    if (i > group.begin && is_same_key(elements_[last], next)) continue;
    last = kept++;
    elements_[last] = next;
  }
  return kept;
}

// With `unique` what was found may be too few: then as many again, at least, so that few rounds do.
void Loaded::keep_first(const First& first) {
  std::size_t kept = 0;
  for (std::size_t begin = 0; begin < elements_.size() && kept < first.records;) {
    const std::size_t end = select(begin, std::max<std::size_t>(first.records - kept, begin));
    sort(elements_.subspan(begin, end - begin), Ties::kNow);
    kept = first.unique ? drop_equal(kept, {begin, end}) : end;
    begin = end;
  }
  elements_ = elements_.first(std::min<std::size_t>(kept, first.records));
}

void Loaded::move_elements(Element* to) {
  std::copy(elements_.begin(), elements_.end(), to);
  elements_ = {to, elements_.size()};
}

std::uint64_t Loaded::bytes() const {
  if (ends_.empty()) return elements_.size() * inputs_.format().record_length;
  if (elements_.size() == rows_.size()) return ends_.back() - ends_[0];
  std::uint64_t bytes = 0;
  for (const Element& element : elements_) bytes += record(row_of(element)).size();
  return bytes;
}

namespace {

// Records where put_in_order() has put them: elements have their places there instead of rows.
struct PlacedTexts {
  const KeyMaker& maker;
  const std::byte* records;
  const std::uint64_t* ends;

  std::string_view text(std::uint32_t place) const {
    return maker.text_of({records + ends[place], ends[place + 1] - ends[place]});
  }
  void fetch_place(std::uint32_t place) const { __builtin_prefetch(ends + place); }
  void fetch(std::uint32_t place) const { __builtin_prefetch(records + ends[place]); }
};

}  // namespace

void Loaded::settle(std::byte* records, std::uint64_t* ends) {
  if (!wants_levels(maker_)) return;
  const PlacedTexts texts{maker_, records, ends};
  LevelSort sort(order_, texts, traits_.has_zeros);
  for (std::uint32_t begin = 0, end = 0; begin < elements_.size(); begin = end) {
    for (end = begin + 1; end < elements_.size() && is_same_chunk(elements_[begin], elements_[end]);) ++end;
    if (end - begin == 1) continue;
    rows_of_group_.clear();
    for (std::uint32_t i = begin; i < end; ++i) {
      rows_of_group_.push_back(row_of(elements_[i]));
      elements_[i] = with_row(elements_[i], i);
    }
    sort.settle(elements_.subspan(begin, end - begin), 0);
    put_again({begin, end}, records, ends);
  }
}

// Records of these places into the order that their elements have now. Many are copied from where they were read, for
// they would take as much memory again.
void Loaded::put_again(Range group, std::byte* records, std::uint64_t* ends) {
  ends_of_group_.assign(ends + group.begin, ends + group.end + 1);
  const std::uint64_t first = ends_of_group_.front(), bytes = ends_of_group_.back() - first;
  const bool from_here = bytes <= kGroupBytes;
  if (from_here) group_.assign(records + first, records + first + bytes);
  std::uint64_t end = first;
  for (std::uint64_t i = group.begin; i < group.end; ++i) {
    const std::size_t was = row_of(elements_[i]) - group.begin;
    elements_[i] = with_row(elements_[i], rows_of_group_[was]);
    const std::uint64_t size = ends_of_group_[was + 1] - ends_of_group_[was];
    const std::byte* const from =
        from_here ? group_.data() + (ends_of_group_[was] - first) : record(rows_of_group_[was]).data();
    if (size > 0) std::memcpy(records + end, from, size);
    ends[i + 1] = end += size;
  }
}

LoadedParts::LoadedParts(tool::Worker& worker, Inputs& inputs, const KeyMaker& maker, Range rows,
                         std::span<Element> elements, bool apart, const tool::Scratch* in_place)
    : worker_(worker), inputs_(inputs) {
  const std::vector<Row> begins = apart ? inputs.first_rows() : std::vector<Row>();
  const Format& format = inputs.format();
  const std::uint64_t unit =
      format.is_fixed() ? std::max<std::uint64_t>(component::chunk_bytes_for(format) / format.record_length, 1) : 1;
  const tool::Parts parts(rows, {.most = worker.threads(), .least = kPartRows, .unit = unit});  // whole chunks
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Range rest = parts[i];
    const auto add = [&](Row end) {
      const Range part{std::exchange(rest.begin, end), end};
      const auto its = elements.subspan(part.begin - rows.begin, part.size());
      parts_.push_back(std::make_unique<Loaded>(inputs, maker, part, its, in_place));
    };
    for (const Row begin : begins)
      if (begin > rest.begin && begin < rest.end) add(begin);
    add(rest.end);
  }
}

Status LoadedParts::for_each_part(const std::function<Status(std::size_t)>& f) const {
  const std::size_t tasks = std::min<std::size_t>(worker_.threads(), parts_.size());
  return worker_.run_tasks(tasks, [&](std::size_t task) -> Status {
    for (std::size_t i = task; i < parts_.size(); i += tasks) PIF_TRY(f(i));
    return {};
  });
}

Status LoadedParts::load(Ties ties) {
  return load_each([ties](Loaded& part) { part.sort(ties); });
}

Status LoadedParts::load_first(const First& first) {
  PIF_TRY(load_each([&first](Loaded& part) { part.keep_first(first); }));
  Element* to = parts_[0]->elements().data();
  for (const auto& part : parts_) {
    part->move_elements(to);
    to += part->elements().size();
  }
  return {};
}

Status LoadedParts::load_each(const std::function<void(Loaded&)>& sort) {
  const std::uint64_t before = inputs_.bytes_read();
  std::atomic<std::uint64_t> read = 0;
  const Status loaded = for_each_part([&](std::size_t i) -> Status {
    PIF_TRY(parts_[i]->read([&](std::uint64_t bytes) {
      read += bytes;
      if (i == 0) worker_.progress(before + read, 2 * inputs_.bytes());  // that part is on the worker's own thread
    }));
    sort(*parts_[i]);
    return {};
  });
  inputs_.count_read(read);
  return loaded;
}

Status LoadedParts::settle(std::byte* records, std::uint64_t* ends) {
  std::vector<std::pair<std::byte*, std::uint64_t*>> begins;
  for (const auto& part : parts_) {
    begins.emplace_back(records, ends);
    records += part->bytes();
    ends += part->elements().size() + 1;
  }
  return for_each_part([&](std::size_t i) -> Status {
    parts_[i]->settle(begins[i].first, begins[i].second);
    return {};
  });
}

void LoadedParts::describe(std::vector<std::uint64_t>& counts, Traits& traits) const {
  for (const auto& part : parts_) {
    counts.push_back(part->elements().size());
    traits.add(part->traits());
  }
}

std::uint64_t LoadedParts::records() const {
  std::uint64_t all = 0;
  for (const auto& part : parts_) all += part->elements().size();
  return all;
}

std::uint64_t LoadedParts::bytes() const {
  std::uint64_t all = 0;
  for (const auto& part : parts_) all += part->bytes();
  return all;
}

}  // namespace pif::sort
