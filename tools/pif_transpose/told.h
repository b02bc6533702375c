// What the controller of a transpose tells its workers, and what they tell it at their end.
#pragma once

#include <string>
#include <string_view>

#include "cost.h"
#include "transpose.h"

namespace pif::transpose {

struct JobSpec {
  Shape shape;
  Algorithm algorithm = Algorithm::kDirect;
  std::uint64_t memory = 0;   // of all workers together
  bool measure = false;       // workers measure what predictions need,
  bool measure_only = false;  // and do nothing else
};
std::string pack(const JobSpec& spec);
JobSpec unpack(std::string_view text);

struct Outcome {
  Phases phases;
  Constants constants;
};
std::string pack(const Outcome& outcome);
Outcome unpack_outcome(const std::string& text);

}  // namespace pif::transpose
