// Sorted runs: records of one component in order, in memory or scratch files that all workers share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "keys/keys.h"
#include "pif/tool/scratch.h"
#include "pif/tool/shared_memory.h"
#include "pif/tool/team.h"
#include "pif/tool/worker.h"
#include "runs/loaded.h"

namespace pif::sort {

// Part of a worker's runs, which others can map: memory, or a scratch file where there is not enough of it.
struct Area {
  tool::SharedMemory memory;
  tool::Scratch file;
  std::span<const std::byte> bytes() const { return memory.empty() ? file.bytes() : memory.bytes(); }
  // A file's, if it was allocated.
  std::span<std::byte> space() { return memory.empty() ? file.space() : memory.bytes(); }
};
// Everybody's, by rank. Called by all workers.
Result<std::vector<Area>> share(tool::Team& team, const Area& own, bool writable);

// A worker's runs from its component: runs, one behind another.
struct Runs {
  Area elements, records, ends;
  std::vector<std::uint64_t> counts;  // of records, run by run
  Traits traits;
  bool by_row = false;  // the records are the component itself, in the page cache
};

// Reads the worker's component and sorts it, each of its threads a part that becomes a run: all of it in memory, or
// runs of what fits into options.memory in scratch files. A component that is not there has no run.
Result<Runs> load_runs(tool::Worker& worker, Inputs& inputs, const KeyMaker& maker, const RunOptions& options);
// Whether what a worker says of its runs fits the memory and files that it shares, and they are all of `records`
// records, or, if only first ones are kept, no more. (What is in these stays its own: a worker that writes nonsense
// there makes nonsense of the result, or ends itself and the job.)
bool holds_together(const Runs& runs, const Format& format, std::uint64_t records, const First& first);
// Those that are not empty; runs outlive them.
std::vector<RunView> views_of(const Runs& runs, const Format& format, const KeyMaker& maker, std::uint32_t source);
// Divides half of a worker's memory, as load_runs() has it, among the windows of these runs, which are in so many
// merges at a time; the other half is for what is on its way.
void share_memory(std::span<RunView> runs, std::uint64_t memory, std::size_t merges);

// The most memory that runs need while they are made and merged: their records twice, and what orders them.
std::uint64_t run_bytes(const Format& format, const KeyMaker& maker, const FileLength& file_length);

}  // namespace pif::sort
