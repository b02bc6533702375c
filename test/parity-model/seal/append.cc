// Appending a range of one record or of a whole page: rows to their LFSs, and copies to P, or `Cover` for a whole page.
#include <algorithm>

#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {

void Steps::append_steps(const State& s) {
  for (std::size_t sequencer = 0; sequencer < kSequencers; ++sequencer) reserve(s, sequencer);
  if (s.append.phase != Phase::kGranted) return end_append(s);
  for (std::size_t record = s.append.first; record < s.append.end(); ++record) {
    send_row(s, record);
    send_copy(s, record);
  }
  cover(s);
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

// The generation is newer than all that the LFS has at or above the base: that is dropped.
void Steps::send_row(const State& s, std::size_t record) {
  const std::size_t member = member_of(record);
  if (left_out(s, s.append.view, member) || !takes(s, member, s.append.view) || has(s.append.rows, record)) return;
  State next = s;
  Row& row = next.rows[record];
  Node& node = next.nodes[member];
  node.known = std::max(node.known, s.append.first);
  const bool kept = is(Weak::kOldRowsKept) && row.durable != 0;
  if (!kept) {
    for (std::size_t other = member; other < kRecords; other += kMembers)
      if (other >= s.append.first && s.rows[other].written != s.append.content) next.rows[other] = {};
    row.written = s.append.content;
  }
  const bool durable = kept || row.durable == s.append.content;
  if (durable || is(Weak::kRowAnsweredUnsynced)) next.append.rows = with(s.append.rows, record);
  emit({"row", static_cast<int>(record), static_cast<int>(member)}, next);
}

bool Steps::needs_copy(const State& s, std::size_t record) const {
  if (left_out(s, s.append.view, kP)) return false;
  return s.append.count == 1 || left_out(s, s.append.view, member_of(record));
}

bool Steps::needs_cover(const State& s) const {
  return s.append.count == kMembers && !left_out(s, s.append.view, kP);
}

void Steps::send_copy(const State& s, std::size_t record) {
  if (!needs_copy(s, record) || !takes(s, kP, s.append.view) || has(s.append.copies, record)) return;
  State next = s;
  Row& frame = next.frames[record];
  next.nodes[kP].known = std::max(s.nodes[kP].known, s.append.first);
  const bool kept = is(Weak::kOldFramesKept) && frame.durable != 0;
  if (!kept) {
    for (std::size_t other = s.append.first; other < kRecords; ++other)
      if (s.frames[other].written != s.append.content) next.frames[other] = {};
    frame.written = s.append.content;
  }
  if (!is(Weak::kOldPageKept)) next.covered = below(s.covered, page_of(s.append.first));
  const bool durable = kept || frame.durable == s.append.content;
  if (durable || is(Weak::kCopyAnsweredUnsynced)) next.append.copies = with(s.append.copies, record);
  emit({"copy", static_cast<int>(record), kP}, next);
}

// P gathers the rows of a whole page that are durable; an absent member's from its copies.
void Steps::cover(const State& s) {
  if (!needs_cover(s) || !takes(s, kP, s.append.view) || s.append.covered != Gathered::kNo) return;
  State next = s;
  Page page;
  for (std::size_t record = s.append.first; record < s.append.end(); ++record) {
    const std::size_t member = member_of(record);
    if (left_out(s, s.append.view, member)) {
      if (!has(s.append.copies, record) || is(Weak::kGatherWaitsForAbsent)) return;
      page.of[member] = s.frames[record].written;
      continue;
    }
    if (!takes(s, member, s.append.view)) return;
    if (!has(s.append.rows, record) && !is(Weak::kCoverBeforeRows)) return;
    page.of[member] = s.rows[record].written;
  }
  const std::size_t place = page_of(s.append.first);
  next.pages[place].written = page;
  next.covered = below(s.covered, place);
  next.nodes[kP].known = std::max(s.nodes[kP].known, s.append.first);
  next.append.covered = is(Weak::kCoverAnsweredUnsynced) ? Gathered::kSynced : Gathered::kWritten;
  emit({"cover page", static_cast<int>(place), kP}, next);
}

bool Steps::is_complete(const State& s) const {
  for (std::size_t record = s.append.first; record < s.append.end(); ++record) {
    const bool row = has(s.append.rows, record) || is(Weak::kDoneWithoutRow);
    if (!row && !left_out(s, s.append.view, member_of(record))) return false;
    if (needs_copy(s, record) && !has(s.append.copies, record) && !is(Weak::kDoneWithoutCopy)) return false;
  }
  return !needs_cover(s) || s.append.covered == Gathered::kSynced || is(Weak::kDoneWithoutCover);
}

// The appender dies, or hears of a newer view. The sequencer cancels the range, unless its note was sent.
void Steps::end_append(const State& s) {
  if (s.append.phase == Phase::kNone) return;
  State next = s;
  next.append = {};
  const bool noted = s.append.phase == Phase::kNoted;
  if (!noted || is(Weak::kCancelledAfterNote)) emit({"the appender dies"}, next, Need::kAccident);
  bool refused = false;
  for (const Node& node : s.nodes) refused = refused || (node.up != 0 && node.view > s.append.view);
  if (!noted && refused) emit({"the append is refused: its view is old"}, next);
}

}  // namespace pif::parity_model::seal
