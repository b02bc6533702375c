// One line on the terminal that says how far a tool is.
#pragma once

#include <cstdint>

#include "pif/base/clock.h"

namespace pif::tool {

class ProgressLine {
 public:
  ProgressLine(bool visible, Clock& clock) : visible_(visible), clock_(clock), start_(clock.now()) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::uint64_t bytes_done, std::uint64_t bytes_total);
  void clear();

 private:
  bool visible_;
  Clock& clock_;
  Time start_;
  Time next_{};
  bool drawn_ = false;
};

}  // namespace pif::tool
