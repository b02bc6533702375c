// Numbers of letters, so that none counts twice.
#pragma once

#include <cstdint>

namespace pif::tool {

// Which letters of one sender have come. A letter that is overtaken by as many as it remembers counts as lost.
class ReplayWindow {
 public:
  // Whether it came for the first time.
  bool is_new(std::uint64_t number) {
    if (number > highest_) {
      const std::uint64_t ahead = number - highest_;
      below_ =
          ahead > kRemembered ? 0 : ((ahead == kRemembered ? 0 : below_ << ahead) | std::uint64_t{1} << (ahead - 1));
      highest_ = number;
      return true;
    }
    const std::uint64_t behind = highest_ - number;
    if (behind == 0 || behind > kRemembered) return false;
    const std::uint64_t bit = std::uint64_t{1} << (behind - 1);
    const bool came = (below_ & bit) != 0;
    below_ |= bit;
    return !came;
  }

 private:
  static constexpr std::uint64_t kRemembered = 64;
  std::uint64_t highest_ = 0;
  std::uint64_t below_ = 0;  // bit i: number highest_ - 1 - i came
};

}  // namespace pif::tool
