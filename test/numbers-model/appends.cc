// Appends to one file. LFS 0 is its sequencer; the last LFS takes the rows.
#include "numbers-model/steps.h"

namespace pif::numbers {

Age Steps::generation(const State& s) const {
  const Root& root = s.roots[kSequencer];
  return {is(Mutant::kGenerationWithoutIncarnation) ? Byte{0} : root.age.incarnation, root.generation};
}

bool Steps::shorter_than_directory(const State& s) const {
  return (s.directory.marked & kAppended) == 0 && s.roots[kSequencer].published.length() < s.directory.length;
}

void Steps::append_steps(const State& s) {
  if (s.appended < bounds_.appends) reserve(s);
  for (std::size_t slot = 0; slot < kSlots; ++slot)
    if (s.appends[slot].phase != AppendPhase::kNone) append_step(s, slot);
}

// The client opens the file, which tells it the directory's length, and reserves the next row.
void Steps::reserve(const State& s) {
  const Byte all = static_cast<Byte>((1u << bounds_.lfss) - 1u);
  const bool opened =
      s.server == ServerMode::kServing && serves(s, kSequencer) && (s.directory.committed & kAppended) != 0;
  if (!opened || s.layouts[0] != all || (s.roots[kSequencer].settled & kAppended) == 0) return;
  if (shorter_than_directory(s) && !is(Mutant::kLengthUnchecked)) {
    State next = s;
    next.memory[kSequencer].mode = LfsMode::kStale;
    const char* wrong = (s.lfs_restored & bit(kSequencer)) == 0 ? "a false alarm: a length is too low" : nullptr;
    return emit({"is stale: its length lies below the directory's", -1, 0}, next, wrong);
  }
  std::size_t slot = kSlots;
  for (std::size_t i = 0; i < kSlots; ++i) {
    if (s.appends[i].phase == AppendPhase::kNone)
      slot = i;
    else if (s.appends[i].phase != AppendPhase::kPublished && s.appends[i].generation == generation(s))
      return;
  }
  if (slot == kSlots) return;
  State next = s;
  Append& append = next.appends[slot];
  append = {AppendPhase::kGranted, ++next.appended, s.roots[kSequencer].published.length(), generation(s)};
  const char* wrong = shorter_than_directory(s) ? "a row below the directory's length is given again" : nullptr;
  emit({"reserve: append", append.append}, next, wrong);
}

void Steps::append_step(const State& s, std::size_t slot) {
  const Append& append = s.appends[slot];
  const Root& root = s.roots[kSequencer];
  const bool up = s.memory[kSequencer].mode == LfsMode::kServing && (root.components() & kAppended) != 0;
  const bool current = up && append.generation == generation(s) && append.row == root.published.length();
  State next = s;
  Append& changed = next.appends[slot];
  if (append.phase == AppendPhase::kGranted) write_rows(s, slot);
  if (append.phase == AppendPhase::kWritten && current) {
    changed.phase = AppendPhase::kPublished;
    next.roots[kSequencer].published.push(append.append);
    commit(next, kSequencer);
    emit({"publish: append", append.append}, next);
  }
  if (append.phase == AppendPhase::kPublished && s.server == ServerMode::kServing &&
      (s.directory.committed & kAppended) != 0 && s.directory.length <= append.row) {
    next = s;
    next.directory.length = static_cast<Byte>(append.row + 1);
    changed = {};
    transact(next);
    emit({"close: append", append.append}, next);
  }
  if (current && append.phase != AppendPhase::kPublished) {
    next = s;
    ++next.roots[kSequencer].generation;
    if (append.phase == AppendPhase::kWritten) changed = {};
    emit({"lapse: append", append.append}, next);
  } else {
    next = s;
    changed = {};
    emit({"appender dies: append", append.append}, next);
  }
}

// The rows of an append come, perhaps late.
void Steps::write_rows(const State& s, std::size_t slot) {
  const Append& append = s.appends[slot];
  const std::size_t lfs = rows_at();
  const Root& before = s.roots[lfs];
  if (s.memory[lfs].mode != LfsMode::kServing || (before.components() & kAppended) == 0) return;
  const Age newest = before.row_generation;
  const bool older = append.generation.incarnation < newest.incarnation ||
                     (append.generation.incarnation == newest.incarnation && append.generation.number < newest.number);
  State next = s;
  if ((older && !is(Mutant::kOldGenerationAccepted)) || before.rows.length() < append.row) {
    next.appends[slot] = {};
    return emit({"rows are refused: append", append.append, static_cast<int>(lfs)}, next);
  }
  Root& root = next.roots[lfs];
  const Rows published = s.roots[kSequencer].published;
  const char* wrong = nullptr;
  const bool marked = (s.directory.marked & kAppended) != 0;  // rows granted before accept-stale may come yet
  for (std::size_t row = append.row; row < published.length() && !marked; ++row)
    if (before.rows.at(row) == published.at(row)) wrong = "a published row is written over";
  root.rows.truncate(append.row);
  root.rows.push(append.append);
  if (!older) root.row_generation = append.generation;
  commit(next, lfs);
  next.appends[slot].phase = AppendPhase::kWritten;
  emit({"rows: append", append.append, static_cast<int>(lfs)}, next, wrong);
}

}  // namespace pif::numbers
