#include "parity/parity_lock.h"

#include <utility>

#include <fmt/format.h>

namespace pif::lfs {
namespace {

constexpr std::size_t kWaitingMax = 1024;  // for one component

bool is_kept(const ComponentLock& lock) {
  return lock.is_held(Use::kKeepParity) || lock.is_held(Use::kAddParity) || lock.is_held(Use::kSyncParity);
}

}  // namespace

Result<ParityLock> ParityLock::acquire(daemon::Fibers& fibers, const ComponentPtr& component, Use use) {
  if (component->lock.waiting() >= kWaitingMax)
    return fail(Code::kRetry, fmt::format("too many requests wait for file {} here", name_of(component->file)));
  ParityLock lock(component, component->lock.acquire(fibers, use));
  PIF_TRY(check_there(*component));
  return lock;
}

ParityLock::ParityLock(ComponentPtr component, ComponentLock::Held held)
    : component_(std::move(component)), held_(std::move(held)) {
  component_->is_keeping = true;
}

ParityLock::~ParityLock() {
  if (!component_) return;  // it was moved from
  held_.release();
  component_->is_keeping = is_kept(component_->lock);
}

Status check_there(const Component& component) {
  if (component.is_removed()) return fail(Code::kStaleFile, "the file was removed meanwhile");
  return component.failure ? Status(fail(*component.failure)) : Status();
}

}  // namespace pif::lfs
