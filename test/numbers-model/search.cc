#include "numbers-model/search.h"

#include <algorithm>
#include <string_view>

#include "numbers-model/steps.h"

namespace pif::numbers {
namespace {

// The first state of a search.
State first_state(Steps& steps, std::size_t lfss, Begin begin) {
  State state = steps.first();
  if (begin == Begin::kEmpty) return state;
  const char* const create = lfss == 1 ? "create at LFS 0: file" : "create at both: file";
  const auto go = [&](std::string_view text, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      const auto& all = steps.expand(state);
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const Successor& next) { return next.label.text == text; });
      if (found != all.end()) state = State(found->state);
    }
  };
  go("server starts", 1);
  go("starts", lfss);
  go("keeps its incarnation", lfss);
  go("is confirmed", lfss);
  go("server serves", 1);
  go(create, 1);
  go("seal", lfss);
  go("commit", 1);
  go("settle", lfss);
  for (std::size_t lfs = 0; lfs < lfss; ++lfs) {
    for (const Successor& next : std::vector<Successor>(steps.expand(state)))
      if (next.label.text == std::string_view("heartbeat") && next.label.lfs == static_cast<int>(lfs))
        state = next.state;
  }
  go("a second passes", 1);
  return state;
}

}  // namespace

Outcome search(const Bounds& bounds, Mutant mutant, std::uint64_t states_max, Begin begin) {
  Steps steps(bounds, mutant);
  const State first = first_state(steps, bounds.lfss, begin);
  return model::Search<Steps>(steps, first, states_max).run();
}

}  // namespace pif::numbers
