#include "output/share_reader.h"

#include <algorithm>

namespace pif::sort {
namespace {

constexpr std::size_t kRecordsAtOnce = 16384;
constexpr std::size_t kBytesAtOnce = 4u << 20;  // one record at least

}  // namespace

ShareReader::ShareReader(const KeyMaker& maker, const RecordNumbers& numbers, std::span<const RunView> runs,
                         Range share, bool unique, bool keep, std::span<const Bytes> in_front)
    : maker_(maker), numbers_(numbers), runs_(runs), share_(share), unique_(unique), keep_(keep), in_front_(in_front) {
  if (!unique) count_ = in_front.size() + share.size();
}

std::uint64_t ShareReader::count() {
  if (keep_ && records_.empty()) {
    find_all();
    count_ = records_.size();
  }
  if (!count_) {
    rewind();
    count_ = in_front_.size();
    for (find_some(); !records_.empty(); find_some()) *count_ += records_.size();
  }
  return *count_;
}

void ShareReader::rewind() {
  next_ = 0;
  if (!keep_) walk_.emplace(maker_, numbers_, runs_, share_.begin, share_.end, unique_);
}

void ShareReader::find_all() {
  std::vector<Bytes> all(in_front_.begin(), in_front_.end());
  all.reserve(in_front_.size() + share_.size());
  walk_.emplace(maker_, numbers_, runs_, share_.begin, share_.end, unique_);
  for (find_some(); !records_.empty(); find_some()) all.insert(all.end(), records_.begin(), records_.end());
  walk_.reset();
  records_ = std::move(all);
}

// Where a record lies is looked up when its place in the lists of ends has been fetched.
void ShareReader::find_some() {
  picks_.clear();
  records_.clear();
  std::size_t bytes = 0;
  const auto look_up = [&](Pick pick) {
    records_.push_back(runs_[pick.run].record(pick.index));
    bytes += records_.back().size();
  };
  while (picks_.size() < kRecordsAtOnce && bytes < kBytesAtOnce) {
    const auto pick = walk_->next();
    if (!pick) break;
    runs_[pick->run].fetch_place(pick->index);
    picks_.push_back(*pick);
    if (picks_.size() > kAhead) look_up(picks_[picks_.size() - 1 - kAhead]);
  }
  for (std::size_t i = records_.size(); i < picks_.size(); ++i) look_up(picks_[i]);
}

std::span<const Bytes> ShareReader::next() {
  const std::uint64_t left = *count_ - next_;
  if (!keep_ && next_ < in_front_.size()) {
    next_ = in_front_.size();
    return in_front_;
  }
  if (!keep_ && left > 0) find_some();
  const auto some = std::span(records_).subspan(keep_ ? next_ : 0);
  const std::size_t size = std::min<std::uint64_t>({some.size(), kRecordsAtOnce, left});
  next_ += size;
  return some.first(size);
}

}  // namespace pif::sort
