// pif-numbers-model: searches all states of the model within bounds.
//
//   pif-numbers-model LFSS CREATES REMOVES APPENDS CRASHES RESTORES OVERWRITES [MUTANT] [--file] [--limit STATES]
//   pif-numbers-model --mutants        each mutant with the smallest bounds that catch it; all must be caught
//   pif-numbers-model --test           the same, and the rules themselves with bounds that are soon searched
//
// --file begins with all parts up and file 0 there, so that the search gets further.
// Exit code 1: a violation (with a mutant too), or a mutant that is not caught.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "numbers-model/search.h"
#include "numbers-model/state.h"

namespace {

using pif::numbers::Begin;
using pif::numbers::Bounds;
using pif::numbers::Byte;
using pif::numbers::kMutants;
using pif::numbers::Mutant;
using pif::numbers::MutantInfo;
using pif::numbers::Outcome;
using pif::numbers::search;

constexpr std::uint64_t kStatesMax = 4'000'000'000;
constexpr std::uint64_t kMutantStatesMax = 4'000'000;
struct Tested {
  Bounds bounds;
  Begin begin = Begin::kEmpty;
};
constexpr std::array<Tested, 8> kTested = {{{{1, 1, 1, 0, 1, 1}},
                                            {{1, 1, 0, 2, 1, 0}},
                                            {{1, 1, 0, 2, 0, 1}},
                                            {{1, 1, 0, 0, 0, 2}},
                                            {{2, 1, 0, 1, 0, 0}},
                                            {{2, 1, 0, 1, 0, 1}, Begin::kFile},
                                            {{1, 1, 0, 2, 0, 2}, Begin::kFile},
                                            {{2, 1, 0, 0, 0, 2, 2}, Begin::kFile}}};

int usage() {
  std::fputs(
      "usage: pif-numbers-model LFSS CREATES REMOVES APPENDS CRASHES RESTORES OVERWRITES [MUTANT] [--file]\n"
      "           [--limit STATES]\n"
      "       pif-numbers-model --mutants | --test\n",
      stderr);
  for (const MutantInfo& info : kMutants) fmt::print(stderr, "  {:32}{}\n", info.name, info.weakened);
  return 2;
}

std::string text(const Bounds& b) {
  return fmt::format("{} {} {} {} {} {} {}", b.lfss, b.creates, b.removes, b.appends, b.crashes, b.restores,
                     b.overwrites);
}

void print(std::string_view name, const Bounds& bounds, const Outcome& outcome) {
  const char* end = outcome.complete ? "complete" : outcome.violation.empty() ? "limit" : outcome.violation.c_str();
  fmt::print("{:32}{}: {} states, depth {}, {:.1f} s, {:.0f}/s: {}\n", name, text(bounds), outcome.states,
             outcome.depth, outcome.seconds, static_cast<double>(outcome.states) / std::max(outcome.seconds, 1e-6),
             end);
  std::fflush(stdout);
}

void print_path(const Outcome& outcome) {
  for (const std::string& step : outcome.path) fmt::print("    {}\n", step);
}

bool run_mutants() {
  bool good = true;
  for (const MutantInfo& info : kMutants) {
    const Outcome outcome = search(info.bounds, info.mutant, kMutantStatesMax, info.begin);
    print(info.name, info.bounds, outcome);
    good = good && !outcome.violation.empty();
  }
  return good;
}

bool run_tested() {
  bool good = true;
  for (const Tested& tested : kTested) {
    const Outcome outcome = search(tested.bounds, Mutant::kNone, kStatesMax, tested.begin);
    print(tested.begin == Begin::kFile ? "- --file" : "-", tested.bounds, outcome);
    print_path(outcome);
    good = good && outcome.complete;
  }
  return good;
}

template <typename Number>
bool parse(std::string_view word, Number& out, Number max) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc{} && end == word.data() + word.size() && out <= max;
}

bool parse(const std::vector<std::string_view>& words, Bounds& bounds) {
  const std::array<std::pair<Byte*, Byte>, 7> fields = {{{&bounds.lfss, Byte{pif::numbers::kLfsMax}},
                                                         {&bounds.creates, Byte{pif::numbers::kFilesMax}},
                                                         {&bounds.removes, Byte{4}},
                                                         {&bounds.appends, Byte{4}},
                                                         {&bounds.crashes, Byte{4}},
                                                         {&bounds.restores, Byte{pif::numbers::kSnapshotsMax}},
                                                         {&bounds.overwrites, Byte{3}}}};
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (i >= words.size() || !parse(words[i], *fields[i].first, fields[i].second)) return false;
  return bounds.lfss > 0 && bounds.crashes + bounds.restores + 1u <= pif::numbers::kRunsMax;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words == std::vector<std::string_view>{"--mutants"}) return run_mutants() ? 0 : 1;
  if (words == std::vector<std::string_view>{"--test"}) {
    const bool rules = run_tested(), mutants = run_mutants();
    return rules && mutants ? 0 : 1;
  }
  std::uint64_t limit = kStatesMax;
  if (words.size() >= 2 && words[words.size() - 2] == "--limit") {
    if (!parse(words.back(), limit, kStatesMax)) return usage();
    words.resize(words.size() - 2);
  }
  Begin begin = Begin::kEmpty;
  if (!words.empty() && words.back() == "--file") {
    begin = Begin::kFile;
    words.pop_back();
  }
  Bounds bounds;
  if (!parse(words, bounds) || (begin == Begin::kFile && bounds.creates == 0) || words.size() > 8) return usage();
  const auto mutant = words.size() == 8 ? pif::numbers::find_mutant(words[7]) : Mutant::kNone;
  if (!mutant) return usage();
  const Outcome outcome = search(bounds, *mutant, limit, begin);
  print(words.size() == 8 ? words[7] : begin == Begin::kFile ? "- --file" : "-", bounds, outcome);
  print_path(outcome);
  return outcome.violation.empty() ? 0 : 1;
}
