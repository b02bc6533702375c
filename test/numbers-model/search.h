// Breadth first through all states, so that what is found first is a shortest way to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "numbers-model/rules.h"

namespace pif::numbers {

struct Outcome {
  std::uint64_t states = 0;
  std::uint64_t depth = 0;
  bool complete = false;  // else the limit was reached, or a violation
  std::string violation;  // empty: none
  std::vector<std::string> path;
  double seconds = 0;
};

[[nodiscard]] Outcome search(const Bounds& bounds, Mutant mutant, std::uint64_t states_max,
                             Begin begin = Begin::kEmpty);

}  // namespace pif::numbers
