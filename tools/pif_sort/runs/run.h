// Sorted runs: records of one component in order, in memory or scratch files that all workers share.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hwy/base.h>

#include "keys/keys.h"
#include "keys/lengths.h"
#include "pif/parity/layout.h"
#include "pif/tool/scratch.h"
#include "pif/tool/shared_memory.h"
#include "pif/tool/team.h"
#include "pif/tool/worker.h"

namespace pif::sort {

// One record in a run's order: the first 12 bytes of its sort key (zeros where it has fewer) and its row, so that
// comparing elements as 128-bit numbers sorts by key prefix, and equal ones by row.
using Element = hwy::uint128_t;
inline constexpr std::size_t kPrefixBytes = 12;

// Up to 8 bytes as a big-endian number. What is read at once was written at once, or the processor waits for all that
// it is writing.
inline std::uint64_t big_endian_of(std::string_view bytes) {
  std::uint64_t value = 0;
  if (bytes.size() >= sizeof value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return __builtin_bswap64(value);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (56 - 8 * i);
  return value;
}

inline Element element_of(std::string_view key, std::uint32_t row) {
  Element element;
  element.hi = big_endian_of(key.substr(0, 8));
  const std::uint64_t rest = key.size() > 8 ? big_endian_of(key.substr(8, kPrefixBytes - 8)) : 0;
  element.lo = rest | row;
  return element;
}
inline std::array<char, kPrefixBytes> prefix_of(const Element& element) {
  const std::uint64_t first = __builtin_bswap64(element.hi), rest = __builtin_bswap64(element.lo);
  std::array<char, kPrefixBytes> prefix;
  std::memcpy(prefix.data(), &first, sizeof first);
  std::memcpy(prefix.data() + sizeof first, &rest, kPrefixBytes - sizeof first);
  return prefix;
}
inline std::uint32_t row_of(const Element& element) { return static_cast<std::uint32_t>(element.lo); }
inline int compare_prefix(const Element& a, const Element& b) {
  if (a.hi != b.hi) return a.hi < b.hi ? -1 : 1;
  const std::uint64_t x = a.lo >> 32, y = b.lo >> 32;
  return x == y ? 0 : x < y ? -1 : 1;
}

inline constexpr std::size_t kAhead = 16;        // records that are fetched into the cache before they are looked at
inline constexpr std::size_t kFetchedMax = 256;  // bytes of a record

inline void fetch(Bytes record) {
  const std::size_t size = std::min(record.size(), kFetchedMax);
  for (std::size_t line = 0; line < size; line += 64) __builtin_prefetch(record.data() + line);
  if (size > 0) __builtin_prefetch(record.data() + size - 1);  // it may begin inside of a line
}

// A run as every worker sees it: element i says where record i stands in the order. The records are in that order too,
// or (by_row) as the component has them.
struct RunView {
  LfsIndex lfs = 0;  // of the input
  std::span<const Element> elements;
  const std::byte* records = nullptr;
  const std::uint64_t* ends = nullptr;  // variable records: ends[i], ends[i + 1]
  std::uint32_t record_length = 0;      // fixed ones
  bool by_row = false;
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

// The order of all records, whatever run they are in: by sort key, ties by record number. Not thread-safe: it has
// memory for two keys.
class Order {
 public:
  Order(const KeyMaker& maker, const parity::Layout& layout)
      : maker_(&maker),
        layout_(&layout),
        prefix_is_all_(maker.fixed_length() && *maker.fixed_length() <= kPrefixBytes) {}

  bool prefix_is_all() const { return prefix_is_all_; }
  // Keys alone: negative, 0 or positive.
  int compare_keys(Bytes a, Bytes b);
  int compare_keys(const RunView& a, std::size_t i, const RunView& b, std::size_t j);
  bool less(const RunView& a, std::size_t i, const RunView& b, std::size_t j);

  // Of record i of the run, in the input.
  RecordNumber number(const RunView& run, std::size_t i) const;

 private:
  const KeyMaker* maker_;
  const parity::Layout* layout_;
  bool prefix_is_all_;
  std::string first_, second_;
};

// Part of a worker's runs, which others can map: memory, or a scratch file where there is not enough of it.
struct Area {
  tool::SharedMemory memory;
  tool::Scratch file;
  std::span<const std::byte> bytes() const { return memory.empty() ? file.bytes() : memory.bytes(); }
  // A file's, if it was allocated.
  std::span<std::byte> space() { return memory.empty() ? file.space() : memory.bytes(); }
};
// Everybody's, by rank. Called by all workers.
Result<std::vector<Area>> share(tool::Team& team, const Area& own, bool writable);

// What a worker has of its component: runs, one behind another.
struct Runs {
  Area elements, records, ends;
  std::vector<std::uint64_t> counts;  // of records, run by run
  Lengths lengths;                    // of the records or, if these are longer, of their full keys
  bool by_row = false;                // the records are the component itself, in the page cache
};

// Reads the worker's component and sorts it, each of its threads a part that becomes a run: all of it in memory, or,
// with `memory` bytes for this worker, runs of what fits in scratch files. A component that is not there has no run.
Result<Runs> load_runs(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, std::uint64_t memory);
// How many records of the input the worker of each rank has. kInternal: an LFS of the input has no worker.
Result<std::vector<std::uint64_t>> records_by_rank(const tool::Worker& worker, const tool::Input& input);
// Whether what a worker says of its runs fits the memory and files that it shares, and they are `records` records.
// (What is in these stays its own: a worker that writes nonsense there makes nonsense of the result, or ends itself and
// the job.)
bool holds_together(const Runs& runs, const Format& format, std::uint64_t records);
// Those that are not empty; runs outlives them.
std::vector<RunView> views_of(const Runs& runs, const Format& format, LfsIndex lfs);
// Divides half of a worker's memory, as load_runs() has it, among the windows of these runs, which are in so many
// merges at a time; the other half is for what is on its way.
void share_memory(std::span<RunView> runs, std::uint64_t memory, std::size_t merges);

// What runs need in memory at most while they are made and merged: their records twice, and what orders them.
std::uint64_t run_bytes(const Format& format, const KeyMaker& maker, const FileLength& file_length);

}  // namespace pif::sort
