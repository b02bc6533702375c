#include "requests/holding.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::uint32_t kForMaxMs = 300'000;

}  // namespace

Holding::Holding(LfsContext& context) : context_(context), changed_(context.fibers) {
  context_.operations.bind<&Holding::hold>(*this, When::kAlways);
  context_.fibers.start<&Holding::serve>(*this);
}

Status Holding::hold(const Request& request, const proto::Hold& asked) {
  if (asked.for_ms() > kForMaxMs)
    return fail(Code::kTooLarge, fmt::format("commits can be held for {} s at most", kForMaxMs / 1000));
  if (by_ != 0 && by_ != request.peer) return fail(Code::kBusy, "somebody else holds the commits");
  if (asked.for_ms() == 0) {
    end();
    return {};
  }
  PIF_ASSERT(request.peer != 0);
  by_ = request.peer;
  until_ = context_.now() + std::chrono::milliseconds(asked.for_ms());
  changed_.notify();
  PIF_ASSERT(is_asked() && until_ >= context_.now());
  const std::uint64_t ended = holds_;
  while (holds_ == ended && !has_begun_) changed_.wait();
  return holds_ == ended ? Status() : Status(fail(Code::kCancelled, "commits go on"));
}

void Holding::begin() {
  PIF_ASSERT(by_ != 0);
  if (!std::exchange(has_begun_, true)) changed_.notify();
}

void Holding::drop_peer(net::PeerId peer) {
  if (by_ == peer) end();
}

void Holding::serve() {
  for (;;) {
    changed_.wait(by_ == 0 ? kNever : until_);
    if (by_ == 0 || context_.now() < until_) continue;
    spdlog::warn("the time for which commits were held is over");
    end();
  }
}

void Holding::end() {
  PIF_ASSERT(!has_begun_ || by_ != 0);
  by_ = 0;
  has_begun_ = false;
  ++holds_;
  changed_.notify();
  context_.admission.notify();
}

}  // namespace pif::lfs
