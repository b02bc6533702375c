// Crashes, views, the loss of a node, and its return.
#include <algorithm>

#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {
namespace {

// What of the unsynced writes of `node` the crash has kept: those in `kept`, counted in one order. Returns how many
// there were.
std::size_t cut_power(State& s, std::size_t node, std::size_t kept) {
  std::size_t count = 0;
  const auto cut = [&](auto& stored) {
    if (!stored.dirty()) return;
    stored.set((kept >> count++ & 1u) != 0 ? stored.written : stored.durable);
  };
  for (std::size_t record = 0; record < kRecords; ++record) {
    if (node == kP) cut(s.frames[record]);
    if (node == member_of(record)) cut(s.rows[record]);
  }
  if (node == kP)
    for (StoredPage& page : s.pages) cut(page);
  return count;
}

// A gather that P has not answered, it does not answer any more.
void drop_gathered(State& s) {
  if (s.create.gathered == Gathered::kWritten) s.create.gathered = Gathered::kNo;
  for (Append* append : {&s.append, &s.late})
    if (append->covered == Gathered::kWritten) append->covered = Gathered::kNo;
}

// The root that comes back is a new one, or an old one: it has the first `known` records, and no more. It has not heard
// of any view since, so it is told the newest.
void replace_root(State& s, std::size_t node, Byte known) {
  s.nodes[node] = {.up = 0, .view = s.views.newest, .open = 0, .known = known};
  const auto old = [&](std::size_t record) { return record < known ? s.right[record] : Byte{0}; };
  for (std::size_t record = node; record < kRecords && node != kP; record += kMembers) s.rows[record].set(old(record));
  if (node == kD0) s.sequencers[0].length = 0;
  if (node != kP) return;
  s.pages = {};
  s.page_count = s.covered = s.sequencers[1].length = 0;
  for (std::size_t record = 0; record < kRecords; ++record) s.frames[record].set(old(record));
  drop_gathered(s);
}

}  // namespace

void Steps::crash_steps(const State& s) {
  for (std::size_t node = 0; node < kNodes; ++node) {
    if (s.nodes[node].up == 0) {
      State next = s;
      next.nodes[node].up = 1;
      // Whether a lost node ever comes back nobody knows.
      const bool lost = s.views.last().is_absent(node);
      emit({"restart", -1, static_cast<int>(node)}, next, lost ? Need::kAccident : Need::kWillHappen);
    } else if (s.crashes > 0) {
      crash(s, node);
    }
  }
}

void Steps::crash(const State& s, std::size_t node) {
  std::size_t dirty = 0;
  for (std::size_t kept = 0; kept < std::size_t{1} << dirty; ++kept) {
    State next = s;
    --next.crashes;
    next.nodes[node].up = next.nodes[node].fetched = 0;
    dirty = cut_power(next, node, kept);
    if (node == kD0) stop(next, 0);
    if (node == kP) {
      stop(next, 1);
      drop_gathered(next);
      if (is(Weak::kCoverForgotten)) next.covered = 0;
    }
    emit({"crash", -1, static_cast<int>(node)}, next, Need::kAccident);
  }
}

void Steps::view_steps(const State& s) {
  for (std::size_t node = 0; node < kNodes; ++node)
    if (s.nodes[node].up != 0 && s.nodes[node].view < s.views.newest) adopt(s, node);
  if (s.losses > 0 && !s.views.full()) declare_lost(s);
}

// What is under way in older views ends here: the sequencer settles again.
void Steps::adopt(const State& s, std::size_t node) {
  State next = s;
  const Byte view = ++next.nodes[node].view;
  next.nodes[node].fetched = 0;
  if (node == kD0 && !is(Weak::kSettlesAtStartsOnly)) stop(next, 0);
  const bool goes_on = is(Weak::kDeputyGoesOn) && s.views.at(view).is_returning(kD0);
  if (node == kP && !goes_on) stop(next, 1);
  if (is_absent(s, view, node)) learn_lost(next, node);
  emit({"adopt view", view, static_cast<int>(node)}, next);
}

// Who hears that it was lost closes, and forgets all that it does not know to be published: the range may have been
// cancelled and granted again. Its length does not count either.
void Steps::learn_lost(State& s, std::size_t node) const {
  Node& own = s.nodes[node];
  own.open = 0;
  if (node == kD0) stop(s, 0);
  if (node != kD1 && !is(Weak::kReturnKeepsLength)) s.sequencers[node == kD0 ? 0 : 1].length = 0;
  if (node == kP) drop_gathered(s);
  if (is(Weak::kReturnKeepsUnpublished)) return;
  for (std::size_t record = own.known; record < kRecords; ++record) {
    if (node == kP) s.frames[record] = {};
    if (node == member_of(record)) s.rows[record] = {};
  }
  if (node == kP) s.covered = 0;
}

