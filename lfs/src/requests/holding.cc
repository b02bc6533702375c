#include "requests/holding.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace pif::lfs {
namespace {

constexpr std::uint32_t kForMaxMs = 300'000;

}  // namespace

void Holding::hold(const Request& request) {
  const std::uint32_t for_ms = request.envelope().hold().for_ms();
  if (auto ok = core_.allow_management(request); !ok) return core_.replies.answer(request, fail(std::move(ok.error())));
  if (for_ms > kForMaxMs)
    return core_.replies.answer(request, fail(Code::kTooLarge, fmt::format("commits can be held for {} s at most", kForMaxMs / 1000)));
  if (by_ != 0 && by_ != request.peer) return core_.replies.answer(request, fail(Code::kBusy, "somebody else holds the commits"));
  if (for_ms == 0) {
    end();
    return core_.replies.answer(core_.replies.defer(request), Status());
  }
  by_ = request.peer;
  until_ = core_.now() + std::chrono::milliseconds(for_ms);
  waiting_.push_back(core_.replies.defer(request));
}

void Holding::begin() {
  for (const ReplyToken token : std::exchange(waiting_, {})) core_.replies.answer(token, Status());
}

void Holding::drop_peer(net::PeerId peer) {
  if (by_ == peer) end();
}

void Holding::tick() {
  if (by_ == 0 || core_.now() < until_) return;
  spdlog::warn("the time for which commits were held is over");
  end();
}

void Holding::end() {
  by_ = 0;
  for (const ReplyToken token : std::exchange(waiting_, {})) core_.replies.answer(token, fail(Code::kCancelled, "commits go on"));
}

}  // namespace pif::lfs
