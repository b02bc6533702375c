// The server's life, and how it and the LFSs meet.
#include "numbers-model/steps.h"

#include <algorithm>

namespace pif::numbers {
namespace {

// The rule itself: what the model knows to be right.
bool in_history(const Directory& directory, Pair pair, bool ends, bool inclusive) {
  if (pair == Pair{} || ((directory.abandoned >> pair.run) & 1u) != 0) return true;
  for (std::size_t i = 0; i < directory.run_count; ++i) {
    if (directory.runs[i].run != pair.run) continue;
    if (!ends) return true;
    if (i + 1 == directory.run_count) return pair.index <= directory.index;
    const Byte next = directory.runs[i + 1].index;
    return inclusive ? pair.index <= next : pair.index < next;
  }
  return false;
}

Pair newest(const State& s, std::size_t lfs) {
  return s.memory[lfs].told != Pair{} ? s.memory[lfs].told : s.roots[lfs].kept;
}

void forget_lfss(State& s) {
  s.heard = 0;
  for (LfsMemory& memory : s.memory) {
    memory.noted = 0;
    memory.note = {};
    memory.note_components = 0;
    memory.note_contents = {};
    if (memory.mode == LfsMode::kStale) memory = {};
  }
}

// The LFS lacks what it did before the directory's moment, and the directory had not heard of it: nobody can tell.
void note_lapse(State& s, Byte number, const Record& record) {
  if (number >= record.number && number < record.actual) s.lapsed = 1;
}

// How far the LFS is at the directory's moment, which is now. A directory that was restored knows those it has met.
void note_actual(const State& s, Directory& directory, std::size_t lfs) {
  Byte& actual = directory.records[lfs].actual;
  if (s.server_restored == 0 || serves(s, lfs)) actual = std::max(actual, s.roots[lfs].age.number);
}

}  // namespace

bool Steps::pair_fits(const Directory& directory, Pair pair) const {
  if (is(Mutant::kNoPairCheck) || pair == Pair{}) return true;
  if (is(Mutant::kIndexOnly)) return pair.index <= directory.index;
  return in_history(directory, pair, !is(Mutant::kRunEndIgnored), is(Mutant::kRunEndInclusive));
}

// What the server knows of the LFS, in memory or on disk, against what it presents.
bool Steps::age_fits(const State& s, std::size_t lfs) const {
  const Age age = s.roots[lfs].age;
  const Record& record = s.directory.records[lfs];
  const LfsMemory& memory = s.memory[lfs];
  Byte confirmed = record.confirmed, number = record.number;
  if (memory.noted != 0 && !is(Mutant::kMemoryForgotten)) {
    confirmed = memory.note.incarnation;
    number = std::max(number, memory.note.number);
  }
  const bool confirmed_one = age.incarnation == confirmed || confirmed == kAnyIncarnation;
  const bool offered_one = age.incarnation == record.offered && !is(Mutant::kNoOffered);
  const bool incarnation = confirmed_one || offered_one || is(Mutant::kNoIncarnation);
  return incarnation && (age.number >= number || is(Mutant::kNoNumber));
}

// Each run has a range of ids of its own, which no other history of the directory has. (Were it a fixed step above the
// last id, two histories would take the same one.)
void Steps::begin_range(State& s) const {
  if (is(Mutant::kIdsGoOn)) return;
  s.directory.next_id = is(Mutant::kIdsFixedStep) ? static_cast<Byte>(s.directory.next_id + kIdsPerRange)
                                                  : static_cast<Byte>(s.run * kIdsPerRange + 1);
}

void Steps::server_steps(const State& s) {
  if (s.server == ServerMode::kDown) {
    State next = s;
    next.run = ++next.runs;
    Directory& directory = next.directory;
    directory.runs[directory.run_count++] = {next.run, static_cast<Byte>(directory.index + 1)};
    for (std::size_t lfs = 0; lfs < bounds_.lfss && bounds_.overwrites > 0; ++lfs)
      next.known[lfs] = directory.records[lfs].number;
    next.server = ServerMode::kWaiting;
    if (!is(Mutant::kIdsAboveSeen)) begin_range(next);
    transact(next);
    emit({"server starts"}, next);
    return;
  }
  if (s.server == ServerMode::kRefused) return;
  if (s.server == ServerMode::kWaiting) {
    State next = s;
    next.server = ServerMode::kServing;
    const bool all = s.heard == (1u << bounds_.lfss) - 1u;
    if (!all && is(Mutant::kIdsAboveSeen)) begin_range(next);
    emit({all ? "server serves" : "server serves, not all LFSs heard"}, next);
  }
  bool noted = false;
  for (const LfsMemory& memory : s.memory) noted = noted || memory.noted != 0;
  if (!noted) return;
  State next = s;
  transact(next);
  emit({"a second passes"}, next);
}

void Steps::lfs_steps(const State& s, std::size_t lfs) {
  const LfsMemory& memory = s.memory[lfs];
  const int number = static_cast<int>(lfs);
  if (memory.mode == LfsMode::kOffered) {
    State next = s;
    Root& root = next.roots[lfs];
    const Pair kept = root.kept;
    root.age.incarnation = memory.offered;
    root.generation = is(Mutant::kGenerationWithoutIncarnation) ? static_cast<Byte>(root.generation + 1) : Byte{0};
    commit(next, lfs);
    if (is(Mutant::kIncarnationWithoutPair)) root.kept = kept;
    next.memory[lfs].mode = is(Mutant::kServesUnconfirmed) ? LfsMode::kServing : LfsMode::kKept;
    next.memory[lfs].offered = 0;
    emit({"keeps its incarnation", -1, number}, next);
  }
  const bool server_up = s.server == ServerMode::kWaiting || s.server == ServerMode::kServing;
  if (!server_up) return;
  if ((s.heard & bit(lfs)) == 0 && memory.mode != LfsMode::kStale) return meet(s, lfs);
  if (memory.mode == LfsMode::kKept) {
    State next = s;
    note(next, lfs);
    transact(next);
    next.memory[lfs].mode = LfsMode::kServing;
    next.memory[lfs].told = {s.run, next.directory.index};
    emit({"is confirmed", -1, number}, next);
  }
  if (memory.mode == LfsMode::kServing) heartbeat(s, lfs);
}

void Steps::note(State& s, std::size_t lfs) const {
  LfsMemory& memory = s.memory[lfs];
  memory.noted = 1;
  memory.note = s.roots[lfs].age;
  memory.note_components = s.roots[lfs].components();
  memory.note_contents = contents(s, lfs);
}

void Steps::heartbeat(const State& s, std::size_t lfs) {
  State next = s;
  LfsMemory& changed = next.memory[lfs];
  const Record& record = s.directory.records[lfs];
  changed.told = {s.run, s.directory.index};
  Age age = s.roots[lfs].age;
  if (is(Mutant::kVolatileNumbers)) ++age.number;  // of a change that is not durable yet
  if (age.incarnation != record.confirmed || age.number != record.number) {
    note(next, lfs);
    changed.note = age;
  }
  emit({"heartbeat", -1, static_cast<int>(lfs)}, next);
  component_steps(s, lfs);
}

void Steps::meet(const State& s, std::size_t lfs) {
  const LfsMemory& memory = s.memory[lfs];
  const int number = static_cast<int>(lfs);
  const bool starts = memory.mode == LfsMode::kDown;
  const Pair presented = is(Mutant::kDiskPairOnly) ? s.roots[lfs].kept : newest(s, lfs);
  State next = s;
  const bool unchecked = is(Mutant::kLateUnchecked) && s.server == ServerMode::kServing;
  if (!unchecked && !pair_fits(s.directory, presented)) {
    next.server = ServerMode::kRefused;
    forget_lfss(next);
    const char* wrong = s.server_restored == 0 ? "a false alarm: the server is refused" : nullptr;
    emit({"meets a server older than itself", -1, number}, next, wrong);
    return;
  }
  if (starts && is(Mutant::kRecoveryCounts)) ++next.roots[lfs].age.number;
  next.heard = static_cast<Byte>(next.heard | bit(lfs));
  if (!age_fits(next, lfs)) {
    next.memory[lfs].mode = LfsMode::kStale;
    next.memory[lfs].offered = 0;
    const char* wrong = (s.lfs_restored & bit(lfs)) == 0 ? "a false alarm: an LFS is stale" : nullptr;
    emit({"is stale", -1, number}, next, wrong);
    return;
  }
  accept(next, lfs, {starts ? "starts" : "meets the server again", -1, number});
}

const char* Steps::served_although_old(const State& s, std::size_t lfs) const {
  return in_history(s.directory, newest(s, lfs), true, false) ? nullptr
                                                              : "a server is served that an LFS knows to be older";
}

// Admits the LFS as it is. Before what the model knows of it is forgotten: would it be right to serve it?
void Steps::accept(State next, std::size_t lfs, Label label) {
  State served = next;
  served.server = ServerMode::kServing;
  served.memory[lfs].mode = LfsMode::kServing;
  const char* wrong = check(served);
  if (wrong == nullptr) wrong = served_although_old(next, lfs);
  LfsMemory& memory = next.memory[lfs];
  const Byte highest = next.roots[lfs].highest_id;
  const bool beyond = is(Mutant::kIdsAboveSeen) && highest >= next.directory.next_id;
  if (beyond) next.directory.next_id = static_cast<Byte>(highest + 1);
  if (memory.mode == LfsMode::kServing) {
    note(next, lfs);
    if (beyond) transact(next);
    memory.told = {next.run, next.directory.index};
  } else {
    offer(next, lfs);
  }
  emit(label, next, wrong);
}

// What the LFS presents is confirmed, and a new incarnation offered: the index of this transaction. Who presents the
// same again is offered the same.
void Steps::offer(State& s, std::size_t lfs) const {
  LfsMemory& memory = s.memory[lfs];
  memory.noted = 0;
  memory.note = {};
  memory.note_components = 0;
  memory.note_contents = {};
  transact(s);
  Record& record = s.directory.records[lfs];
  const auto presented = s.roots[lfs].age.incarnation;
  const bool has_offer = record.confirmed == presented && record.offered > presented;
  if (!is(Mutant::kPresentingConfirmsNot)) record.confirmed = presented;
  if (!has_offer) record.offered = s.directory.index;
  record.number = std::max(record.number, s.roots[lfs].age.number);
  record.components = s.roots[lfs].components();
  record.contents = contents(s, lfs);
  memory.mode = LfsMode::kOffered;
  memory.offered = record.offered;
  memory.told = {s.run, s.directory.index};
}

void Steps::crash_steps(const State& s) {
  if (s.crashes == 0) return;
  if (s.server != ServerMode::kDown) {
    State next = s;
    --next.crashes;
    next.server = ServerMode::kDown;
    next.run = 0;
    forget_lfss(next);
    emit({"server dies"}, next);
  }
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
    if (s.memory[lfs].mode == LfsMode::kDown) continue;
    State next = s;
    --next.crashes;
    LfsMemory& memory = next.memory[lfs];
    memory.mode = LfsMode::kDown;
    memory.offered = 0;
    memory.told = {};
    next.heard = static_cast<Byte>(next.heard & ~bit(lfs));
    if (!is(Mutant::kGenerationWithoutIncarnation)) next.roots[lfs].generation = 0;
    emit({"dies", -1, static_cast<int>(lfs)}, next);
  }
}