// A node is declared lost if no other is absent. It may go on as a zombie, or come back with another disk.
void Steps::declare_lost(const State& s) {
  const View& last = s.views.last();
  for (std::size_t node = 0; node < kNodes; ++node) {
    if (last.kind != Kind::kAllMembers && !last.is_returning(node)) continue;
    State next = s;
    --next.losses;
    next.views.add({Kind::kLost, byte(node)});
    emit({"declared lost:", -1, static_cast<int>(node)}, next, Need::kAccident);
    if (node != kD1) stop(next, node == kD0 ? 0 : 1);
    for (Byte known = 0; known == 0 || known < s.nodes[node].known; ++known) {
      replace_root(next, node, known);
      const char* text = known == 0 ? "declared lost, its disk is empty:" : "declared lost, its disk is an older one:";
      emit({text, -1, static_cast<int>(node)}, next, Need::kAccident);
    }
  }
}

void Steps::return_steps(const State& s) {
  const View& last = s.views.last();
  const std::size_t node = last.node;
  const Node& own = s.nodes[node];
  if (last.kind == Kind::kAllMembers || s.views.full() || own.up == 0 || own.view != s.views.newest) return;
  State next = s;
  if (last.kind == Kind::kLost) {
    rebuild_round(s, node);
    next.views.add({Kind::kReturning, byte(node)});
    emit({"cutover view: returning", -1, static_cast<int>(node)}, next, Need::kAccident);
  } else if (own.open != 0) {
    next.views.add({});
    emit({"view: all are members"}, next);
  } else {
    fetch_rest(s, node);
    open(s, node);
  }
}

bool Steps::have_adopted(const State& s, std::size_t but) const {
  for (std::size_t node = 0; node < kNodes; ++node) {
    const bool adopted = s.nodes[node].view == s.nodes[but].view || is(Weak::kOpensBeforeAdopted);
    if (node != but && (s.nodes[node].up == 0 || !adopted)) return false;
  }
  return true;
}

// Brings what `node` lacks of the first `length` records. Returns whether there was anything.
bool Steps::fetch(State& s, std::size_t node, std::size_t length) const {
  const State before = s;
  s.nodes[node].known = std::max(s.nodes[node].known, byte(length));
  if (node != kP) {
    for (std::size_t record = node; record < length; record += kMembers)
      if (s.rows[record].written == 0) s.rows[record].set(from_parity(before, record, &Row::written));
    return s.nodes[node].known != before.nodes[node].known;
  }
  for (std::size_t place = s.page_count; place < length / kMembers; ++place) {
    const std::size_t record = place * kMembers;
    s.pages[place].set({{s.rows[record].written, s.rows[record + 1].written}});
    s.frames[record] = s.frames[record + 1] = {};
    s.page_count = byte(place + 1);
    s.covered = without(s.covered, place);
  }
  if (length % kMembers != 0 && s.frames[length - 1].written == 0) s.frames[length - 1].set(s.rows[length - 1].written);
  return s.nodes[node].known != before.nodes[node].known;
}

// While the others work: what is published, and no more.
void Steps::rebuild_round(const State& s, std::size_t node) {
  const Sequencer& sequencer = s.sequencers[node == kD0 ? 1 : 0];
  if (s.committed == 0 || sequencer.active == 0 || !have_adopted(s, node)) return;
  std::size_t length = sequencer.shown;
  if (is(Weak::kRebuildTakesUnpublished) && node != kP)
    while (length < kRecords && s.frames[length].written != 0) ++length;
  State next = s;
  if (fetch(next, node, length)) emit({"a round of rebuilding up to", static_cast<int>(length)}, next);
}

// In the cutover view: the rest comes from those that have adopted it, up to the length that the sequencer has settled
// in it. LFS 0 takes its deputy's. What comes later is written to the returning node, too.
void Steps::fetch_rest(const State& s, std::size_t node) {
  if (s.nodes[node].fetched != 0 || !have_adopted(s, node)) return;
  State next = s;
  next.nodes[node].fetched = 1;
  if (s.committed != 0) {
    const Sequencer &own = s.sequencers[0], &deputy = s.sequencers[1];
    if (node != kD0 && own.active == 0 && !is(Weak::kOpensBeforeSettled)) return;
    Byte length = std::max(own.length, s.directory_length);
    if (node == kD0) length = std::max(length, deputy.length);
    if (node != kD0 && own.active != 0) length = own.shown;
    if (!is(Weak::kOpensWithoutRest)) fetch(next, node, length);
    if (node == kD0) next.sequencers[0].length = length;
    if (node == kP) next.sequencers[1].length = std::max(deputy.length, length);
  }
  emit({"the rest is fetched", -1, static_cast<int>(node)}, next);
}

// LFS 0 settles as at any start.
void Steps::open(const State& s, std::size_t node) {
  if (s.nodes[node].fetched == 0) return;
  State next = s;
  next.nodes[node].open = 1;
  next.nodes[node].fetched = 0;
  emit({"open", -1, static_cast<int>(node)}, next);
}

}  // namespace pif::parity_model::seal
