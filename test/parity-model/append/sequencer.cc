// The two sequencers: LFS 0, and its deputy.
#include <algorithm>

#include "parity-model/append/steps.h"

namespace pif::parity_model::append {

bool Steps::works(const State& s, std::size_t sequencer) const {
  return s.nodes[node_of(s, sequencer)].up != 0 && s.sequencers[sequencer].active != 0;
}

// Whether its sequencer still knows the range: a newer generation has cancelled all older ones.
bool Steps::is_open(const State& s, const Append& append) const {
  const Node& node = s.nodes[node_of(s, append.sequencer)];
  return append.phase != Phase::kNone && append.generation == node.generation && append.view == node.view &&
         s.sequencers[append.sequencer].active != 0 && append.record >= s.sequencers[append.sequencer].shown;
}

std::size_t Steps::open_count(const State& s, std::size_t sequencer) const {
  std::size_t count = 0;
  for (const Append& append : s.appends)
    if (append.sequencer == sequencer && is_open(s, append)) ++count;
  return count;
}

// Generations of a view are above all those of older views: whatever an absent sequencer has granted is older.
Byte Steps::raised(const State& s, std::size_t node, Byte generation) const {
  return std::max(byte(s.nodes[node].view * kGenerationsPerView), byte(generation + 1u));
}

void Steps::raise(State& s, std::size_t node, Byte generation, std::size_t length) const {
  s.nodes[node].generation = generation;
  if (!is(Weak::kRaiseKeepsCopies)) drop(s, node, length);
}

void Steps::sequencer_steps(const State& s, std::size_t sequencer) {
  if (!works(s, sequencer)) return;
  reserve(s, sequencer);
  cancel(s, sequencer);
  tell_published(s, sequencer);
}

void Steps::reserve(const State& s, std::size_t sequencer) {
  const std::size_t node = node_of(s, sequencer), open = open_count(s, sequencer);
  const std::size_t record = s.sequencers[sequencer].shown + open;
  if (s.used == bounds_.appends || open == kGrantsMax || record == kRecords) return;
  State next = s;
  Append& append = next.appends[next.used++];
  append.phase = Phase::kGranted;
  append.sequencer = byte(sequencer);
  append.view = s.nodes[node].view;
  append.generation = s.nodes[node].generation;
  append.record = byte(record);
  append.base = s.sequencers[sequencer].shown;
  emit({"grant append", next.used, static_cast<int>(node)}, next);
}

// A grant lapses, and with it all that are not published. Of a living client's that is an accident.
void Steps::cancel(const State& s, std::size_t sequencer) {
  bool any = false, noted = false, alive = false;
  for (const Append& append : s.appends) {
    if (append.sequencer != sequencer || !is_open(s, append)) continue;
    any = any || append.phase == Phase::kGranted || append.phase == Phase::kDead;
    noted = noted || append.noted != 0;
    alive = alive || append.phase == Phase::kGranted;
  }
  if (!any || (noted && !is(Weak::kCancelledAfterNote)) || is(Weak::kDeadNotCancelled)) return;
  State next = s;
  const std::size_t node = node_of(s, sequencer);
  raise(next, node, byte(s.nodes[node].generation + 1u), s.sequencers[sequencer].shown);
  emit({"ranges lapse", -1, static_cast<int>(node)}, next, alive ? Need::kAccident : Need::kWillHappen);
}

bool Steps::lower_are_noted(const State& s, const Append& append) const {
  return std::all_of(s.appends.begin(), s.appends.end(), [&](const Append& other) {
    const bool lower = other.sequencer == append.sequencer && is_open(s, other) && other.record < append.record;
    return !lower || other.noted != 0 || is(Weak::kPublishedBeforeLower);
  });
}

// Notes go to the deputy in the order of ranges. LFS 0 writes its own length at the same time.
void Steps::send_note(const State& s, std::size_t place) {
  const Append& append = s.appends[place];
  if (append.sequencer != 0 || !works(s, 0) || !is_open(s, append) || is_absent(s, append.view, s.deputy)) return;
  State next = s;
  if (append.noted == 0) {
    if (append.phase != Phase::kDone || !lower_are_noted(s, append)) return;
    next.appends[place].noted = 1;
    return emit({"note is sent of append", static_cast<int>(place + 1)}, next);
  }
  Byte& length = next.sequencers[0].length;
  length = std::max(length, byte(append.record + 1u));
  if (length != s.sequencers[0].length) emit({"the length is durable", length, kD0}, next);
}

void Steps::publish_range(const State& s, std::size_t place) {
  const Append& append = s.appends[place];
  if (!works(s, append.sequencer) || !is_open(s, append)) return;
  const Sequencer& own = s.sequencers[append.sequencer];
  if (append.record != own.shown && !is(Weak::kPublishedBeforeLower)) return;
  const bool alone = append.sequencer == 1 || is_absent(s, append.view, s.deputy);
  const bool noted =
      append.noted != 0 && own.length > append.record && (append.answered != 0 || is(Weak::kShownWithoutDeputy));
  if (alone ? append.phase != Phase::kDone : !noted) return;
  State next = s;
  Sequencer& changed = next.sequencers[append.sequencer];
  changed.shown = byte(append.record + 1u);
  changed.length = std::max(changed.length, changed.shown);
  if (append.sequencer == 1) next.nodes[s.deputy].known = changed.shown;
  next.seen = std::max(s.seen, changed.shown);
  next.right[append.record] = byte(place + 1);
  if (append.phase == Phase::kDone) next.appends[place].phase = Phase::kAcknowledged;
  emit({"published: append", static_cast<int>(place + 1), static_cast<int>(node_of(s, append.sequencer))}, next);
}

// What is published by settling is what is there.
void Steps::publish(State& s, std::size_t length) const {
  for (std::size_t record = s.seen; record < length; ++record)
    s.right[record] = is_gone(s, member_of(record)) ? from_parity(s, record) : s.rows[record];
  s.seen = std::max(s.seen, byte(length));
}

// LFS 0 at its start, and in each new view: with its deputy, unless that is absent.
void Steps::settle(const State& s) {
  const Node& node = s.nodes[kD0];
  if (s.sequencers[0].active != 0 || node.up == 0 || node.open == 0) return;
  const bool alone = is_absent(s, node.view, s.deputy) && !is(Weak::kSettleWaitsForAbsent);
  const bool asks = !alone && !is(Weak::kSettlesAlone);
  if (asks && (s.nodes[s.deputy].up == 0 || s.nodes[s.deputy].view != node.view)) return;
  State next = s;
  Sequencer &own = next.sequencers[0], &deputy = next.sequencers[1];
  Byte generation = node.generation;
  if (asks) {
    own.length = deputy.length = std::max(own.length, deputy.length);
    generation = std::max(generation, s.nodes[s.deputy].generation);
    next.nodes[s.deputy].known = std::max(s.nodes[s.deputy].known, own.length);
  }
  own.active = 1;
  own.shown = own.length;
  generation = raised(s, kD0, generation);
  raise(next, kD0, generation, own.length);
  if (asks && !is(Weak::kSettleKeepsGeneration)) raise(next, s.deputy, generation, own.length);
  publish(next, own.length);
  emit({"settle at length", own.length, kD0}, next);
}

// The deputy acts for LFS 0 when that has no lease any more.
void Steps::take_over(const State& s) {
  const Node& node = s.nodes[s.deputy];
  if (s.sequencers[1].active != 0 || node.up == 0 || !is_absent(s, node.view, kD0)) return;
  if (s.lease != 0 && !is(Weak::kTakeoverUnderLease)) return;
  State next = s;
  Sequencer& own = next.sequencers[1];
  own.active = 1;
  own.shown = own.length;
  Byte generation = raised(s, s.deputy, node.generation);
  if (is(Weak::kTakeoverCountsOwn)) generation = byte(node.generation + 1u);
  if (is(Weak::kTakeoverKeepsGeneration)) generation = node.generation;
  raise(next, s.deputy, generation, own.length);
  next.nodes[s.deputy].known = std::max(node.known, own.length);
  publish(next, own.length);
  emit({"the deputy takes over at length", own.length, s.deputy}, next);
}

// A reader asks it while LFS 0 is silent. By the rule that tells nothing new: it knows no more than was told.
void Steps::deputy_tells(const State& s) {
  const Node& node = s.nodes[s.deputy];
  const Byte noted = s.sequencers[1].length;
  const bool is_asked = node.up != 0 && node.open != 0 && !is_absent(s, node.view, kD0) && !is_gone(s, s.deputy);
  if (!is(Weak::kDeputyTellsNoted) || !is_asked || noted <= s.seen) return;
  State next = s;
  publish(next, noted);
  emit({"the deputy tells length", noted, s.deputy}, next);
}

// A length that was noted may yet be less than published: if the deputy is lost now, LFS 0 goes on without it. So P is
// told.
void Steps::tell_published(const State& s, std::size_t sequencer) {
  const Sequencer& own = s.sequencers[sequencer];
  const Node &node = s.nodes[node_of(s, sequencer)], &parity = s.nodes[kP];
  if (parity.up == 0 || parity.view != node.view || is_absent(s, node.view, kP) || parity.known >= own.shown) return;
  State next = s;
  next.nodes[kP].known = own.shown;
  emit({"P hears of the published length", own.shown}, next);
}

}  // namespace pif::parity_model::append
