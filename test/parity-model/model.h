// A model as main.cc sees it: its rules, the ways to weaken them, and its search.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/search.h"
#include "parity-model/cluster.h"

namespace pif::parity_model {

// Sizes of one search.
struct Bounds {
  Byte sealed = 0;   // records that the create writes; in `append`, that are there
  Byte appends = 0;  // ranges granted
  Byte crashes = 0;
  Byte losses = 0;
  bool apart = false;  // `append`: the deputy is another LFS than P
};

struct Rule {
  std::string_view name;
  std::string_view text;
};

// A rule switched off, and a small search that catches it.
struct Mutant {
  Byte id = 0;  // the model's own enum
  std::string_view name;
  std::string_view rule;
  std::string_view weakened;
  Bounds bounds;
};

struct Model {
  std::string_view name;
  Byte sealed_max = 0;
  bool may_be_apart = false;
  std::span<const Rule> rules;
  std::span<const Mutant> mutants;
  std::span<const Bounds> tested;  // complete searches of the test
  std::span<const Bounds> larger;  // of --long
  // With `ends`, also whether what is begun can end.
  model::Outcome (*search)(const Bounds& bounds, Byte mutant, std::uint64_t states_max, bool ends);
};

extern const Model kSeal;
extern const Model kAppend;

}  // namespace pif::parity_model
