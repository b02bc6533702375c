#include "pif/lfs/disk_health.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

// kReadOnly: a kernel mounts a file system so after it has found errors. kPermission, of a daemon in its own root, is
// what a damaged inode looks like.
bool is_failure(const Status& outcome) {
  if (outcome) return false;
  const Code code = outcome.error().code;
  return code == Code::kIo || code == Code::kReadOnly || code == Code::kPermission;
}

std::int64_t seconds(Duration time) { return std::chrono::duration_cast<std::chrono::seconds>(time).count(); }

}  // namespace

std::uint64_t DiskHealth::begin(DiskCall call, std::string_view path) {
  const std::lock_guard lock(mutex_);
  PIF_ASSERT(!under_way_.contains(next_), next_);
  under_way_.emplace_hint(under_way_.end(), next_, Call{call, path, clock_.now()});
  return next_++;
}

void DiskHealth::end(std::uint64_t call, std::uint64_t offset, const Status& outcome) {
  const std::lock_guard lock(mutex_);
  const auto found = under_way_.find(call);
  PIF_ASSERT(found != under_way_.end(), call);
  if (is_failure(outcome)) note_locked(found->second.kind, found->second.path, offset, outcome);
  under_way_.erase(found);
}

void DiskHealth::note(DiskCall call, std::string_view path, std::uint64_t offset, const Status& outcome) {
  if (!is_failure(outcome)) return;
  const std::lock_guard lock(mutex_);
  note_locked(call, path, offset, outcome);
}

void DiskHealth::note_locked(DiskCall call, std::string_view path, std::uint64_t offset, const Status& outcome) {
  PIF_ASSERT(!outcome && is_failure(outcome), offset);
  has_news_ = true;
  const std::string& text = outcome.error().text;
  if (call == DiskCall::kChange) {
    if (!failed_) failed_ = text;
    return;
  }
  ++failed_reads_;
  last_read_ = text;
  const Time now = clock_.now();
  forget_old_places(now);
  const auto place = std::make_pair(std::string(path), offset / kPlaceBytes);
  if (places_.size() < kPlacesMax || places_.contains(place)) places_[place] = now;
  PIF_ASSERT(places_.size() <= kPlacesMax, places_.size());
}

void DiskHealth::forget_old_places(Time now) const {
  std::erase_if(places_, [now](const auto& place) { return now - place.second > kReadsWithin; });
}

std::optional<std::string> DiskHealth::trouble() const {
  const std::lock_guard lock(mutex_);
  if (failed_) return failed_;
  const Time now = clock_.now();
  for (const auto& [id, call] : under_way_) {
    const Duration taken = now - call.began;
    if (taken > (call.kind == DiskCall::kRead ? kReadMax : kChangeMax))
      return fmt::format("{} of {} has not been answered for {} s",
                         call.kind == DiskCall::kRead ? "a read" : "a change", call.path, seconds(taken));
  }
  forget_old_places(now);
  if (places_.size() < kPlacesMax) return std::nullopt;
  return fmt::format("it cannot be read in many places: {}", last_read_);
}

bool DiskHealth::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(has_news_, false);
}

bool DiskHealth::take_probe() {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  if (failed_ || probed_reads_ == failed_reads_ || now - probed_ < kProbeEvery) return false;
  PIF_ASSERT(probed_reads_ < failed_reads_ && now >= probed_, probed_reads_, failed_reads_);
  probed_reads_ = failed_reads_;
  probed_ = now;
  return true;
}

std::uint64_t DiskHealth::failed_reads() const {
  const std::lock_guard lock(mutex_);
  return failed_reads_;
}

}  // namespace pif::lfs
