// Files: creating, removing, settling; and what an LFS does with a component that the server does not know.
#include "numbers-model/steps.h"

#include <algorithm>

namespace pif::numbers {
namespace {

Files with(Files files, std::size_t file) { return static_cast<Files>(files | bit(file)); }
Files without(Files files, std::size_t file) { return static_cast<Files>(files & ~bit(file)); }

}  // namespace

void Steps::create_steps(const State& s) {
  if (s.server != ServerMode::kServing || s.files == bounds_.creates || s.creating != 0) return;
  Byte up = 0;
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs)
    if (serves(s, lfs)) up = static_cast<Byte>(up | bit(lfs));
  for (Byte layout = 1; layout < 1u << bounds_.lfss; ++layout)
    if ((layout & ~up) == 0) create_file(s, layout);
}

void Steps::create_file(const State& s, Byte layout) {
  State next = s;
  const std::size_t file = next.files++;
  next.ids[file] = next.directory.next_id++;
  next.layouts[file] = layout;
  const char* wrong = nullptr;
  for (std::size_t other = 0; other < file; ++other) {
    if (next.ids[other] != next.ids[file]) continue;
    for (const Root& root : s.roots)
      if (((root.components() | root.quarantined | root.found) & bit(other)) != 0) wrong = "an id is given twice";
  }
  next.directory.pending = with(next.directory.pending, file);
  next.creating = static_cast<Byte>(file + 1);
  next.made = 0;
  next.capability_run = s.run;
  transact(next);
  const char* text = layout == 3   ? "create at both: file"
                     : layout == 2 ? "create at LFS 1: file"
                                   : "create at LFS 0: file";
  emit({text, static_cast<int>(file)}, next, wrong);
}

void Steps::creator_steps(const State& s) {
  if (s.creating != 0) {
    const std::size_t file = s.creating - 1u;
    const int number = static_cast<int>(file);
    for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
      if ((s.layouts[file] & ~s.made & bit(lfs)) == 0 || s.memory[lfs].mode != LfsMode::kServing) continue;
      State next = s;
      Root& root = next.roots[lfs];
      root.sealed = with(root.sealed, file);
      root.made_in[file] = s.capability_run;
      root.highest_id = std::max(root.highest_id, s.ids[file]);
      commit(next, lfs);
      next.made = static_cast<Byte>(next.made | bit(lfs));
      emit({"seal", number, static_cast<int>(lfs)}, next);
    }
    State next = s;
    next.creating = next.made = next.capability_run = 0;
    emit({"creator dies: file", number}, next);
    if (s.server == ServerMode::kServing && (s.directory.pending & bit(file)) != 0) {
      if (s.capability_run != s.run) {
        State renewed = s;
        renewed.capability_run = s.run;
        emit({"creator comes back: file", number}, renewed);
      }
      if (s.made == s.layouts[file]) {
        next.directory.pending = without(next.directory.pending, file);
        next.directory.committed = with(next.directory.committed, file);
        next.alive = with(next.alive, file);
        transact(next);
        emit({"commit", number}, next);
      }
    }
  }
  if (s.server != ServerMode::kServing) return;
  // The creator does not come back: the row goes. It does not doom the file, because a directory that was restored may
  // hold as pending what was committed later.
  for (std::size_t file = 0; file < s.files; ++file) {
    if ((s.directory.pending & bit(file)) == 0 || s.creating == file + 1) continue;
    State next = s;
    next.directory.pending = without(next.directory.pending, file);
    if (is(Mutant::kAbortDooms))
      for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs)
        if ((s.layouts[file] & bit(lfs)) != 0) next.directory.doomed[lfs] = with(next.directory.doomed[lfs], file);
    transact(next);
    emit({"abort", static_cast<int>(file)}, next);
  }
}

