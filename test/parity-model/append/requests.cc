// Requests of appends and notes of LFS 0, which come when they like, and again; and P's folding.
#include <algorithm>

#include "parity-model/append/steps.h"

namespace pif::parity_model::append {

bool Steps::takes(const State& s, std::size_t node, const Append& append) const {
  const Node& at = s.nodes[node];
  if (is_absent(s, append.view, node) || at.up == 0) return false;
  return at.view == append.view || (at.view > append.view && is(Weak::kOldViewAccepted));
}

bool Steps::is_older(const State& s, std::size_t node, const Append& append) const {
  return append.generation < s.nodes[node].generation && !is(Weak::kOlderGenerationAccepted);
}

void Steps::request_steps(const State& s, std::size_t place) {
  if (s.appends[place].generation == 0 && s.appends[place].phase == Phase::kDead) return;  // forgotten
  row_comes(s, place);
  copy_comes(s, place);
  done_comes(s, place);
  note_comes(s, place);
  send_note(s, place);
  publish_range(s, place);
}

// A newer generation drops all that the LFS has from the base on. In one generation a record is granted once: what is
// there has come before.
void Steps::row_comes(const State& s, std::size_t place) {
  const Append& append = s.appends[place];
  const std::size_t member = member_of(append.record);
  if (!takes(s, member, append) || is_older(s, member, append)) return;
  State next = s;
  Node& node = next.nodes[member];
  if (append.generation > node.generation && !is(Weak::kOldRowsKept)) drop(next, member, append.base);
  node.generation = std::max(node.generation, append.generation);
  node.known = std::max(node.known, append.base);
  if (next.rows[append.record] == 0) next.rows[append.record] = byte(place + 1);
  if (append.is_alive()) next.appends[place].row = 1;
  emit({"row of append", static_cast<int>(place + 1), static_cast<int>(member)}, next);
}

void Steps::copy_comes(const State& s, std::size_t place) {
  const Append& append = s.appends[place];
  if (!takes(s, kP, append) || is_older(s, kP, append)) return;
  State next = s;
  Node& node = next.nodes[kP];
  if (append.generation > node.generation && !is(Weak::kOldCopiesKept)) drop(next, kP, append.base);
  node.generation = std::max(node.generation, append.generation);
  node.known = std::max(node.known, append.base);
  Byte& frame = next.frames[append.record];
  if (!is_folded(s, append.record) && frame == 0) frame = byte(place + 1);
  if (append.is_alive()) next.appends[place].copy = 1;
  emit({"copy of append", static_cast<int>(place + 1), kP}, next);
}

// The client says that all is durable, or hears that its range is no more.
void Steps::done_comes(const State& s, std::size_t place) {
  const Append& append = s.appends[place];
  if (!append.is_alive()) return;
  State next = s;
  next.appends[place].phase = Phase::kDead;
  emit({"the client dies of append", static_cast<int>(place + 1)}, next, Need::kAccident);
  bool refused = works(s, append.sequencer) && !is_open(s, append);
  for (std::size_t node = 0; node < s.node_count; ++node)
    refused = refused || (s.nodes[node].up != 0 && s.nodes[node].view > append.view);
  if (refused) emit({"refused: append", static_cast<int>(place + 1)}, next);
  const bool row = append.row != 0 || is_absent(s, append.view, member_of(append.record));
  const bool copy = append.copy != 0 || is_absent(s, append.view, kP);
  const bool done = (row || is(Weak::kDoneWithoutRow)) && (copy || is(Weak::kDoneWithoutCopy));
  if (append.phase != Phase::kGranted || !done || !works(s, append.sequencer) || !is_open(s, append)) return;
  next.appends[place].phase = Phase::kDone;
  emit({"done: append", static_cast<int>(place + 1)}, next);
}

void Steps::note_comes(const State& s, std::size_t place) {
  const Append& append = s.appends[place];
  const bool older = append.generation < s.nodes[s.deputy].generation && !is(Weak::kOldNoteAccepted);
  if (append.noted == 0 || !takes(s, s.deputy, append) || older) return;
  State next = s;
  Node& node = next.nodes[s.deputy];
  Byte& length = next.sequencers[1].length;
  length = std::max(length, byte(append.record + 1u));
  node.generation = std::max(node.generation, append.generation);
  node.known = std::max(node.known, append.base);
  next.appends[place].answered = 1;
  emit({"note of append", static_cast<int>(place + 1), s.deputy}, next);
}

void Steps::fold(const State& s) {
  const Node& node = s.nodes[kP];
  if (node.up == 0 || node.open == 0 || is_folded(s, 0) || s.frames[0] == 0 || s.frames[1] == 0) return;
  if (node.known < kMembers && !is(Weak::kFoldUnpublished)) return;
  State next = s;
  next.page = {s.frames[0], s.frames[1]};
  next.frames[0] = next.frames[1] = 0;
  emit({"fold", -1, kP}, next);
}

}  // namespace pif::parity_model::append
