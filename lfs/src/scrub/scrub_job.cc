#include "scrub/scrub_job.h"

#include <spdlog/spdlog.h>

#include "pif/wire/views.h"

namespace pif::lfs {
namespace {

constexpr Duration kMayRunAgain = std::chrono::milliseconds(200);
constexpr Duration kYieldsFor = std::chrono::seconds(1);  // at most, before each window
constexpr Duration kYieldStep = std::chrono::milliseconds(20);

}  // namespace

bool takes_part(const LfsContext& context) {
  return context.standing == Standing::kServing && context.view.state_of(context.config.node) == wire::kViewMember;
}

void ScrubPass::wait_until(Time then) const {
  LfsContext& context = keeping.context;
  if (context.now() < then) context.fibers.sleep_until(then);
  while (!may_run()) context.fibers.sleep_until(context.now() + kMayRunAgain);
}

void ScrubPass::pace() {
  const LfsContext& context = keeping.context;
  for (;;) {
    await_leave();
    const Time now = context.now();
    if (!rate.is_free(now)) {
      news.wait(rate.next());
    } else if (yields && context.replies.pending() > 0 && now - went_on < kYieldsFor) {
      news.wait(now + kYieldStep);
    } else {
      went_on = now;
      return;
    }
  }
}

void ScrubJob::report(const std::string& text, bool is_repaired) const {
  if (pass.report.may_log()) spdlog::warn("{}", text);
  pass.report.add(component->file, text, is_repaired);
}

}  // namespace pif::lfs
