// Letters of one sender, in the order of their numbers and each once, however they come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "pif/base/assert.h"

namespace pif::tool {

// T: a letter. A missing letter holds up those after it: a lost letter is never a gap that nobody notices. A caller
// that compares taken() with how many were sent knows whether one is missing.
template <typename T>
class LetterOrder {
 public:
  // Letters of one sender. Letters beyond them are lost: credit lets a sender have far fewer under way.
  static constexpr std::size_t kWaitingMax = 1u << 16;

  // number: from 1.
  void add(std::uint64_t number, T letter) {
    PIF_ASSERT(number > 0, next_);
    if (number == next_ || (number > next_ && waiting_.size() < kWaitingMax))
      waiting_.emplace(number, std::move(letter));
  }
  // The next one, if it has come.
  std::optional<T> take() {
    const auto first = waiting_.begin();
    if (first == waiting_.end()) return std::nullopt;
    PIF_ASSERT(first->first >= next_, first->first, next_);  // each is taken once
    if (first->first != next_) return std::nullopt;
    std::optional<T> letter(std::move(first->second));
    waiting_.erase(first);
    ++next_;
    return letter;
  }
  // How many were taken: all up to this number.
  std::uint64_t taken() const { return next_ - 1; }
  // The highest number that is known to have been sent: taken, or kept because of one that is missing.
  std::uint64_t highest() const { return waiting_.empty() ? taken() : waiting_.rbegin()->first; }

 private:
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, T> waiting_;  // by number
};

}  // namespace pif::tool
