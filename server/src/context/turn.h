// The end of a turn of the loop, which fibers wait for: many requests share one transaction (docs/ARCHITECTURE.md
// "Which thread runs what").
#pragma once

#include <optional>

#include "pif/base/result.h"
#include "pif/daemon/fibers.h"

namespace pif::server {

class Turn {
 public:
  // fibers outlives it.
  explicit Turn(daemon::Fibers& fibers) : over_(fibers) {}

  // Waits until this turn is over: what was written in it is durable, or nothing of it was done. Called by a fiber.
  [[nodiscard]] Status commit() {
    next();
    return failed_ ? Status(fail(*failed_)) : Status();
  }
  // Waits for the next turn. Called by a fiber.
  void next() { over_.wait(); }
  // By the loop: it is over, and failed or not.
  void end(const std::optional<Error>& failed) {
    failed_ = failed;
    over_.notify();
  }

 private:
  daemon::Event over_;
  std::optional<Error> failed_;  // the last one
};

}  // namespace pif::server
