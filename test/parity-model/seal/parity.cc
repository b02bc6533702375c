// Syncing, and P's folding: whole pages that are published are computed from frames.
#include <algorithm>

#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {

void Steps::sync_steps(const State& s) {
  for (std::size_t member = 0; member < kMembers; ++member) sync_member(s, member);
  sync_parity(s);
}

void Steps::sync_member(const State& s, std::size_t member) {
  if (s.committed == 0 || s.nodes[member].up == 0) return;  // a create's rows are synced when they are sealed
  State next = s;
  bool any = false;
  for (std::size_t record = member; record < kRecords; record += kMembers) {
    Row& row = next.rows[record];
    if (!row.dirty()) continue;
    any = true;
    row.durable = row.written;
    for (const auto which : {&State::append, &State::late})
      if ((s.*which).holds(record) && row.durable == (s.*which).content)
        (next.*which).rows = with((next.*which).rows, record);
  }
  if (any) emit({"sync", -1, static_cast<int>(member)}, next);
}

// What was gathered counts from the transaction that follows its sync: at seal as published, by `Cover` as covered.
void Steps::sync_parity(const State& s) {
  if (s.nodes[kP].up == 0) return;
  State next = s;
  bool any = s.create.gathered == Gathered::kWritten;
  for (std::size_t record = 0; record < kRecords; ++record) {
    Row& frame = next.frames[record];
    if (!frame.dirty()) continue;
    any = true;
    frame.durable = frame.written;
    for (const auto which : {&State::append, &State::late})
      if ((s.*which).holds(record) && frame.durable == (s.*which).content)
        (next.*which).copies = with((next.*which).copies, record);
  }
  for (StoredPage& page : next.pages) {
    any = any || page.dirty();
    page.durable = page.written;
  }
  for (const auto which : {&State::append, &State::late}) {
    if ((s.*which).covered != Gathered::kWritten) continue;
    any = true;
    (next.*which).covered = Gathered::kSynced;
    if ((s.*which).content >= s.nodes[kP].newest || is(Weak::kOldCoverAccepted))
      next.covered = with(next.covered, page_of((s.*which).first));
  }
  if (!any) return;
  if (s.create.gathered == Gathered::kWritten) {
    next.create.gathered = Gathered::kSynced;
    next.page_count = byte(bounds_.sealed / kMembers);
    std::fill_n(next.frames.begin(), next.page_count * kMembers, Row{});
  }
  emit({"sync", -1, kP}, next);
}

// Its page is synced, then one transaction counts it and frees the frames. A page of `Cover` is only counted.
void Steps::fold_steps(const State& s) {
  const std::size_t place = s.page_count, first = place * kMembers;
  if (s.nodes[kP].up == 0 || s.nodes[kP].open == 0 || place == kPages) return;
  const std::size_t published = std::max(s.nodes[kP].known, is(Weak::kFoldNoted) ? s.sequencers[1].length : Byte{0});
  if (published < first + kMembers && !is(Weak::kFoldUnpublished) && !is(Weak::kFoldPartial)) return;
  const Page page = {{s.frames[first].durable, s.frames[first + 1].durable}};
  const bool is_covered = has(s.covered, place);
  const bool can_fold = page.whole() || (is(Weak::kFoldPartial) && page.of[0] != 0 && published > first);
  if (!is_covered && !can_fold) return;
  State next = s;
  const StoredPage& stored = s.pages[place];
  const bool synced = stored.durable == page || (is(Weak::kCountedBeforeSync) && stored.written == page);
  if (is_covered || synced) {
    next.page_count = byte(place + 1);
    next.covered = without(s.covered, place);
    next.frames[first] = next.frames[first + 1] = {};
    return emit({"count page", static_cast<int>(place), kP}, next);
  }
  next.pages[place].written = page;
  if (is(Weak::kFramesFreedFirst)) next.frames[first] = next.frames[first + 1] = {};
  if (stored.written != page) emit({"fold page", static_cast<int>(place), kP}, next);
}

}  // namespace pif::parity_model::seal
