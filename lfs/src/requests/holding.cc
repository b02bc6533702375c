#include "requests/holding.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr std::uint32_t kForMaxMs = 300'000;

}  // namespace

Holding::Holding(LfsContext& context) : context_(context) {
  context.operations.bind<&Holding::hold>(*this, When::kAlways);
}

void Holding::hold(const Request& request, const proto::Hold& asked) {
  if (asked.for_ms() > kForMaxMs)
    return context_.replies.answer(
        request, fail(Code::kTooLarge, fmt::format("commits can be held for {} s at most", kForMaxMs / 1000)));
  if (by_ != 0 && by_ != request.peer)
    return context_.replies.answer(request, fail(Code::kBusy, "somebody else holds the commits"));
  if (asked.for_ms() == 0) {
    end();
    return context_.replies.answer(context_.replies.defer(request), Status());
  }
  by_ = request.peer;
  until_ = context_.now() + std::chrono::milliseconds(asked.for_ms());
  waiting_.push_back(context_.replies.defer(request));
}

void Holding::begin() {
  PIF_ASSERT(by_ != 0);
  for (const ReplyToken token : std::exchange(waiting_, {})) context_.replies.answer(token, Status());
}

void Holding::drop_peer(net::PeerId peer) {
  if (by_ == peer) end();
}

void Holding::tick() {
  if (by_ == 0 || context_.now() < until_) return;
  spdlog::warn("the time for which commits were held is over");
  end();
}

void Holding::end() {
  by_ = 0;
  for (const ReplyToken token : std::exchange(waiting_, {}))
    context_.replies.answer(token, fail(Code::kCancelled, "commits go on"));
}

}  // namespace pif::lfs
