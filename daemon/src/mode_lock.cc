#include "pif/daemon/mode_lock.h"

#include <algorithm>

namespace pif::daemon {

ModeLock::ModeLock(std::span<const std::uint32_t> beside) : beside_(beside) {
  PIF_ASSERT(!beside.empty() && beside.size() <= kModesMax, beside.size());
  for (unsigned mode = 0; mode < beside.size(); ++mode)
    for (unsigned other = 0; other < mode; ++other) PIF_ASSERT(goes(mode, other) == goes(other, mode), mode, other);
}

ModeLock::~ModeLock() { PIF_ASSERT(is_free(), bits_of(holders_), waiting_.size()); }

std::uint32_t ModeLock::bits_of(const Counts& counts) {
  std::uint32_t bits = 0;
  for (unsigned mode = 0; mode < kModesMax; ++mode) bits |= counts[mode] > 0 ? 1u << mode : 0;
  return bits;
}

bool ModeLock::may_acquire(unsigned mode) const {
  PIF_ASSERT(mode < beside_.size(), mode);
  return goes_beside(mode, bits_of(holders_) | bits_of(waiters_));
}

ModeLock::Held ModeLock::try_acquire(unsigned mode) {
  if (!may_acquire(mode)) return {};
  ++holders_[mode];
  return {*this, mode};
}

ModeLock::Held ModeLock::acquire(Fibers& fibers, unsigned mode, Time until) {
  if (Held held = try_acquire(mode); held.is_held()) return held;
  const auto id = fibers.begin_wait();
  waiting_.push_back({&fibers, id, mode});
  ++waiters_[mode];
  bool is_over = false;
  const AtExit leave([&] {  // a fiber that is ended while it waits, or when its turn has just come
    if (!is_over && !leave_line(id)) release(mode);
  });
  (void)fibers.wait(id, until);  // by time, too, its turn may have come at the last moment
  is_over = true;
  if (leave_line(id)) return {};
  PIF_ASSERT(holders_[mode] > 0, mode);  // admit() counted it
  return {*this, mode};
}

// False: it has been admitted.
bool ModeLock::leave_line(Fibers::WaitId id) {
  const auto at = std::find_if(waiting_.begin(), waiting_.end(), [id](const Waiting& one) { return one.id == id; });
  if (at == waiting_.end()) return false;
  PIF_ASSERT(waiters_[at->mode] > 0, at->mode);
  --waiters_[at->mode];
  waiting_.erase(at);
  admit();  // those who waited behind it
  return true;
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

// In their order: each who goes beside those inside, and beside those who came before it and go on waiting.
void ModeLock::admit() {
  std::uint32_t others = bits_of(holders_);
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const Waiting one = *at;
    const bool goes_in = goes_beside(one.mode, others);
    others |= 1u << one.mode;
    if (!goes_in) {
      ++at;
      continue;
    }
    at = waiting_.erase(at);
    --waiters_[one.mode];
    ++holders_[one.mode];
    one.fibers->wake(one.id);
  }
}

}  // namespace pif::daemon
