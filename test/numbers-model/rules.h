// The ways in which the rules of the numbers can be weakened. Every weakened rule is a mutant that the model must
// catch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pif::numbers {

// Sizes of one search. The program's arguments, in this order.
struct Bounds {
  std::uint8_t lfss = 1;
  std::uint8_t creates = 0;
  std::uint8_t removes = 0;
  std::uint8_t appends = 0;
  std::uint8_t crashes = 0;     // of the server or an LFS
  std::uint8_t restores = 0;    // of the server's or an LFS's root to any moment before; as many snapshots
  std::uint8_t overwrites = 0;  // of rows of file 0, each at one LFS
};

enum class Begin : std::uint8_t {
  kEmpty,  // no part has ever been started
  kFile,   // all serve, and have said so in heartbeats; file 0 is committed and settled at all LFSs
};

enum class Mutant : std::uint8_t {
  kNone,
  // What may be removed.
  kRemoveUnknown,
  kSettledRemoved,
  kRunsIgnored,
  kAbortDooms,
  kAcceptOldSweeps,
  // The pair (run, index).
  kNoPairCheck,
  kIndexOnly,
  kRunEndIgnored,
  kRunEndInclusive,
  kPairNeverKept,
  kSettleWithoutPair,
  kDiskPairOnly,
  kLateUnchecked,
  kIncarnationWithoutPair,
  // Ids.
  kIdsGoOn,
  kIdsAboveSeen,
  kIdsFixedStep,
  // The age of an LFS.
  kNoOffered,
  kPresentingConfirmsNot,
  kServesUnconfirmed,
  kNoIncarnation,
  kNoNumber,
  kMemoryForgotten,
  kRecoveryCounts,
  kVolatileNumbers,
  kAcceptOldKeepsRecords,
  kAcceptOldUnmarked,
  kAcceptStaleUnmarked,
  // Parts that are old together.
  kAcceptOldTrustsNewer,
  kAcceptOldTrustsOlder,
  kAcceptOldForgetsLate,
  // Appends.
  kLengthUnchecked,
  kOldGenerationAccepted,
  kGenerationWithoutIncarnation,
};

// A mutant, what it leaves out, and a small search that catches it.
struct MutantInfo {
  Mutant mutant;
  std::string_view name;
  std::string_view weakened;
  Bounds bounds;
  Begin begin = Begin::kEmpty;
};

extern const std::array<MutantInfo, 34> kMutants;

[[nodiscard]] std::optional<Mutant> find_mutant(std::string_view name);

}  // namespace pif::numbers
