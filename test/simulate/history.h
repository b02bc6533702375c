// One simulated history: a file system lives through what its plan says, is healed, and is judged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pif::simulate {

struct Outcome {
  std::uint64_t hash = 0;  // of the whole history: the same for the same seed
  std::vector<std::string> violations;
  std::uint64_t operations = 0;
  std::uint64_t failed = 0;   // of them, because of what struck
  std::uint64_t records = 0;  // read and judged
  std::uint64_t steps = 0;
  bool names_too_hard = false;  // for the checker: nothing is known of their order
  std::uint64_t restores = 0;   // of parts, to what they were
  std::uint64_t noticed = 0;    // of them, by whoever must not go on
  std::uint64_t accepted = 0;   // by a person's word; the newer ones of the others were brought back
  std::uint64_t losses = 0;     // LFSs that were declared lost
  std::uint64_t damages = 0;    // done to what disks have
  std::uint64_t found = 0;      // by scrubs; one damage may show as several
  std::uint64_t repaired = 0;   // of these
  std::uint64_t commits = 0;    // of files that several wrote
};

// tell: gets what happens, line by line, for people.
// Sixteen clients at once make, rename, remove and list names, which must be linearizable.
Outcome run_names_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell = {});

// Parts are put back to what they were: nobody goes on from there unless nobody could know.
Outcome run_restores_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell = {});

// One LFS after another of those with parity is lost and comes back, while files are made and appended to.
Outcome run_bevies_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell = {});

// The same, and a second LFS of a pair is away before the first is back.
Outcome run_overlaps_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell = {});

// One damage after another is done to files with parity: no reader is given it, and scrubs find it and make it good.
Outcome run_damages_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell = {});

// Several clients fill files together, while everything strikes: all bytes are somebody's, and those are whole.
Outcome run_together_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell = {});

Outcome run_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell = {});

}  // namespace pif::simulate
