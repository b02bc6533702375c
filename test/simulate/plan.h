// What one simulated history is like: everything is drawn from its seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sim/world.h"

namespace pif::simulate {

enum class Strike : std::uint8_t {
  kKillServer,
  kCutServer,  // its power, in the middle of a call
  kKillLfs,
  kCutLfs,  // its power, in the middle of a call: any part of what was not synced is lost
  kKillClient,
  kKillWorker,
  kBreakLink,
  kPartition,  // of two of them, over ZeroMQ-like routes
  kStall,
  kFailOnce,    // one call of a disk or store
  kFailSticky,  // all of them, for a while
  kFill,        // a disk, for a while
  kWriteBack,   // some of what is not synced
  kRot,         // a bit, or a block that lands elsewhere
  // Of histories with restores only.
  kBackUp,      // a copy is made of an LFS's root, or of the directory
  kRestoreLfs,  // what was copied takes its place
  kRestoreServer,
  kWipe,         // an LFS has an empty disk, or its catalogue is empty
  kSwap,         // two LFSs have each other's roots
  kRestoreSome,  // the directory, some LFSs, or both, each of a moment of its own
  // Of histories with bevies only: one LFS is away, or seems to be, for some time (absences.h).
  kTakeAway,   // killed, or its power goes; it comes back with what it had
  kReplace,    // the same, for good: an empty root takes its place
  kCutOff,     // the server does not hear it, and others perhaps
  kPause,      // it stands still
  kDiskFails,  // its daemon runs; reads, changes, its catalogue or all calls give I/O errors
};
inline constexpr std::size_t kStrikeKinds = 14;
std::string name_of(Strike strike);
constexpr bool takes_away(Strike strike) { return strike >= Strike::kTakeAway; }

struct Plan {
  std::uint64_t seed = 0;
  unsigned lfss = 3;
  unsigned clients = 2;
  unsigned operations = 8;  // of each client
  std::uint64_t log_bytes = 64u << 20;
  std::uint32_t bevy = 0;  // LFSs of each of two companion bevies, whose files keep parity; 0: there are none
  bool overlaps = false;   // two of them may be away at once
  bool is_far = false;     // LFSs have no Unix sockets
  Duration timeout = std::chrono::seconds(8);  // of clients
  bool rots = false;
  bool restores = false;             // parts are put back to what they were
  bool accepts = false;              // and a person takes them as they are; else brings the newer ones back
  std::vector<Strike> strikes;       // in order
  std::vector<std::uint64_t> steps;  // between them
  sim::Options world;

  static Plan from(std::uint64_t seed);
  // Of sixteen clients that know nothing but names.
  static Plan for_names(std::uint64_t seed);
  // Of clients that work with files while parts are put back to what they were.
  static Plan for_restores(std::uint64_t seed);
  // Of clients that append to files with parity while one LFS after another is lost and comes back.
  static Plan for_bevies(std::uint64_t seed);
  // The same, where a second LFS of a pair is away in turn, before the first is back.
  static Plan for_overlaps(std::uint64_t seed);
  // Of clients that fill files together.
  static Plan for_together(std::uint64_t seed);
  std::string to_string() const;
};

// Small numbers from a seed, the same everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x632be59bd9b4e019) {}
  std::uint64_t below(std::uint64_t limit);  // 0 <= x < limit
  std::uint64_t from_to(std::uint64_t least, std::uint64_t most) { return least + below(most - least + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace pif::simulate
