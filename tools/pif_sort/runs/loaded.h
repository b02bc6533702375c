// Consecutive rows of a component, read into memory (or checked where they lie) and sorted there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "keys/lengths.h"
#include "pif/tool/scratch.h"
#include "pif/tool/worker.h"
#include "runs/inputs.h"
#include "runs/order.h"

namespace pif::sort {

// Memory of this process alone, in huge pages where there are any: records are picked from it in no order, and small
// pages would cost more than the records themselves.
class PrivateMemory {
 public:
  // Throws std::bad_alloc.
  explicit PrivateMemory(std::size_t bytes);
  ~PrivateMemory();
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

// Facts about the records of a run, or of several.
struct Traits {
  Lengths lengths;         // of the records or, if these are longer, of their full keys
  bool has_zeros = false;  // in a key that is text of variable length
  bool is_ended = true;    // each record that is delimited has its delimiter
  void add(const Traits& others);
};

// When records of equal first chunks are put in order, if keys are text of variable length: at once, or when records
// with one chunk lie together.
enum class Ties : std::uint8_t { kNow, kLater };

// The records that are kept: the first ones of the order.
struct First {
  std::uint64_t records = 0;  // so many at most; 0: all
  bool unique = false;        // that have different keys
};

// How runs are made.
struct RunOptions {
  std::uint64_t memory = 0;  // bytes, of this worker; 0: all in memory
  First first;               // what is kept of each run
  bool apart = false;        // no run has records of two inputs: each is likely to be in order already
};

// Several may be read and sorted at once.
class Loaded {
 public:
  using Advance = std::function<void(std::uint64_t bytes)>;  // so many more are read

  // elements: one for each row with data. in_place: the component, mapped, where all of its rows stay.
  Loaded(const Inputs& inputs, const KeyMaker& maker, Range rows, std::span<Element> elements,
         const tool::Scratch* in_place);

  [[nodiscard]] Status read(const Advance& advance);
  void sort(Ties ties) { sort(elements_, ties); }
  // Instead of sort(): finds the first ones, sorts these, and keeps no other.
  void keep_first(const First& first);
  // Its elements go to `to`, which is not behind where they are.
  void move_elements(Element* to);
  // Finishes what sort() left for later: records and ends are as put_in_order() made them, and come into the order of
  // their keys.
  void settle(std::byte* records, std::uint64_t* ends);
  // The records in the order of the elements, where room(bytes) says. ends: as a run has them; null for fixed records.
  template <typename Room>
  [[nodiscard]] Status put_in_order(Room& room, std::uint64_t* ends) const;

  std::uint64_t bytes() const;  // of the records that it has elements of
  const Traits& traits() const { return traits_; }
  std::span<Element> elements() const { return elements_; }
  std::span<const std::uint64_t> ends() const { return ends_; }

  Bytes record(std::uint32_t row) const {
    const std::uint64_t at = row - rows_.begin, length = inputs_.format().record_length;
    if (ends_.empty()) return {base_ + at * length, length};
    return {base_ + (ends_[at] - ends_[0]), ends_[at + 1] - ends_[at]};
  }
  // For LevelSort.
  std::string_view text(std::uint32_t row) const { return maker_.text_of(record(row)); }
  void fetch_place(std::uint32_t row) const {
    if (!ends_.empty()) __builtin_prefetch(&ends_[row - rows_.begin]);
  }
  void fetch(std::uint32_t row) const { sort::fetch(record(row)); }

 private:
  void make_room(std::uint64_t bytes);
  [[nodiscard]] Status read_fixed(const Advance& advance);
  [[nodiscard]] Status read_variable(const Advance& advance);
  [[nodiscard]] Status add(Row row);
  void add_text(std::uint32_t row);
  void put_again(Range group, std::byte* records, std::uint64_t* ends);
  void sort(std::span<Element> group, Ties ties);
  void sort_by_keys(std::span<Element> group);
  void sort_behind_chunk(std::span<Element> group);
  std::size_t select(std::size_t begin, std::size_t count);
  std::size_t drop_equal(std::size_t kept, Range group);
  bool is_same_key(const Element& a, const Element& next);

