// All states of the model within bounds.
#pragma once

#include <cstdint>

#include "model/search.h"
#include "numbers-model/rules.h"

namespace pif::numbers {

using model::Outcome;

[[nodiscard]] Outcome search(const Bounds& bounds, Mutant mutant, std::uint64_t states_max,
                             Begin begin = Begin::kEmpty);

}  // namespace pif::numbers
