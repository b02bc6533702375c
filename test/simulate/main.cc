// pif-simulate: runs histories, one seed each. scripts/simulate is how people call it.
#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "simulate/history.h"

namespace {

using pif::simulate::Outcome;
using pif::simulate::run_bevies_history;
using pif::simulate::run_damages_history;
using pif::simulate::run_history;
using pif::simulate::run_names_history;
using pif::simulate::run_overlaps_history;
using pif::simulate::run_restores_history;
using pif::simulate::run_together_history;

struct Options {
  std::uint64_t first = 1;
  std::uint64_t histories = 1;
  double seconds = 0;  // instead of a number of histories, or the first of both
  std::uint64_t at_most = UINT64_MAX;
  bool replays = false;  // each twice: the hashes must be equal
  bool talks = false;
  bool names = false;     // histories of names, with sixteen clients
  bool restores = false;  // histories in which parts are put back to what they were
  bool bevies = false;    // histories of files with parity, whose LFSs are lost and come back
  bool overlaps = false;  // the same, where two of a pair are away in turn
  bool damages = false;   // histories of damage to what disks have
  bool together = false;  // histories of files that several write
  bool keeps_going = false;
};

struct Totals {
  std::uint64_t histories = 0, violations = 0, unequal = 0, too_hard = 0;
  std::uint64_t operations = 0, failed = 0, records = 0, steps = 0;
  std::uint64_t restores = 0, noticed = 0, accepted = 0, losses = 0;
  std::uint64_t damages = 0, found = 0, repaired = 0, commits = 0;
};

int usage() {
  std::fputs(
      "usage: pif-simulate [--seed S] [--histories N | --seconds N [--at-most N]] [--names | --restores | --bevies | "
      "--overlaps | --damages | --together] [--replay] [--keep-going] [--talk]\n",
      stderr);
  return 2;
}

bool parse(int argc, char** argv, Options& wanted) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--replay")
      wanted.replays = true;
    else if (option == "--keep-going")
      wanted.keeps_going = true;
    else if (option == "--talk")
      wanted.talks = true;
    else if (option == "--names")
      wanted.names = true;
    else if (option == "--restores")
      wanted.restores = true;
    else if (option == "--bevies")
      wanted.bevies = true;
    else if (option == "--overlaps")
      wanted.overlaps = true;
    else if (option == "--damages")
      wanted.damages = true;
    else if (option == "--together")
      wanted.together = true;
    else if (i + 1 == argc)
      return false;
    else if (option == "--seed")
      wanted.first = std::stoull(argv[++i]);
    else if (option == "--histories")
      wanted.histories = std::stoull(argv[++i]);
    else if (option == "--seconds")
      wanted.seconds = std::stod(argv[++i]);
    else if (option == "--at-most")
      wanted.at_most = std::stoull(argv[++i]);
    else
      return false;
  }
  return true;
}

void say(const std::string& line) { fmt::print("{}\n", line); }

void add(Totals& totals, const Outcome& outcome) {
  ++totals.histories;
  totals.operations += outcome.operations;
  totals.failed += outcome.failed;
  totals.records += outcome.records;
  totals.steps += outcome.steps;
  totals.restores += outcome.restores;
  totals.noticed += outcome.noticed;
  totals.accepted += outcome.accepted;
  totals.losses += outcome.losses;
  totals.damages += outcome.damages;
  totals.found += outcome.found;
  totals.repaired += outcome.repaired;
  totals.commits += outcome.commits;
  totals.too_hard += outcome.names_too_hard ? 1 : 0;
  totals.violations += outcome.violations.empty() ? 0 : 1;
}

// As options name it; empty: of files.
std::string kind_of(const Options& wanted) {
  return wanted.names      ? " --names"
         : wanted.restores ? " --restores"
         : wanted.bevies   ? " --bevies"
         : wanted.overlaps ? " --overlaps"
         : wanted.damages  ? " --damages"
         : wanted.together ? " --together"
                           : "";
}

void run_one(std::uint64_t seed, const Options& wanted, Totals& totals) {
  const auto run = wanted.names      ? run_names_history
                   : wanted.restores ? run_restores_history
                   : wanted.bevies   ? run_bevies_history
                   : wanted.overlaps ? run_overlaps_history
                   : wanted.damages  ? run_damages_history
                   : wanted.together ? run_together_history
                                     : run_history;
  const auto outcome = wanted.talks ? run(seed, say) : run(seed, {});
  add(totals, outcome);
  if (wanted.replays && run(seed, {}).hash != outcome.hash) {
    ++totals.unequal;
    fmt::print("seed {}: the same seed gave another history\n", seed);
  }
  if (!outcome.violations.empty())
    fmt::print("seed {}: {}\n  replay: scripts/simulate{} --seed {} --talk\n", seed, outcome.violations.front(),
               kind_of(wanted), seed);
  if (wanted.histories == 1 && wanted.seconds == 0)
    fmt::print("seed {} hash {:016x} steps {}\n", seed, outcome.hash, outcome.steps);
}

}  // namespace

int main(int argc, char** argv) {
  Options wanted;
  if (!parse(argc, argv, wanted)) return usage();
  Totals totals;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  for (std::uint64_t seed = wanted.first;; ++seed) {
    const std::uint64_t done = seed - wanted.first;
    if (wanted.seconds > 0 ? elapsed() >= wanted.seconds || done >= wanted.at_most : done >= wanted.histories) break;
    run_one(seed, wanted, totals);
    if (totals.violations + totals.unequal > 0 && !wanted.keeps_going) break;
  }
  fmt::print(
      "seeds {}..{} histories {} violations {} unequal {} operations {} failed {} records {} steps {} too-hard {} "
      "restores {} noticed {} accepted {} losses {} damages {} found {} repaired {} commits {} seconds {:.1f}\n",
      wanted.first, wanted.first + totals.histories - 1, totals.histories, totals.violations, totals.unequal,
      totals.operations, totals.failed, totals.records, totals.steps, totals.too_hard, totals.restores, totals.noticed,
      totals.accepted, totals.losses, totals.damages, totals.found, totals.repaired, totals.commits, elapsed());
  return totals.violations + totals.unequal == 0 ? 0 : 1;
}