  const Inputs& inputs_;
  const KeyMaker& maker_;
  Order order_;
  Range rows_;
  std::span<Element> elements_;
  const std::byte* base_ = nullptr;  // the first row
  const tool::Scratch* in_place_;
  std::optional<PrivateMemory> records_;
  std::vector<std::uint64_t> ends_;  // variable: of the component's rows, from the first of these on
  std::size_t made_ = 0;             // of them
  Traits traits_;
  std::string key_;
  std::vector<std::uint32_t> rows_of_group_;  // of some elements with one chunk,
  std::vector<std::uint64_t> ends_of_group_;  // their records' ends,
  std::vector<std::byte> group_;              // and these, as they were
};

template <typename Room>
Status Loaded::put_in_order(Room& room, std::uint64_t* ends) const {
  const std::size_t count = elements_.size();
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 2 * kAhead < count) fetch_place(row_of(elements_[i + 2 * kAhead]));
    if (i + kAhead < count) fetch(row_of(elements_[i + kAhead]));
    const Bytes next = record(row_of(elements_[i]));
    PIF_TRY_VALUE(std::byte* const to, room(next.size()));
    if (!next.empty()) std::memcpy(to, next.data(), next.size());
    end += next.size();
    if (ends != nullptr) ends[i + 1] = end;
  }
  return {};
}

// Consecutive rows in as many parts as the worker has threads, or some more. Each is loaded and sorted by one of them,
// and is a run: merging a few more costs less than to make one of them.
class LoadedParts {
 public:
  // As Loaded. apart: no part has rows of two inputs.
  LoadedParts(tool::Worker& worker, Inputs& inputs, const KeyMaker& maker, Range rows, std::span<Element> elements,
              bool apart, const tool::Scratch* in_place = nullptr);

  [[nodiscard]] Status load(Ties ties);  // and sort
  // The same, but only the first ones of each part stay. Their elements then lie one behind another.
  [[nodiscard]] Status load_first(const First& first);
  // Adds the parts' records and what is known of them, in their order.
  void describe(std::vector<std::uint64_t>& counts, Traits& traits) const;
  // Each part on a thread: its records go to the place that room_of(bytes of the parts before it) makes, as Loaded's do
  // to a room. ends: of each part, one behind another.
  template <typename RoomOf>
  [[nodiscard]] Status put_in_order(const RoomOf& room_of, std::uint64_t* ends) const;

  // As Loaded, of each part on a thread. records, ends: as put_in_order() made them in memory. Variable records.
  [[nodiscard]] Status settle(std::byte* records, std::uint64_t* ends);

  std::size_t size() const { return parts_.size(); }
  std::uint64_t records() const;
  std::uint64_t bytes() const;

 private:
  // f(i) for each part, on the worker's threads.
  [[nodiscard]] Status for_each_part(const std::function<Status(std::size_t)>& f) const;
  [[nodiscard]] Status load_each(const std::function<void(Loaded&)>& sort);

  tool::Worker& worker_;
  Inputs& inputs_;
  std::vector<std::unique_ptr<Loaded>> parts_;
};

template <typename RoomOf>
Status LoadedParts::put_in_order(const RoomOf& room_of, std::uint64_t* ends) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t*>> begins;
  std::uint64_t bytes = 0;
  for (const auto& part : parts_) {
    begins.emplace_back(bytes, ends);
    bytes += part->bytes();
    if (ends != nullptr) ends += part->elements().size() + 1;
  }
  return for_each_part([&](std::size_t i) -> Status {
    auto room = room_of(begins[i].first);
    PIF_TRY(parts_[i]->put_in_order(room, begins[i].second));
    return room.finish();
  });
}

}  // namespace pif::sort
