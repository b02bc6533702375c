// So many bytes a second, on average: who has spent more than there was waits until that is made up for. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pif/base/clock.h"

namespace pif::lfs {

class RateLimit {
 public:
  // bytes_per_second 0: no limit.
  void set(std::uint64_t bytes_per_second, Time now) {
    rate_ = static_cast<double>(bytes_per_second);
    free_from_ = now;
  }
  bool is_limited() const { return rate_ > 0; }
  // Whether more may be spent now; else from next() on. A caller that waits asks again in each turn.
  bool is_free(Time now) {
    const bool is = rate_ <= 0 || now >= free_from_;
    is_waited_for_ = is_waited_for_ || !is;
    return is;
  }
  Time next() const { return free_from_; }
  // When a fiber that waits for it looks again: soon, for a person may set another rate meanwhile.
  Time next_look(Time now) const { return std::min(free_from_, now + std::chrono::seconds(1)); }
  // All who wait ask again after this.
  void begin_turn() { is_waited_for_ = false; }
  // kNever: nobody has asked in vain in this turn.
  Time next_deadline() const { return is_waited_for_ ? free_from_ : kNever; }
  void spend(std::uint64_t bytes, Time now) {
    if (rate_ <= 0) return;
    const std::chrono::duration<double> takes(static_cast<double>(bytes) / rate_);
    free_from_ = std::max(free_from_, now) + std::chrono::duration_cast<Duration>(takes);
  }

 private:
  double rate_ = 0;
  Time free_from_{};
  bool is_waited_for_ = false;
};

}  // namespace pif::lfs
