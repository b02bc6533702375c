#include "pif/daemon/admission.h"

#include "pif/base/assert.h"

namespace pif::daemon {

Result<bool> Admission::wait(const Request& request, Time until) {
  const std::uint64_t bytes = request.packet.body.size();
  if (waiting_ >= limits_.requests || bytes > limits_.bytes - bytes_) return fail(Code::kBusy, busy_);
  ++waiting_;
  bytes_ += bytes;
  PIF_ASSERT(waiting_ <= limits_.requests && bytes_ <= limits_.bytes, waiting_, bytes_);
  const AtExit leave([&] {
    PIF_ASSERT(waiting_ > 0 && bytes_ >= bytes, waiting_, bytes_);
    --waiting_;
    bytes_ -= bytes;
  });
  news_.wait(until);
  return !replies_.is_dropped(request);
}

}  // namespace pif::daemon
