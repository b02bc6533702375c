// The sequencer of the file, LFS 0, and its deputy: settling, publishing, taking over.
#include <algorithm>

#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {

void Steps::sequencer_steps(const State& s) {
  publish_steps(s);
  tell_published(s);
  settle(s);
  take_over(s);
}

void Steps::publish(State& s, std::size_t length) const {
  for (std::size_t record = s.seen; record < length; ++record) {
    const std::size_t member = member_of(record);
    if (s.append.phase == Phase::kNoted && s.append.holds(record))
      s.right[record] = s.append.content;
    else
      s.right[record] = is_gone(s, member) ? from_parity(s, record, &Row::durable) : s.rows[record].durable;
  }
  s.seen = std::max(s.seen, byte(length));
}

void Steps::stop(State& s, std::size_t sequencer) const {
  s.sequencers[sequencer].active = s.sequencers[sequencer].shown = 0;
  if (s.append.phase != Phase::kNone && s.append.sequencer == sequencer) leave(s);
}

// A complete range: LFS 0 sends the note to its deputy and writes its own length, at the same time. What both have
// durably is shown. The deputy alone needs no note, and LFS 0 none while its deputy is absent.
void Steps::publish_steps(const State& s) {
  const Append& append = s.append;
  if (append.phase == Phase::kNone) return;
  const std::size_t q = append.sequencer, node = node_of(q);
  const bool works = s.nodes[node].up != 0 && s.sequencers[q].active != 0;
  const bool with_deputy = q == 0 && !left_out(s, append.view, kP);
  const Byte end = byte(append.end());
  if (append.phase == Phase::kGranted) {
    if (!works || !is_complete(s) || s.nodes[node].view != append.view) return;
    State next = s;
    next.append.phase = Phase::kNoted;
    return emit({"done, the note is sent"}, next);
  }
  if (with_deputy && s.sequencers[1].length < end && takes(s, kP, append.view)) {
    State next = s;
    next.sequencers[1].length = end;
    next.nodes[kP].known = std::max(s.nodes[kP].known, append.first);
    emit({"the length is durable", end, kP}, next);
  }
  if (works && s.sequencers[q].length < end) {
    State next = s;
    next.sequencers[q].length = end;
    emit({"the length is durable", end, static_cast<int>(node)}, next);
  }
  const bool noted = !with_deputy || s.sequencers[1].length >= end || is(Weak::kShownWithoutDeputy);
  if (works && s.sequencers[q].length >= end && noted) {
    State next = s;
    publish(next, end);
    next.sequencers[q].shown = end;
    if (q == 1) next.nodes[kP].known = end;
    leave(next);
    emit({"published, length", end}, next);
  }
}

// A length that P has noted may yet be less than published: if P is lost now, LFS 0 goes on without it. So P is told.
void Steps::tell_published(const State& s) {
  const Sequencer& own = s.sequencers[0];
  if (own.active == 0 || s.nodes[kP].known >= own.shown || is(Weak::kPublishedNotTold)) return;
  if (left_out(s, s.nodes[kD0].view, kP) || !takes(s, kP, s.nodes[kD0].view)) return;
  State next = s;
  next.nodes[kP].known = own.shown;
  emit({"P hears of the published length", own.shown}, next);
}

// LFS 0 at its start, in each new view, and when it has returned.
void Steps::settle(const State& s) {
  const Node& node = s.nodes[kD0];
  if (s.sequencers[0].active != 0 || node.up == 0 || node.open == 0) return;
  const bool with_deputy = !left_out(s, node.view, kP);
  const bool asks = with_deputy && !is(Weak::kSettlesAlone);
  if (asks && !takes(s, kP, node.view)) return;
  State next = s;
  Sequencer &own = next.sequencers[0], &deputy = next.sequencers[1];
  Byte length = std::max(own.length, s.directory_length);
  if (asks) length = std::max(length, deputy.length);
  own.length = own.shown = length;
  own.active = 1;
  if (asks) {
    deputy.length = length;
    next.nodes[kP].known = std::max(s.nodes[kP].known, length);
  }
  publish(next, length);
  emit({"settle at length", length, kD0}, next);
}

// The deputy is sequencer while LFS 0 is absent. LFS 0's lease is over: here, that is so once the view says lost.
void Steps::take_over(const State& s) {
  const Node& node = s.nodes[kP];
  if (s.sequencers[1].active != 0 || node.up == 0 || !is_absent(s, node.view, kD0) || is(Weak::kNoTakeover)) return;
  State next = s;
  Sequencer& own = next.sequencers[1];
  own.length = own.shown = std::max(own.length, s.directory_length);
  own.active = 1;
  next.nodes[kP].known = own.length;
  publish(next, own.length);
  emit({"the deputy takes over at length", own.length, kP}, next);
}

}  // namespace pif::parity_model::seal
