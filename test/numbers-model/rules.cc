#include "numbers-model/rules.h"

namespace pif::numbers {

// Bounds: LFSs, creates, removes, appends, crashes, restores. None of them needs more than four million states.
const std::array<MutantInfo, 31> kMutants = {{
    {Mutant::kRemoveUnknown, "remove-unknown", "what the server does not know is removed", {1, 1, 0, 0, 0, 1}},
    {Mutant::kSettledRemoved, "settled-removed", "unknown settled components are removed", {1, 1, 0, 0, 0, 1}},
    {Mutant::kRunsIgnored, "runs-ignored", "unknown unsettled components of any run are removed", {1, 1, 0, 0, 0, 1}},
    {Mutant::kAbortDooms, "abort-dooms", "a pending row whose creator is gone becomes a doomed one", {1, 1, 0, 0, 0, 1}},
    {Mutant::kAcceptOldSweeps, "accept-old-sweeps", "after accept-old what is unknown is removed", {1, 1, 0, 0, 0, 1}},
    {Mutant::kNoPairCheck, "no-pair-check", "the server does not look at the pair", {1, 1, 0, 0, 0, 1}},
    {Mutant::kIndexOnly, "index-only", "indices are compared, not runs", {1, 1, 0, 0, 1, 1}},
    {Mutant::kRunEndIgnored, "run-end-ignored", "the run is looked for, not the index in it", {1, 1, 0, 0, 0, 1}},
    {Mutant::kRunEndInclusive, "run-end-inclusive",
     "the next run's first index still counts as this run's", {1, 1, 0, 0, 0, 1}},
    {Mutant::kPairNeverKept, "pair-never-kept", "an LFS keeps no pair", {1, 1, 0, 0, 1, 1}},
    {Mutant::kSettleWithoutPair, "settle-without-pair", "settling does not keep the pair", {1, 1, 0, 0, 1, 1}},
    {Mutant::kDiskPairOnly, "disk-pair-only",
     "an LFS presents the pair it keeps, not a newer one it was told", {1, 1, 0, 0, 0, 1}},
    {Mutant::kLateUnchecked, "late-unchecked",
     "an LFS that comes after the server serves is not asked for its pair", {1, 1, 0, 0, 0, 1}},
    {Mutant::kIncarnationWithoutPair, "incarnation-without-pair",
     "keeping an incarnation does not keep the pair", {1, 0, 0, 0, 1, 1}},
    {Mutant::kIdsGoOn, "ids-go-on", "a run goes on with the ids of the one before", {1, 2, 0, 0, 0, 1}},
    {Mutant::kIdsAboveSeen, "ids-above-seen",
     "a run goes on above the ids that LFSs have seen; a new range if one is not heard", {2, 2, 0, 0, 0, 1}},
    {Mutant::kIdsFixedStep, "ids-fixed-step", "a run's range begins a fixed step above the last id", {2, 2, 0, 0, 0, 1}},
    {Mutant::kNoOffered, "no-offered", "only the confirmed incarnation is admitted", {1, 0, 0, 0, 1, 0}},
    {Mutant::kPresentingConfirmsNot, "presenting-confirms-not", "only a heartbeat confirms an incarnation", {1, 0, 0, 0, 2, 0}},
    {Mutant::kServesUnconfirmed, "serves-unconfirmed", "an LFS serves when it has kept its incarnation", {1, 1, 0, 2, 0, 2},
     Begin::kFile},
    {Mutant::kNoIncarnation, "no-incarnation", "incarnations are not compared", {1, 1, 0, 0, 1, 2}},
    {Mutant::kNoNumber, "no-number", "numbers are not compared", {1, 1, 0, 0, 0, 1}},
    {Mutant::kMemoryForgotten, "memory-forgotten", "only what is on the server's disk counts", {1, 1, 0, 0, 0, 1}},
    {Mutant::kRecoveryCounts, "recovery-counts", "an LFS changes its root before it presents itself", {1, 1, 0, 0, 0, 1}},
    {Mutant::kVolatileNumbers, "volatile-numbers", "a heartbeat says a number that is not durable yet", {1, 0, 0, 0, 1, 0}},
    {Mutant::kAcceptOldKeepsRecords, "accept-old-keeps-records",
     "after accept-old LFSs must have known incarnations", {1, 1, 0, 0, 1, 1}},
    {Mutant::kAcceptOldUnmarked, "accept-old-unmarked", "accept-old marks no files", {1, 1, 1, 0, 0, 1}},
    {Mutant::kAcceptStaleUnmarked, "accept-stale-unmarked", "accept-stale marks no files", {1, 1, 0, 0, 0, 1}},
    {Mutant::kLengthUnchecked, "length-unchecked", "a length below the directory's is believed", {1, 1, 0, 2, 0, 1}},
    {Mutant::kOldGenerationAccepted, "old-generation-accepted", "rows of an older generation are taken", {1, 1, 0, 2, 0, 0}},
    {Mutant::kGenerationWithoutIncarnation, "generation-without-incarnation",
     "generations are numbers only", {1, 1, 0, 3, 0, 1}, Begin::kFile},
}};

std::optional<Mutant> find_mutant(std::string_view name) {
  for (const MutantInfo& info : kMutants)
    if (info.name == name) return info.mutant;
  return std::nullopt;
}

}  // namespace pif::numbers
