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
  // The most bytes that wait; over that it is full.
  static constexpr std::size_t kBytesMax = 4u << 20;

  // It waits until push() or finish().
  void add(std::string_view text) { waiting_ += text; }
  // For StreamTaker::is_full: true while it is full, though as much as goes was written. After an error of that it is
  // false: StreamTaker::take can say it, and this cannot.
  bool is_full();
  // The error.
  const Status& written() const { return written_; }
  // Writes as much as goes now. kCancelled: nobody reads any more; kIo and kNoSpace: as write(2).
  [[nodiscard]] Status push();
  // All of it, however long that takes.
  [[nodiscard]] Status finish();

 private:
  [[nodiscard]] Status write_once(int wait_ms, bool& is_written);
  std::string waiting_;
  std::size_t at_ = 0;
  Status written_;
};

}  // namespace pif::tool
