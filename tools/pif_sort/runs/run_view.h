// A sorted run as every worker sees it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "keys/keys.h"
#include "pif/base/ids.h"
#include "runs/element.h"

namespace pif::sort {

inline constexpr std::size_t kAhead = 16;        // records that are fetched into the cache before they are looked at
inline constexpr std::size_t kFetchedMax = 256;  // bytes of a record

inline void fetch(Bytes record) {
  const std::size_t size = std::min(record.size(), kFetchedMax);
  for (std::size_t line = 0; line < size; line += 64) __builtin_prefetch(record.data() + line);
  if (size > 0) __builtin_prefetch(record.data() + size - 1);  // it may begin inside of a line
}

// Element i says where record i stands in the order. The records are in that order too, or (by_row) as the component
// has them.
struct RunView {
  std::uint32_t source = 0;  // who has it (RecordNumbers)
  std::span<const Element> elements;
  const std::byte* records = nullptr;
  const std::uint64_t* ends = nullptr;  // variable records: ends[i], ends[i + 1]
  std::uint32_t record_length = 0;      // fixed ones
  bool by_row = false;
  bool has_levels = false;  // elements have them
  bool has_zeros = false;   // a key of variable length has a byte 0
  bool is_ended = true;     // delimited records: each has its delimiter
  // Records of a window: so many are read from the disk ahead of where the run is merged. 0: all are in memory.
  std::size_t window = 0;

  // Starts reading [begin, end) from the disk. by_row: never.
  void read_ahead(std::size_t begin, std::size_t end) const;
  // Fetches what record(i) will look at, and then the record, into the cache: ask some time ahead.
  void fetch_place(std::size_t i) const {
    if (ends != nullptr) __builtin_prefetch(ends + (by_row ? row_of(elements[i]) : i));
  }
  void fetch(std::size_t i) const { sort::fetch(record(i)); }

  Bytes record(std::size_t i) const {
    if (by_row) i = row_of(elements[i]);
    if (ends == nullptr) return {records + i * record_length, record_length};
    return {records + ends[i], ends[i + 1] - ends[i]};
  }
};

}  // namespace pif::sort