void Steps::snapshot_steps(const State& s) {
  std::size_t slot = 0;
  while (slot < kSnapshotsMax && s.snapshots[slot].part != Part::kNone) ++slot;
  if (s.restores == 0 || slot >= bounds_.restores) return;
  State next = s;
  next.snapshots[slot].part = Part::kServer;
  next.snapshots[slot].directory = s.directory;
  for (std::size_t lfs = 0; lfs < bounds_.lfss && bounds_.overwrites > 0; ++lfs)
    note_actual(s, next.snapshots[slot].directory, lfs);
  emit({"snapshot of the server"}, next);
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
    next = s;
    Snapshot& snapshot = next.snapshots[slot];
    snapshot.part = lfs == 0 ? Part::kLfs0 : Part::kLfs1;
    snapshot.root = s.roots[lfs];
    if (!is(Mutant::kGenerationWithoutIncarnation)) snapshot.root.generation = 0;
    emit({"snapshot", -1, static_cast<int>(lfs)}, next);
  }
}

// Whoever restores a part stops it first. A snapshot may be used again.
void Steps::restore_steps(const State& s) {
  if (s.restores == 0) return;
  for (const Snapshot& snapshot : s.snapshots) {
    if (snapshot.part == Part::kNone) continue;
    State next = s;
    --next.restores;
    if (snapshot.part == Part::kServer) {
      next.directory = snapshot.directory;
      for (std::size_t lfs = 0; lfs < bounds_.lfss && bounds_.overwrites > 0; ++lfs)
        note_lapse(next, s.roots[lfs].age.number, next.directory.records[lfs]);
      next.server = ServerMode::kDown;
      next.run = 0;
      next.server_restored = 1;
      forget_lfss(next);
      emit({"server restored"}, next);
      continue;
    }
    const std::size_t lfs = snapshot.part == Part::kLfs0 ? 0 : 1;
    if (bounds_.overwrites > 0) {
      note_actual(s, next.directory, lfs);
      note_lapse(next, snapshot.root.age.number, next.directory.records[lfs]);
    }
    next.roots[lfs] = snapshot.root;
    LfsMemory& memory = next.memory[lfs];
    memory.mode = LfsMode::kDown;
    memory.offered = 0;
    memory.told = {};
    next.heard = static_cast<Byte>(next.heard & ~bit(lfs));
    next.lfs_restored = static_cast<Byte>(next.lfs_restored | bit(lfs));
    emit({"restored", -1, static_cast<int>(lfs)}, next);
  }
}

