#include "pif/daemon/mode_lock.h"

#include <algorithm>

namespace pif::daemon {

ModeLock::ModeLock(std::span<const std::uint32_t> beside) : beside_(beside) {
  PIF_ASSERT(!beside.empty() && beside.size() <= kModesMax, beside.size());
  for (unsigned mode = 0; mode < beside.size(); ++mode)
    for (unsigned other = 0; other < mode; ++other) PIF_ASSERT(goes(mode, other) == goes(other, mode), mode, other);
}

ModeLock::~ModeLock() {
  for (const unsigned count : holders_) PIF_ASSERT(count == 0, count);
}

bool ModeLock::goes_beside_holders(unsigned mode) const {
  for (unsigned other = 0; other < beside_.size(); ++other)
    if (holders_[other] > 0 && !goes(mode, other)) return false;
  return true;
}

ModeLock::Held ModeLock::try_acquire(unsigned mode) {
  PIF_ASSERT(mode < beside_.size(), mode);
  if (!waiting_.empty() || !goes_beside_holders(mode)) return {};
  ++holders_[mode];
  return {*this, mode};
}

ModeLock::Held ModeLock::acquire(Fibers& fibers, unsigned mode) {
  if (Held held = try_acquire(mode); held.is_held()) return held;
  const auto id = fibers.begin_wait();
  waiting_.push_back({&fibers, id, mode});
  bool has_come = false;
  const AtExit leave([&] {  // a fiber that is ended while it waits, or when its turn has just come
    if (!has_come && std::erase_if(waiting_, [id](const Waiting& one) { return one.id == id; }) == 0) release(mode);
  });
  fibers.wait(id);
  has_come = true;
  PIF_ASSERT(holders_[mode] > 0, mode);  // admit() counted it
  return {*this, mode};
}

void ModeLock::release(unsigned mode) {
  PIF_ASSERT(holders_[mode] > 0, mode);
  --holders_[mode];
  admit();
}

void ModeLock::relax(unsigned from, unsigned to) {
  PIF_ASSERT(to < beside_.size() && holders_[from] > 0 && (beside_[from] & ~beside_[to]) == 0, from, to);
  --holders_[from];
  ++holders_[to];
  admit();
}

// In their order, as far as they go beside those inside.
void ModeLock::admit() {
  while (!waiting_.empty() && goes_beside_holders(waiting_.front().mode)) {
    const Waiting first = waiting_.front();
    waiting_.pop_front();
    ++holders_[first.mode];
    first.fibers->wake(first.id);
  }
}

}  // namespace pif::daemon
