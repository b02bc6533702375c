// The records of a share of the result, in order, as often as they are needed: found once and kept, or merged again
// each time where there is no memory for that.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runs/merge.h"

namespace pif::sort {

class ShareReader {
 public:
  // share, unique: as ShareWalk; everything outlives it. keep: in memory, each in as much as a Bytes takes. in_front:
  // records that come before the share.
  ShareReader(const KeyMaker& maker, const RecordNumbers& numbers, std::span<const RunView> runs, Range share,
              bool unique, bool keep, std::span<const Bytes> in_front);

  // How many there are. The first call merges them if they are kept, or some may be left out.
  std::uint64_t count();
  // Only so many, no more than there are.
  void cut(std::uint64_t count) { count_ = count; }
  // From the first one on.
  void rewind();
  // The next ones; none at the end. Valid until the next call.
  std::span<const Bytes> next();

 private:
  void find_all();
  void find_some();

  const KeyMaker& maker_;
  const RecordNumbers& numbers_;
  std::span<const RunView> runs_;
  Range share_;
  bool unique_, keep_;
  std::span<const Bytes> in_front_;
  std::optional<std::uint64_t> count_;
  std::optional<ShareWalk> walk_;
  std::vector<Pick> picks_;
  std::vector<Bytes> records_;  // all, or the last ones
  std::uint64_t next_ = 0;      // of all
};

}  // namespace pif::sort
