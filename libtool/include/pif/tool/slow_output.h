// Standard output of a controller while its job runs: who reads it may be slow, and the job must go on meanwhile. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif::tool {

// Writes what it is given without waiting: what a pipe does not take now waits here.
class SlowOutput {
 public:
  // Of what waits; over that it is full.
  static constexpr std::size_t kBytesMax = 4u << 20;

  // It waits until push() or finish().
  void add(std::string_view text) { waiting_ += text; }
  // Writes as much as goes now. kCancelled: nobody reads any more; kIo and kNoSpace: as write(2).
  [[nodiscard]] Status push();
  // All of it, however long that takes.
  [[nodiscard]] Status finish();
  bool is_full() const { return waiting_.size() - at_ >= kBytesMax; }

 private:
  [[nodiscard]] Status write_once(int wait_ms, bool& is_written);
  std::string waiting_;
  std::size_t at_ = 0;
};

}  // namespace pif::tool
