// Appending a range of one record or of a whole page: rows to their LFSs, and copies to P, or `Cover` for a whole page.
#include <algorithm>

#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {

void Steps::append_steps(const State& s) {
  for (std::size_t sequencer = 0; sequencer < kSequencers; ++sequencer) reserve(s, sequencer);
  send_rows(s, &State::append);
  send_rows(s, &State::late);
  end_append(s);
}

void Steps::reserve(const State& s, std::size_t sequencer) {
  const Sequencer& q = s.sequencers[sequencer];
  if (s.append.phase != Phase::kNone || s.appends == 0 || q.active == 0) return;
  for (Byte count = 1; count <= kMembers; ++count) {
    const bool whole_page = count == kMembers && q.shown % kMembers == 0;
    if (q.shown + count > kRecords || (count > 1 && !whole_page)) continue;
    State next = s;
    --next.appends;
    next.append.phase = Phase::kGranted;
    next.append.sequencer = byte(sequencer);
    next.append.view = s.nodes[node_of(sequencer)].view;
    next.append.first = q.shown;
    next.append.count = count;
    next.append.content = ++next.contents;
    emit({count == 1 ? "grant record" : "grant the page of record", q.shown, static_cast<int>(node_of(sequencer))},
         next);
  }
}

// What comes late is refused by who knows a newer view or a newer generation.
bool Steps::takes_append(const State& s, std::size_t node, const Append& append) const {
  if (left_out(s, append.view, node) || !takes(s, node, append.view)) return false;
  return append.content >= s.nodes[node].newest || is(Weak::kOlderGenerationAccepted);
}

void Steps::send_rows(const State& s, Append State::*which) {
  const Append& append = s.*which;
  if (append.phase == Phase::kNone) return;
  for (std::size_t record = append.first; record < append.end(); ++record) {
    send_row(s, which, record);
    send_copy(s, which, record);
  }
  cover(s, which);
}

// A newer generation drops all that the LFS has from its base on.
void Steps::send_row(const State& s, Append State::*which, std::size_t record) {
  const Append& append = s.*which;
  const std::size_t member = member_of(record);
  if (!takes_append(s, member, append) || has(append.rows, record)) return;
  State next = s;
  Row& row = next.rows[record];
  Node& node = next.nodes[member];
  node.known = std::max(node.known, append.first);
  node.newest = std::max(node.newest, append.content);
  const bool kept = is(Weak::kOldRowsKept) && row.durable != 0;
  if (!kept) {
    for (std::size_t other = member; other < kRecords; other += kMembers)
      if (other >= append.first && s.rows[other].written != append.content) next.rows[other] = {};
    row.written = append.content;
  }
  const bool durable = kept || row.durable == append.content;
  if (durable || is(Weak::kRowAnsweredUnsynced)) (next.*which).rows = with(append.rows, record);
  emit({which == &State::late ? "late row" : "row", static_cast<int>(record), static_cast<int>(member)}, next);
}

bool Steps::needs_copy(const State& s, const Append& append, std::size_t record) const {
  if (left_out(s, append.view, kP)) return false;
  return append.count == 1 || left_out(s, append.view, member_of(record));
}

bool Steps::needs_cover(const State& s, const Append& append) const {
  return append.count == kMembers && !left_out(s, append.view, kP);
}

void Steps::send_copy(const State& s, Append State::*which, std::size_t record) {
  const Append& append = s.*which;
  if (!needs_copy(s, append, record) || !takes_append(s, kP, append) || has(append.copies, record)) return;
  State next = s;
  Row& frame = next.frames[record];
  Node& node = next.nodes[kP];
  node.known = std::max(node.known, append.first);
  node.newest = std::max(node.newest, append.content);
  const bool kept = is(Weak::kOldFramesKept) && frame.durable != 0;
  if (!kept) {
    for (std::size_t other = append.first; other < kRecords; ++other)
      if (s.frames[other].written != append.content) next.frames[other] = {};
    frame.written = append.content;
  }
  if (!is(Weak::kOldPageKept)) next.covered = below(s.covered, page_of(append.first));
  const bool durable = kept || frame.durable == append.content;
  if (durable || is(Weak::kCopyAnsweredUnsynced)) (next.*which).copies = with(append.copies, record);
  emit({which == &State::late ? "late copy" : "copy", static_cast<int>(record), kP}, next);
}

// P gathers the rows of a whole page that are durable; an absent member's from its copies.
void Steps::cover(const State& s, Append State::*which) {
  const Append& append = s.*which;
  const bool taken = is(Weak::kOldCoverAccepted) ? takes(s, kP, append.view) : takes_append(s, kP, append);
  if (!needs_cover(s, append) || !taken || append.covered != Gathered::kNo) return;
  State next = s;
  Page page;
  for (std::size_t record = append.first; record < append.end(); ++record) {
    const std::size_t member = member_of(record);
    if (left_out(s, append.view, member)) {
      if (!has(append.copies, record) || is(Weak::kGatherWaitsForAbsent)) return;
      page.of[member] = s.frames[record].written;
      continue;
    }
    if (!takes(s, member, append.view)) return;
    if (!has(append.rows, record) && !is(Weak::kCoverBeforeRows)) return;
    page.of[member] = s.rows[record].written;
  }
  const std::size_t place = page_of(append.first);
  next.pages[place].written = page;
  next.covered = below(s.covered, place);
  next.nodes[kP].known = std::max(s.nodes[kP].known, append.first);
  next.nodes[kP].newest = std::max(s.nodes[kP].newest, append.content);
  (next.*which).covered = is(Weak::kCoverAnsweredUnsynced) ? Gathered::kSynced : Gathered::kWritten;
  emit({which == &State::late ? "late Cover of page" : "Cover of page", static_cast<int>(place), kP}, next);
}

bool Steps::is_complete(const State& s) const {
  const Append& append = s.append;
  for (std::size_t record = append.first; record < append.end(); ++record) {
    const bool row = has(append.rows, record) || is(Weak::kDoneWithoutRow);
    if (!row && (is(Weak::kAbsentAwaited) || !left_out(s, append.view, member_of(record)))) return false;
    if (needs_copy(s, append, record) && !has(append.copies, record) && !is(Weak::kDoneWithoutCopy)) return false;
  }
  return !needs_cover(s, append) || append.covered == Gathered::kSynced || is(Weak::kDoneWithoutCover);
}

void Steps::leave(State& s) const {
  s.late = s.append;
  s.append = {};
}

bool Steps::may_still_come(const State& s) const {
  if (s.late.phase == Phase::kNone) return false;
  if (is(Weak::kOlderGenerationAccepted) || is(Weak::kOldViewAccepted)) return true;
  for (const Node& node : s.nodes)
    if (node.view <= s.late.view && node.newest <= s.late.content) return true;
  return false;
}

// The appender dies, or hears of a newer view. The sequencer cancels the range, unless its note was sent.
void Steps::end_append(const State& s) {
  if (s.append.phase == Phase::kNone) return;
  State next = s;
  leave(next);
  const bool noted = s.append.phase == Phase::kNoted;
  if (!noted || is(Weak::kCancelledAfterNote)) emit({"the appender dies"}, next, Need::kAccident);
  bool refused = false;
  for (const Node& node : s.nodes) refused = refused || (node.up != 0 && node.view > s.append.view);
  if (!noted && refused) emit({"the append is refused: its view is old"}, next);
}

}  // namespace pif::parity_model::seal
