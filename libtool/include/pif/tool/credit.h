// The credit of one worker to send to another on one channel: a limit that the receiver grants, and that only rises. So
// words about it may come late or twice, and windows of rows cannot deadlock: who has the lowest row that nobody has
// sent yet is always allowed to. Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "pif/base/assert.h"
#include "pif/base/placement.h"

namespace pif::tool {

class Credit {
 public:
  // The unit of credit. Rows are not added up: a message takes what is below the end of its last row, and the limit is
  // a row.
  enum class Unit : std::uint8_t { kMessages, kBytes, kRows };
  static constexpr std::uint64_t kMessageBytes = 64;  // that a message counts besides its body
  // The part of a window that a receiver lets add up before it tells that it is done with it. When less than that is
  // under way a message of any length may go, so that no sender waits for what is not granted.
  static constexpr std::uint64_t grant_step(std::uint64_t window) { return std::max<std::uint64_t>(window / 4, 1); }

  // None: nothing is allowed.
  Credit() = default;
  // window: the limit at the beginning. rows: of kRows, how many the receiver has in all. share: of kRows, if the rows'
  // lengths differ, bytes that may be under way. A message goes beyond the share if all that is under way ends behind
  // its first row: the receiver waits for it.
  Credit(Unit unit, std::uint64_t window, std::uint64_t rows = 0, std::uint64_t share = UINT64_MAX)
      : unit_(unit), window_(window), rows_(rows), share_(share) {}

  // The unit.
  Unit unit() const { return unit_; }
  // Whether a record of this row may be put into the receiver's memory.
  bool reaches(Row row) const { return unit_ != Unit::kRows || row < limit(); }
  // Whether a message with so many bytes in its body may go now; of kRows, one of some rows of [begin, end), both ends
  // among them.
  bool allows(std::uint64_t bytes, Range rows = {}) const {
    if (unit_ == Unit::kRows)
      return rows.end <= limit() &&
             (under_way_.empty() || rows.begin < under_way_.begin()->first || bytes <= free_bytes());
    PIF_ASSERT(used_ >= settled_, used_, settled_);
    return fits(used_ - settled_, cost(bytes), window_);
  }
  // For kRows: rows below it may go; bytes that may go besides those under way; whether nothing is.
  Row limit() const { return settled_ > UINT64_MAX - window_ ? UINT64_MAX : settled_ + window_; }
  std::uint64_t free_bytes() const { return share_ - std::min(share_, bytes_under_way_); }
  bool has_none_under_way() const { return under_way_.empty(); }

  // Counts a message that was sent.
  void use(std::uint64_t bytes, Range rows = {}) {
    PIF_ASSERT(allows(bytes, rows), bytes, rows.begin, rows.end, settled_, window_);
    if (unit_ != Unit::kRows) {
      used_ += cost(bytes);
      return;
    }
    PIF_ASSERT(!rows.empty(), rows.begin, rows.end);
    used_ = std::max(used_, rows.end);
    if (share_ == UINT64_MAX) return;
    under_way_[rows.end - 1] += bytes;
    bytes_under_way_ += bytes;
  }
  // The receiver is done with so much of it, rows: with those below. Less than before changes nothing; false: that much
  // there never was.
  [[nodiscard]] bool settle(std::uint64_t settled) {
    if (settled > (unit_ == Unit::kRows ? rows_ : used_)) return false;
    settled_ = std::max(settled_, settled);
    for (; !under_way_.empty() && under_way_.begin()->first < settled_; under_way_.erase(under_way_.begin())) {
      PIF_ASSERT(bytes_under_way_ >= under_way_.begin()->second, bytes_under_way_);
      bytes_under_way_ -= under_way_.begin()->second;
    }
    return true;
  }
  // The receiver is done with all that went.
  bool is_settled() const { return settled_ >= used_; }

  // Whether a message may go that counts `cost`, with so many messages or bytes under way.
  static bool fits(std::uint64_t under_way, std::uint64_t cost, std::uint64_t window) {
    return under_way < grant_step(window) || under_way + cost <= window;
  }
  // The cost of a message with such a body; not for kRows.
  std::uint64_t cost(std::uint64_t bytes) const { return unit_ == Unit::kMessages ? 1 : bytes + kMessageBytes; }

 private:
  Unit unit_ = Unit::kRows;
  std::uint64_t window_ = 0, rows_ = 0, share_ = 0;
  std::uint64_t used_ = 0;                  // of kRows: the end of the last row that went
  std::uint64_t settled_ = 0;               // the limit, less the window
  std::map<Row, std::uint64_t> under_way_;  // bytes, by last row, where they count
  std::uint64_t bytes_under_way_ = 0;
};

}  // namespace pif::tool
