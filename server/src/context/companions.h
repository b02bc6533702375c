// Which LFSs protect one another: pairs of bevies that stay the same from file to file, so that losing a second disk
// costs only files of one pair.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pif::server {

// An LFS that a file may get.
struct Candidate {
  std::uint32_t node = 0;
  std::uint64_t machine = 0;  // equal: on the same machine; 0: not known
  bool is_usable = false;     // for new files
  bool is_full = false;       // takes no new data
  bool is_absent = false;     // in the view: others keep copies of its rows of files with parity
};

// Two bevies of one size; each has the parity of the other's data.
struct CompanionPair {
  std::vector<Candidate> first;
  std::vector<Candidate> second;
};

// Pairs whose bevies have `sizes`, one each, in that order.
using PairGroup = std::vector<CompanionPair>;

// As many groups as `candidates` make. Each candidate, in order, goes to the first pair that has room for it:
// candidates that are added at the end change no pair that was whole. apart: no machine is in both bevies of a pair.
std::vector<PairGroup> pair_up(std::span<const Candidate> candidates, std::span<const std::uint32_t> sizes, bool apart);

// Whether two companions, one of each bevy, are known to be on the same machine.
bool share_a_machine(std::span<const Candidate> bevy, std::span<const Candidate> companion);

// Whether the candidates are known to be on more than one machine.
bool on_several_machines(std::span<const Candidate> candidates);

}  // namespace pif::server
