#include "numbers-model/steps.h"

#include <algorithm>

#include <fmt/format.h>

namespace pif::numbers {

std::string Label::to_string() const {
  std::string out = text;
  if (number >= 0) out += fmt::format(" {}", number);
  if (lfs >= 0) out += fmt::format(" at LFS {}", lfs);
  return out;
}

State Steps::first() const {
  State s;
  s.removes = bounds_.removes;
  s.crashes = bounds_.crashes;
  s.restores = bounds_.restores;
  return s;
}

const std::vector<Successor>& Steps::expand(const State& s) {
  out_.clear();
  server_steps(s);
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) lfs_steps(s, lfs);
  create_steps(s);
  creator_steps(s);
  remove_steps(s);
  append_steps(s);
  overwrite_steps(s);
  crash_steps(s);
  snapshot_steps(s);
  restore_steps(s);
  person_steps(s);
  return out_;
}

void Steps::emit(Label label, const State& state, const char* violation) {
  out_.push_back({label, state, violation});
  if (state.restores == 0) out_.back().state.snapshots = {};  // nobody needs them any more
}

// A directory transaction. It takes along what heartbeats have said since the last one.
void Steps::transact(State& s) const {
  Directory& directory = s.directory;
  ++directory.index;
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
    LfsMemory& memory = s.memory[lfs];
    if (memory.noted == 0) continue;
    Record& record = directory.records[lfs];
    record.confirmed = memory.note.incarnation;
    record.number = std::max(record.number, memory.note.number);
    record.components = memory.note_components;
    record.contents = memory.note_contents;
    memory.noted = 0;
    memory.note = {};
    memory.note_components = 0;
    memory.note_contents = {};
  }
}

void Steps::commit(State& s, std::size_t lfs) const {
  ++s.roots[lfs].age.number;
  if (s.memory[lfs].told != Pair{} && !is(Mutant::kPairNeverKept)) s.roots[lfs].kept = s.memory[lfs].told;
}

void Steps::drop_component(State& s, std::size_t lfs, std::size_t file) const {
  Root& root = s.roots[lfs];
  root.sealed = static_cast<Files>(root.sealed & ~bit(file));
  root.settled = static_cast<Files>(root.settled & ~bit(file));
  root.made_in[file] = 0;
  if (bit(file) == kAppended) root.published = root.rows = {};
}

// Published rows only: others come and go.
Contents Steps::contents(const State& s, std::size_t lfs) const {
  Contents out;
  if (bounds_.overwrites > 0) return out;  // of another kind of search
  if (lfs == kSequencer) out.published = s.roots[lfs].published;
  if (lfs != rows_at()) return out;
  const Rows published = s.roots[kSequencer].published, rows = s.roots[lfs].rows;
  for (std::size_t row = 0; row < published.length() && rows.at(row) == published.at(row); ++row)
    out.rows.push(rows.at(row));
  return out;
}

Files Steps::with_same_id(const State& s, std::size_t file) const {
  Files out = 0;
  for (std::size_t other = 0; other < s.files; ++other)
    if (s.ids[other] == s.ids[file]) out = static_cast<Files>(out | bit(other));
  return out;
}

// What must hold in every state.

const char* Steps::lfs_wrong(const State& s, std::size_t lfs) const {
  const Root& root = s.roots[lfs];
  const Directory& directory = s.directory;
  for (std::size_t file = 0; file < s.files; ++file) {
    if ((root.settled & bit(file)) == 0) continue;
    if ((with_same_id(s, file) & ~bit(file) & (directory.committed | directory.pending)) != 0)
      return "a component belongs to two files";
    if ((s.alive & ~directory.committed & bit(file)) != 0 && directory.abandoned == 0)
      return "the server serves without a file that an LFS knows to be committed";
  }
  const Record& record = directory.records[lfs];
  const LfsMemory& memory = s.memory[lfs];
  const bool noted = memory.noted != 0;
  if (root.age.number < record.number ||
      (noted && !is(Mutant::kVolatileNumbers) && root.age.number < memory.note.number))
    return "an LFS serves that is older than the server has seen it";
  const Files unmarked = static_cast<Files>(directory.committed & ~directory.marked);
  const auto lost = [&](Files known) {
    return (known & unmarked & ~(root.components() | root.quarantined | root.found)) != 0;
  };
  if (lost(record.components) || (noted && lost(memory.note_components)))
    return "an LFS serves without a component that the server knew it to have";
  return nullptr;
}

const char* Steps::append_file_wrong(const State& s) const {
  const Directory& directory = s.directory;
  if ((directory.committed & ~directory.marked & kAppended) == 0) return nullptr;
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
    if (!serves(s, lfs) || (s.roots[lfs].components() & kAppended) == 0) continue;
    const LfsMemory& memory = s.memory[lfs];
    for (const Contents& known :
         {directory.records[lfs].contents, memory.noted != 0 ? memory.note_contents : Contents{}}) {
      if (lfs == kSequencer && !s.roots[lfs].published.starts_with(known.published))
        return "an acknowledged append is lost, and its sequencer had been heard of it";
      const Rows published = s.roots[kSequencer].published;
      for (std::size_t row = 0; row < known.rows.length() && lfs == rows_at(); ++row)
        if (published.at(row) == known.rows.at(row) && s.roots[lfs].rows.at(row) != known.rows.at(row))
          return "a row of an acknowledged append is lost, and its LFS had been heard of it";
    }
  }
  return nullptr;
}

const char* Steps::check(const State& s) const {
  if (s.server != ServerMode::kServing) return nullptr;
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs)
    if (serves(s, lfs))
      if (const char* wrong = lfs_wrong(s, lfs)) return wrong;
  return append_file_wrong(s);
}

}  // namespace pif::numbers
