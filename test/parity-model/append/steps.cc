#include "parity-model/append/steps.h"

namespace pif::parity_model::append {

State Steps::first() const {
  State s;
  s.crashes = bounds_.crashes;
  s.losses = bounds_.losses;
  if (bounds_.apart) {
    s.node_count = kNodesMax;
    s.deputy = kQ;
  }
  for (std::size_t record = 0; record < bounds_.sealed; ++record)
    s.rows[record] = s.frames[record] = s.right[record] = kSealed;
  s.seen = s.sequencers[0].length = s.sequencers[1].length = bounds_.sealed;
  for (std::size_t node = 0; node < s.node_count; ++node) s.nodes[node].known = bounds_.sealed;
  return s;
}

const std::vector<Steps::Successor>& Steps::expand(const State& s) {
  out_.clear();
  for (std::size_t sequencer = 0; sequencer < kSequencers; ++sequencer) sequencer_steps(s, sequencer);
  for (std::size_t place = 0; place < s.used; ++place) request_steps(s, place);
  settle(s);
  take_over(s);
  deputy_tells(s);
  fold(s);
  crash_steps(s);
  view_steps(s);
  return_steps(s);
  return out_;
}

// What is over, and what nobody takes any more, is the same as nothing.
void Steps::forget_late(State& s) const {
  if (is(Weak::kOldViewAccepted) || is(Weak::kOlderGenerationAccepted) || is(Weak::kOldNoteAccepted)) return;
  for (Append& append : s.appends) {
    if (append.phase != Phase::kDead && append.phase != Phase::kAcknowledged) continue;
    bool taken = is_open(s, append);
    for (std::size_t node = 0; node < s.node_count; ++node)
      taken = taken || (s.nodes[node].view <= append.view && s.nodes[node].generation <= append.generation);
    if (!taken) append = {.phase = Phase::kDead};
  }
}

bool Steps::is_end(const State& s) const {
  if (s.views.last().kind == Kind::kReturning) return false;
  for (std::size_t node = 0; node < s.node_count; ++node)
    if (!is_gone(s, node) && (s.nodes[node].up == 0 || s.nodes[node].view != s.views.newest)) return false;
  for (const Append& append : s.appends)
    if (append.is_alive()) return false;
  const std::size_t q = is_gone(s, kD0) ? 1 : 0;
  const Sequencer& sequencer = s.sequencers[q];
  const bool all_appended = s.used == bounds_.appends || sequencer.shown == kRecords;
  const bool all_folded = is_gone(s, kP) || sequencer.shown < kMembers || is_folded(s, 0);
  return sequencer.active != 0 && open_count(s, q) == 0 && all_appended && all_folded;
}

}  // namespace pif::parity_model::append