void Steps::remove_steps(const State& s) {
  if (s.server != ServerMode::kServing) return;
  for (std::size_t file = 0; file < s.files; ++file) {
    if (s.removes > 0 && (s.directory.committed & bit(file)) != 0) {
      State next = s;
      --next.removes;
      next.directory.committed = without(next.directory.committed, file);
      for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs)
        if ((s.layouts[file] & bit(lfs)) != 0) next.directory.doomed[lfs] = with(next.directory.doomed[lfs], file);
      next.alive = without(next.alive, file);
      transact(next);
      emit({"remove", static_cast<int>(file)}, next);
    }
    for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
      if ((s.directory.doomed[lfs] & bit(file)) == 0 || !serves(s, lfs)) continue;
      if ((s.roots[lfs].components() & with_same_id(s, file)) != 0) continue;
      State next = s;
      next.directory.doomed[lfs] = without(next.directory.doomed[lfs], file);
      transact(next);
      emit({"removal answered: file", static_cast<int>(file), static_cast<int>(lfs)}, next);
    }
  }
}

void Steps::component_steps(const State& s, std::size_t lfs) {
  if (s.server != ServerMode::kServing) return;
  for (std::size_t file = 0; file < s.files; ++file)
    if ((s.roots[lfs].components() & bit(file)) != 0) component_step(s, lfs, file);
}

// What the server says of one component: settled, doomed, pending, or unknown.
void Steps::component_step(const State& s, std::size_t lfs, std::size_t file) {
  const int number = static_cast<int>(file), at = static_cast<int>(lfs);
  const Files same = with_same_id(s, file);
  const Directory& directory = s.directory;
  if ((directory.committed & same) != 0) {
    if ((s.roots[lfs].settled & bit(file)) != 0) return;
    State next = s;
    Root& root = next.roots[lfs];
    root.sealed = without(root.sealed, file);
    root.settled = with(root.settled, file);
    root.made_in[file] = 0;
    const Pair kept = root.kept;
    next.memory[lfs].told = {s.run, directory.index};
    commit(next, lfs);
    if (is(Mutant::kSettleWithoutPair)) root.kept = kept;
    emit({"settle", number, at}, next,
         (directory.committed & bit(file)) == 0 ? "a component belongs to two files" : nullptr);
  } else if ((directory.doomed[lfs] & same) != 0) {
    State next = s;
    drop_component(next, lfs, file);
    next.memory[lfs].told = {s.run, directory.index};
    commit(next, lfs);
    const bool lives = (s.alive & bit(file)) != 0;
    emit({"remove component", number, at}, next, lives ? "a component of a living file is removed" : nullptr);
  } else if ((directory.pending & same) == 0) {
    unknown_component(s, lfs, file);
  }
}

void Steps::unknown_component(const State& s, std::size_t lfs, std::size_t file) {
  const int number = static_cast<int>(file), at = static_cast<int>(lfs);
  const Root& before = s.roots[lfs];
  const bool settled = (before.settled & bit(file)) != 0;
  const bool present_run = before.made_in[file] == s.run;
  bool goes = !settled && present_run;
  if (is(Mutant::kRemoveUnknown)) goes = true;
  if (is(Mutant::kSettledRemoved)) goes = settled || present_run;
  if (is(Mutant::kRunsIgnored)) goes = !settled;
  if (is(Mutant::kAcceptOldSweeps) && s.directory.abandoned != 0) goes = true;
  State next = s;
  drop_component(next, lfs, file);
  Root& root = next.roots[lfs];
  const bool finds = settled && s.directory.abandoned != 0;
  if (!goes && finds) root.found = with(root.found, file);
  if (!goes && !finds) root.quarantined = with(root.quarantined, file);
  next.memory[lfs].told = {s.run, s.directory.index};
  commit(next, lfs);
  const bool lives = (s.alive & bit(file)) != 0;
  emit({goes    ? "sweep"
        : finds ? "to lost+found: component"
                : "quarantine",
        number, at},
       next, goes && lives ? "a component of a living file is removed" : nullptr);
}

}  // namespace pif::numbers
