// Creating: rows are written and sealed, P gathers them, the server commits. Nobody sees any of it before.
#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {

void Steps::create_steps(const State& s) {
  for (std::size_t record = 0; record < bounds_.sealed; ++record) write_created_row(s, record);
  for (std::size_t member = 0; member < kMembers; ++member) seal_member(s, member);
  gather_created(s);
  commit(s);
  start_over(s);
}

// The row of an absent LFS goes to P as a frame.
void Steps::write_created_row(const State& s, std::size_t record) {
  const std::size_t member = member_of(record);
  const bool absent = is_absent(s, s.create.view, member);
  if (!takes(s, absent ? kP : member, s.create.view)) return;
  if (absent && (s.create.gathered != Gathered::kNo || is(Weak::kGatherWaitsForAbsent))) return;
  State next = s;
  Row& row = absent ? next.frames[record] : next.rows[record];
  if (row.written == s.create.content) return;
  row.written = s.create.content;
  emit({absent ? "an absent LFS's row goes to P:" : "write row", static_cast<int>(record)}, next);
}

void Steps::seal_member(const State& s, std::size_t member) {
  const bool has_rows = member < bounds_.sealed;
  if (!has_rows || has(s.create.sealed, member) || is_absent(s, s.create.view, member)) return;
  if (!takes(s, member, s.create.view)) return;
  State next = s;
  for (std::size_t record = member; record < bounds_.sealed; record += kMembers) {
    if (s.rows[record].written != s.create.content) return;
    next.rows[record].durable = s.create.content;
  }
  next.create.sealed = with(s.create.sealed, member);
  emit({"seal", -1, static_cast<int>(member)}, next);
}

// P takes sealed rows of members that are in its view, and its own frames for an absent one.
bool Steps::can_gather(const State& s) const {
  const Byte view = s.create.view;
  if (is_absent(s, view, kP) || !takes(s, kP, view) || s.create.gathered != Gathered::kNo) return false;
  if (bounds_.sealed == 0) return false;
  for (std::size_t record = 0; record < bounds_.sealed; ++record) {
    const std::size_t member = member_of(record);
    if (is_absent(s, view, member)) {
      if (s.frames[record].written != s.create.content) return false;
      continue;
    }
    if (!takes(s, member, view)) return false;
    if (!has(s.create.sealed, member) && !is(Weak::kGatherUnsealed)) return false;
  }
  return true;
}

void Steps::gather_created(const State& s) {
  if (!can_gather(s)) return;
  State next = s;
  for (std::size_t record = 0; record < bounds_.sealed; ++record) {
    const std::size_t member = member_of(record);
    const bool absent = is_absent(s, s.create.view, member);
    const Byte content = absent ? s.frames[record].written : s.rows[record].written;
    if (page_of(record) < bounds_.sealed / kMembers)
      next.pages[page_of(record)].written.of[member] = content;
    else
      next.frames[record].written = content;
  }
  next.create.gathered = Gathered::kWritten;
  emit({"gather", -1, kP}, next);
}

void Steps::commit(const State& s) {
  const Byte view = s.create.view;
  if (s.views.newest != view) return;
  for (std::size_t member = 0; member < kMembers && member < bounds_.sealed; ++member)
    if (!has(s.create.sealed, member) && !is_absent(s, view, member)) return;
  const bool gathered = s.create.gathered == Gathered::kSynced || is(Weak::kCommitBeforeGather) ||
                        (is(Weak::kGatherAnsweredUnsynced) && s.create.gathered == Gathered::kWritten);
  if (bounds_.sealed != 0 && !gathered && !is_absent(s, view, kP)) return;
  State next = s;
  next.committed = 1;
  next.directory_length = next.seen = bounds_.sealed;
  for (std::size_t record = 0; record < bounds_.sealed; ++record) next.right[record] = s.create.content;
  for (std::size_t node = 0; node < kNodes; ++node) {
    const bool holds = node == kP ? s.create.gathered == Gathered::kSynced : has(s.create.sealed, node);
    if (holds) next.nodes[node].known = bounds_.sealed;
  }
  next.create = {};
  emit({"commit"}, next);
}

// The next attempt is another file.
void Steps::start_over(const State& s) {
  if (s.views.newest == s.create.view) return;
  State next = s;
  next.create.view = s.views.newest;
  if (is(Weak::kCreateAcrossViews)) return emit({"the create goes on in the new view"}, next);
  if (is(Weak::kCreateNeverStartsOver)) return;
  next.rows = next.frames = {};
  next.pages = {};
  next.page_count = next.covered = 0;
  next.create = {};
  next.create.view = s.views.newest;
  next.create.content = ++next.contents;
  emit({"the create starts over"}, next);
}

}  // namespace pif::parity_model::seal
