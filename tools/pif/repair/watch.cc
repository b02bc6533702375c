#include "repair/watch.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace pif::cli {
namespace {

constexpr auto kFirstLook = std::chrono::milliseconds(10);
constexpr auto kLooksApart = std::chrono::milliseconds(200);

}  // namespace

Status Watch::until(const std::function<Result<bool>()>& is_over, const std::string& if_interrupted) {
  for (auto wait = kFirstLook;; wait = std::min(2 * wait, kLooksApart)) {
    PIF_TRY_VALUE(const bool ends, is_over());
    if (ends) break;
    if (is_interrupted_) return fail(Code::kCancelled, if_interrupted);
    std::this_thread::sleep_for(wait);
  }
  progress_.reset();
  return {};
}

void Watch::show(const std::string& what, std::uint64_t done_bytes, std::uint64_t total_bytes) {
  if (!progress_) progress_.emplace(what, total_bytes, !program_.common.quiet && !program_.common.json);
  progress_->set(done_bytes);
}

}  // namespace pif::cli
