// Requests that wait in their fibers until their daemon may do what they ask for: it has just been started, or holds
// its commits. One thread, the daemon's loop.
#pragma once

#include <cstdint>
#include <string>

#include "pif/base/result.h"
#include "pif/daemon/fibers.h"
#include "pif/daemon/replies.h"

namespace pif::daemon {

class Admission {
 public:
  // At most so much waits at once.
  struct Limits {
    std::size_t requests = 0;
    std::uint64_t bytes = 0;  // of their bodies
  };

  // All outlive it. busy: what a request is told that finds no room.
  Admission(Fibers& fibers, const Replies& replies, Limits limits, std::string busy)
      : replies_(replies), limits_(limits), busy_(std::move(busy)), news_(fibers) {}

  // Waits for news, or until then; the caller looks again. False: nobody waits for the answer any more. kBusy: too much
  // waits already. Called by the request's fiber.
  [[nodiscard]] Result<bool> wait(const Request& request, Time until = kNever);
  // The daemon may do what it might not do before, or somebody who waits is gone.
  void notify() { news_.notify(); }
  // The same for fibers that are no requests.
  Event& news() { return news_; }
  // So many requests wait.
  std::size_t waiting() const { return waiting_; }

 private:
  const Replies& replies_;
  const Limits limits_;
  const std::string busy_;
  std::size_t waiting_ = 0;
  std::uint64_t bytes_ = 0;  // of those that wait
  Event news_;
};

}  // namespace pif::daemon
