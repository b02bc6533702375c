#include "pif/tool/slow_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "pif/base/assert.h"

namespace pif::tool {
namespace {

// A pipe that can be written to takes so much without waiting (PIPE_BUF).
constexpr std::size_t kPipeBytes = 4096;

}  // namespace

Status SlowOutput::write_once(int wait_ms, bool& is_written) {
  PIF_ASSERT(at_ < waiting_.size(), at_, waiting_.size());
  is_written = false;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, wait_ms) <= 0) return {};
  const ssize_t written = ::write(STDOUT_FILENO, waiting_.data() + at_, std::min(waiting_.size() - at_, kPipeBytes));
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (written < 0 && errno == EPIPE) return fail(Code::kCancelled, "nobody reads standard output any more");
  if (written < 0) return fail_errno(errno, "cannot write to standard output");
  is_written = true;
  at_ += static_cast<std::size_t>(written);
  PIF_ASSERT(at_ <= waiting_.size(), at_, waiting_.size());
  if (at_ > kBytesMax || at_ == waiting_.size()) {
    waiting_.erase(0, at_);
    at_ = 0;
  }
  return {};
}

Status SlowOutput::push() {
  for (bool goes_on = true; goes_on && at_ < waiting_.size();) PIF_TRY(write_once(0, goes_on));
  return {};
}

bool SlowOutput::is_full() {
  const auto waits = [this] { return waiting_.size() - at_ >= kBytesMax; };
  if (!waits()) return false;
  if (const Status pushed = push(); !pushed) written_ = pushed;
  return written_ && waits();
}

Status SlowOutput::finish() {
  for (bool is_written = false; at_ < waiting_.size();) PIF_TRY(write_once(1000, is_written));
  return {};
}

}  // namespace pif::tool