// accept-stale: what the directory knows to be there may mix old and new. accept-old: the histories that LFSs know
// beyond this directory are given up; indices go on above them, and each LFS may come as whatever it has become there.
void Steps::person_steps(const State& s) {
  if (s.server == ServerMode::kServing || s.server == ServerMode::kWaiting) {
    for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
      if (s.memory[lfs].mode != LfsMode::kStale) continue;
      State next = s;
      Directory& directory = next.directory;
      directory.records[lfs].number = 0;
      if (bounds_.overwrites > 0) next.roots[lfs].taken_back = static_cast<Byte>(directory.index + 1);
      next.memory[lfs].note.number = 0;
      next.memory[lfs].mode = LfsMode::kDown;
      if (!is(Mutant::kAcceptStaleUnmarked))
        for (std::size_t file = 0; file < s.files; ++file)
          if ((s.layouts[file] & bit(lfs)) != 0)
            directory.marked =
                static_cast<Files>(directory.marked | (bit(file) & (directory.committed | directory.pending)));
      accept(next, lfs, {"accept-stale", -1, static_cast<int>(lfs)});
    }
  }
  if (s.server != ServerMode::kRefused) return;
  State next = s;
  Directory& directory = next.directory;
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
    const Pair pair = newest(s, lfs);
    directory.index = std::max({directory.index, pair.index, s.roots[lfs].age.incarnation});
    if (!in_history(s.directory, pair, true, false))
      directory.abandoned = static_cast<std::uint16_t>(directory.abandoned | (1u << pair.run));
    if (!is(Mutant::kAcceptOldKeepsRecords)) directory.records[lfs].confirmed = kAnyIncarnation;
  }
  for (std::size_t lfs = 0; lfs < bounds_.lfss && bounds_.overwrites > 0; ++lfs)
    next.roots[lfs].taken_back = static_cast<Byte>(directory.index + 1);
  if (!is(Mutant::kAcceptOldUnmarked)) directory.marked = static_cast<Files>(directory.committed | directory.pending);
  transact(next);
  next.server = ServerMode::kWaiting;
  emit({"accept-old"}, next, mixed_without_mark(s));
}

}  // namespace pif::numbers
