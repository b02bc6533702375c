// A range of records, rows or columns, cut into parts for the threads of a worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pif/base/assert.h"
#include "pif/base/ids.h"

namespace pif::tool {

// 0 counts as 1.
struct PartsOptions {
  std::uint64_t most = 1;   // parts: as many as there are threads
  std::uint64_t least = 1;  // a part of fewer is not worth a thread
  std::uint64_t unit = 1;   // every part but the first begins at a multiple of it
};

// Consecutive parts that are all of the range, in its order; their sizes differ by less than two units. There is one at
// least, and none is empty unless the range is.
class Parts {
 public:
  // Any range and options.
  Parts(Range whole, const PartsOptions& options)
      : whole_(whole),
        unit_(std::max<std::uint64_t>(options.unit, 1)),
        count_(std::clamp<std::uint64_t>(whole.size() / std::max(options.least, unit_), 1,
                                         std::max<std::uint64_t>(options.most, 1))) {}

  // How many there are.
  std::size_t size() const { return count_; }
  // i < size().
  Range operator[](std::size_t i) const {
    PIF_ASSERT(i < count_, i, count_);
    return {begin_of(i), begin_of(i + 1)};
  }

 private:
  std::uint64_t begin_of(std::uint64_t part) const {
    if (part == 0) return whole_.begin;
    if (part == count_) return whole_.end;
    const std::uint64_t before = whole_.size() / count_ * part + whole_.size() % count_ * part / count_;
    return (whole_.begin + before) / unit_ * unit_;
  }

  Range whole_;
  std::uint64_t unit_;
  std::uint64_t count_;
};

}  // namespace pif::tool
