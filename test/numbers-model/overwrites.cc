// Overwrites of one file with rows at both LFSs, each at one of them. The file must show what it was at one moment.
#include "numbers-model/steps.h"

namespace pif::numbers {
namespace {

constexpr unsigned kVersions = 4;

std::uint16_t pair_of(const State& s) {
  return static_cast<std::uint16_t>(1u << (s.roots[0].version * kVersions + s.roots[1].version));
}

}  // namespace

// The client has a capability; it need not ask the server.
void Steps::overwrite_steps(const State& s) {
  if (s.written >= bounds_.overwrites || s.layouts[0] != 3) return;
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
    if (s.memory[lfs].mode != LfsMode::kServing || (s.roots[lfs].settled & bit(0)) == 0) continue;
    State next = s;
    Root& root = next.roots[lfs];
    root.version = ++next.written;
    commit(next, lfs);
    root.changed = root.age.number;
    next.existed = static_cast<std::uint16_t>(next.existed | pair_of(next));
    emit({"overwrite", next.written, static_cast<int>(lfs)}, next);
  }
}

// The rule of accept-old: rows were overwritten after the word of their LFS that the directory had when the server
// started, or the LFS is older than its last word.
const char* Steps::mixed_without_mark(const State& s) const {
  if (bounds_.overwrites == 0 || s.lapsed != 0 || (s.directory.committed & ~s.directory.marked & bit(0)) == 0)
    return nullptr;
  for (std::size_t lfs = 0; lfs < bounds_.lfss; ++lfs) {
    const Root& root = s.roots[lfs];
    const Record& record = s.directory.records[lfs];
    if ((root.components() & bit(0)) == 0) return nullptr;  // marked, for rows are gone
    const bool is_older = root.age.number < record.number;
    if (root.taken_back > record.confirmed) return nullptr;
    if (is_older && !is(Mutant::kAcceptOldTrustsOlder)) return nullptr;
    // It may have admitted the LFS since, for others had not been heard.
    const Byte known = is(Mutant::kAcceptOldForgetsLate) ? record.number : s.known[lfs];
    if (root.changed > known && !is(Mutant::kAcceptOldTrustsNewer)) return nullptr;
  }
  const bool existed = (s.existed & pair_of(s)) != 0;
  return existed ? nullptr : "accept-old leaves a file without a mark that mixes moments";
}

}  // namespace pif::numbers
