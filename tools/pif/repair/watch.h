// Looking on while LFSs do what a command has started: they do it by themselves, and go on when nobody looks any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "command/interrupt.h"
#include "command/program.h"
#include "command/progress.h"

namespace pif::cli {

// As LFSs say how long something has taken.
inline double seconds_of(std::uint64_t milliseconds) { return static_cast<double>(milliseconds) / 1000.0; }

class Watch {
 public:
  // From now on an interrupt ends the looking, and nothing else. The program must outlive this.
  explicit Watch(const Program& program) : program_(program), is_interrupted_(catch_interrupts()) {}

  // Looks at once, and again, until it is over: 10 ms later, then less and less often, up to five times a second.
  // kCancelled, with this text, after an interrupt; else the error of a look.
  [[nodiscard]] Status until(const std::function<Result<bool>()>& is_over, const std::string& if_interrupted);
  // From within a look: how far it is. The total is that of the first time; 0: unknown.
  void show(const std::string& what, std::uint64_t done_bytes, std::uint64_t total_bytes);

 private:
  const Program& program_;
  const std::atomic<bool>& is_interrupted_;
  std::optional<Progress> progress_;  // from the first show() to the end
};

}  // namespace pif::cli
