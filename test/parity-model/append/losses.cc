// Crashes, views, the loss of a node, its lease, and its return. Rebuilding is one step: `seal` has more of it.
#include <algorithm>

#include "parity-model/append/steps.h"

namespace pif::parity_model::append {
namespace {

bool is_sequencer(const State& s, std::size_t node) { return node == kD0 || node == s.deputy; }

void stop(State& s, std::size_t node) {
  if (!is_sequencer(s, node)) return;
  Sequencer& sequencer = s.sequencers[node == kD0 ? 0 : 1];
  sequencer.active = sequencer.shown = 0;
}

// A new root: nothing is left, and it begins in the newest view.
void wipe(State& s, std::size_t node) {
  stop(s, node);
  drop(s, node, 0);
  s.nodes[node] = {0, s.views.newest, 0, 0, 0};
  if (is_sequencer(s, node)) s.sequencers[node == kD0 ? 0 : 1].length = 0;
  if (node == kP) s.page = {};
}

}  // namespace

void Steps::crash_steps(const State& s) {
  for (std::size_t node = 0; node < s.node_count; ++node) {
    State next = s;
    if (s.nodes[node].up == 0) {
      next.nodes[node].up = 1;
      // Whether a lost node ever comes back nobody knows.
      const bool lost = s.views.last().is_absent(node);
      emit({"restart", -1, static_cast<int>(node)}, next, lost ? Need::kAccident : Need::kWillHappen);
    } else if (s.crashes > 0) {
      --next.crashes;
      next.nodes[node].up = 0;
      stop(next, node);
      emit({"crash", -1, static_cast<int>(node)}, next, Need::kAccident);
    }
  }
}

void Steps::view_steps(const State& s) {
  for (std::size_t node = 0; node < s.node_count; ++node)
    if (s.nodes[node].up != 0 && s.nodes[node].view < s.views.newest) adopt(s, node);
  if (s.losses > 0 && !s.views.full()) declare_lost(s);
  if (s.lease != 0) {
    State next = s;
    next.lease = 0;
    emit({"the lease runs out", -1, kD0}, next);
  }
}

void Steps::adopt(const State& s, std::size_t node) {
  State next = s;
  const Byte view = ++next.nodes[node].view;
  stop(next, node);
  if (is_absent(s, view, node)) learn_lost(next, node);
  emit({"adopt view", view, static_cast<int>(node)}, next);
}

// Who hears that it was lost closes, and forgets all that it does not know to be published. Its length does not count.
void Steps::learn_lost(State& s, std::size_t node) const {
  s.nodes[node].open = 0;
  if (is_sequencer(s, node) && !is(Weak::kReturnKeepsLength)) s.sequencers[node == kD0 ? 0 : 1].length = 0;
  if (!is(Weak::kReturnKeepsUnpublished)) drop(s, node, s.nodes[node].known);
}

void Steps::declare_lost(const State& s) {
  const View& last = s.views.last();
  for (std::size_t node = 0; node < s.node_count; ++node) {
    if (last.kind != Kind::kAllMembers && !last.is_returning(node)) continue;
    State next = s;
    --next.losses;
    next.views.add({Kind::kLost, byte(node)});
    next.lease = node == kD0 ? 1 : 0;
    emit({"declared lost:", -1, static_cast<int>(node)}, next, Need::kAccident);
    next.lease = 0;
    wipe(next, node);
    emit({"declared lost, its disk is empty:", -1, static_cast<int>(node)}, next, Need::kAccident);
  }
}

void Steps::return_steps(const State& s) {
  const View& last = s.views.last();
  const std::size_t node = last.node;
  const Node& own = s.nodes[node];
  if (last.kind == Kind::kAllMembers || s.views.full() || own.up == 0 || own.view != s.views.newest) return;
  State next = s;
  if (last.kind == Kind::kLost) {
    next.lease = 0;
    next.views.add({Kind::kReturning, byte(node)});
    emit({"cutover view: returning", -1, static_cast<int>(node)}, next, Need::kAccident);
  } else if (own.open != 0) {
    next.views.add({});
    emit({"view: all are members"}, next);
  } else {
    open(s, node);
  }
}

// Brings what `node` lacks of the first `length` records.
void Steps::fetch(State& s, std::size_t node, std::size_t length) const {
  const State before = s;
  s.nodes[node].known = std::max(s.nodes[node].known, byte(length));
  for (std::size_t record = 0; record < length; ++record) {
    if (node == member_of(record) && s.rows[record] == 0) s.rows[record] = from_parity(before, record);
    if (node == kP && !is_folded(s, record) && s.frames[record] == 0) s.frames[record] = s.rows[record];
  }
}

// The rest comes from those that have adopted the cutover view, up to the length that the sequencer has settled in it.
// LFS 0 takes its deputy's, and settles by that.
void Steps::open(const State& s, std::size_t node) {
  for (std::size_t other = 0; other < s.node_count; ++other)
    if (s.nodes[other].up == 0 || s.nodes[other].view != s.views.newest) return;
  State next = s;
  Sequencer &own = next.sequencers[0], &deputy = next.sequencers[1];
  if (node != kD0 && own.active == 0) return;
  const Byte length = node == kD0 ? std::max(own.length, deputy.length) : own.shown;
  fetch(next, node, length);
  next.nodes[node].open = 1;
  if (node == s.deputy) deputy.length = std::max(deputy.length, length);
  if (node == kD0) {
    const Byte generation = raised(s, kD0, std::max(s.nodes[kD0].generation, s.nodes[s.deputy].generation));
    raise(next, kD0, generation, length);
    raise(next, s.deputy, generation, length);
    next.nodes[s.deputy].known = std::max(s.nodes[s.deputy].known, length);
    own = {length, 1, length};
    deputy.length = length;
    publish(next, length);
  }
  emit({"open", -1, static_cast<int>(node)}, next);
}

}  // namespace pif::parity_model::append
