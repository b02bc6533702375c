// The right to write a component's parity of others' rows, as long as it lives.
#pragma once

#include "context/lfs_context.h"

namespace pif::lfs {

class ParityLock {
 public:
  // Waits in turn; called by a fiber. use: one of those of parity. kRetry: too many wait. kStaleFile, kIo: the
  // component was removed, or failed.
  [[nodiscard]] static Result<ParityLock> acquire(daemon::Fibers& fibers, const ComponentPtr& component, Use use);
  ParityLock(ParityLock&&) noexcept = default;
  ParityLock& operator=(ParityLock&&) = delete;
  ~ParityLock();

  // As ModeLock::Held::relax().
  void relax(Use use) { ComponentLock::relax(held_, use); }

 private:
  ParityLock(ComponentPtr component, ComponentLock::Held held);

  ComponentPtr component_;  // outlives held_
  ComponentLock::Held held_;
};

// After a wait. kStaleFile, kIo: it was removed, or failed.
[[nodiscard]] Status check_there(const Component& component);

}  // namespace pif::lfs
