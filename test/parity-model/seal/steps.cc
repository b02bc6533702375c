#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {

State Steps::first() const {
  State s;
  s.appends = bounds_.appends;
  s.crashes = bounds_.crashes;
  s.losses = bounds_.losses;
  return s;
}

const std::vector<Steps::Successor>& Steps::expand(const State& s) {
  out_.clear();
  if (s.committed == 0) {
    create_steps(s);
  } else {
    append_steps(s);
    sequencer_steps(s);
    fold_steps(s);
  }
  sync_steps(s);
  crash_steps(s);
  view_steps(s);
  return_steps(s);
  return out_;
}

bool Steps::takes(const State& s, std::size_t node, Byte view) const {
  const Node& at = s.nodes[node];
  return at.up != 0 && (at.view == view || (at.view > view && is(Weak::kOldViewAccepted)));
}

bool Steps::left_out(const State& s, Byte view, std::size_t node) const {
  if (is_absent(s, view, node)) return true;
  if (is(Weak::kSilentIsAbsent) && s.nodes[node].up == 0) return true;
  return is(Weak::kReturningLeftOut) && s.views.at(view).is_returning(node);
}

bool Steps::is_end(const State& s) const {
  if (s.committed == 0 || s.append.phase != Phase::kNone || s.views.last().kind == Kind::kReturning) return false;
  for (std::size_t node = 0; node < kNodes; ++node)
    if (!is_gone(s, node) && (s.nodes[node].up == 0 || s.nodes[node].view != s.views.newest)) return false;
  const Sequencer& sequencer = s.sequencers[is_gone(s, kD0) ? 1 : 0];
  const bool all_appended = s.appends == 0 || sequencer.shown == kRecords;
  const bool all_folded = is_gone(s, kP) || s.page_count == sequencer.shown / kMembers;
  return sequencer.active != 0 && all_appended && all_folded;
}

}  // namespace pif::parity_model::seal
