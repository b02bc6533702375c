// The handlers of a daemon's operations. It binds all of them before it serves; start() sees to that.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "pif/base/assert.h"
#include "pif/wire/operations.h"

namespace pif::wire {

// Handler: whatever the daemon calls; copied. Thread-safety: bind() before others look; const calls from any thread.
template <Daemon kDaemon, typename Handler>
class Bindings {
 public:
  // Once for each operation of the daemon, by its request's type; what the daemon does not have does not compile.
  template <Request R>
  void bind(Handler handler) {
    static_assert(OperationOf<R>::kRow.right_at(kDaemon) != Right::kNone, "this daemon does not have this operation");
    auto& place = handlers_[static_cast<std::size_t>(OperationOf<R>::kCase)];
    PIF_ASSERT(!place.has_value(), OperationOf<R>::kCase);
    place = std::move(handler);
  }

  // The handler for an envelope's op_case(), which may be any number. Null for what is not the daemon's, or not bound.
  // Valid as long as this object.
  const Handler* find(int op_case) const {
    if (op_case < 0 || static_cast<std::size_t>(op_case) >= kOpCasesMax) return nullptr;
    const auto& place = handlers_[static_cast<std::size_t>(op_case)];
    return place ? &*place : nullptr;
  }

  // The first operation of the daemon that has no handler; null: none is missing.
  const Operation* first_missing() const {
    for (const Operation& operation : kOperations)
      if (operation.right_at(kDaemon) != Right::kNone && find(operation.request) == nullptr) return &operation;
    return nullptr;
  }
  // The daemon serves from now on. Ends the process (PIF_ASSERT) if a handler is missing.
  void start() const {
    const Operation* missing = first_missing();
    PIF_ASSERT(missing == nullptr, missing->request);
  }

 private:
  std::array<std::optional<Handler>, kOpCasesMax> handlers_{};  // by the request's number in Envelope
};

}  // namespace pif::wire
