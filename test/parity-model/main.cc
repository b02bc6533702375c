// pif-parity-model: searches all states of one of the models of the parity protocol within bounds.
//
//   pif-parity-model seal|append SEALED APPENDS CRASHES LOSSES [MUTANT] [--apart] [--safety] [--limit STATES]
//   pif-parity-model --rules     the rules, and what is without each
//   pif-parity-model --mutants   each mutant with small bounds that catch it; all must be caught
//   pif-parity-model --test      the same, and the rules themselves with bounds that are soon searched
//   pif-parity-model --long      the rules with larger bounds
//
// --apart, for `append`: the deputy is another LFS than P.
// --safety leaves out whether what is begun can end, which needs memory for every step.
// Exit code 1: a violation (with a mutant too), a mutant that is not caught, or a rule without one.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "parity-model/model.h"

namespace {

using pif::model::Outcome;
using pif::parity_model::Bounds;
using pif::parity_model::Byte;
using pif::parity_model::Model;
using pif::parity_model::Mutant;
using pif::parity_model::Rule;

constexpr std::uint64_t kStatesMax = 4'000'000'000;
constexpr std::uint64_t kMutantStatesMax = 2'000'000;
const std::array<const Model*, 2> kModels = {&pif::parity_model::kSeal, &pif::parity_model::kAppend};

int usage() {
  std::fputs(
      "usage: pif-parity-model seal|append SEALED APPENDS CRASHES LOSSES [MUTANT] [--apart] [--safety] [--limit "
      "STATES]\n"
      "       pif-parity-model --rules | --mutants | --test | --long\n",
      stderr);
  return 2;
}

std::string text(const Model& model, const Bounds& b) {
  return fmt::format("{} {} {} {} {}{}", model.name, b.sealed, b.appends, b.crashes, b.losses,
                     b.apart ? " --apart" : "");
}

void print(std::string_view name, const Model& model, const Bounds& bounds, const Outcome& outcome) {
  const char* end = outcome.complete ? "complete" : outcome.violation.empty() ? "limit" : outcome.violation.c_str();
  fmt::print("{:28}{}: {} states, depth {}, {:.1f} s: {}\n", name, text(model, bounds), outcome.states, outcome.depth,
             outcome.seconds, end);
  std::fflush(stdout);
}

void print_path(const Outcome& outcome) {
  for (const std::string& step : outcome.path) fmt::print("    {}\n", step);
}

bool run_mutants(const Model& model) {
  bool good = true;
  for (const Mutant& mutant : model.mutants) {
    const Outcome outcome = model.search(mutant.bounds, mutant.id, kMutantStatesMax, true);
    print(mutant.name, model, mutant.bounds, outcome);
    good = good && !outcome.violation.empty();
  }
  return good;
}

bool run(const Model& model, std::span<const Bounds> searches, bool ends) {
  bool good = true;
  for (const Bounds& bounds : searches) {
    const Outcome outcome = model.search(bounds, 0, kStatesMax, ends);
    print("-", model, bounds, outcome);
    print_path(outcome);
    good = good && outcome.complete;
  }
  return good;
}

// Every rule has a mutant, and every mutant is of a rule.
bool rules_have_mutants(const Model& model) {
  const auto of = [](const Rule& rule) { return [&rule](const Mutant& mutant) { return mutant.rule == rule.name; }; };
  std::size_t found = 0;
  for (const Rule& rule : model.rules) {
    const auto count = std::count_if(model.mutants.begin(), model.mutants.end(), of(rule));
    if (count == 0) fmt::print("{}: rule {} has no mutant\n", model.name, rule.name);
    if (count == 0) return false;
    found += static_cast<std::size_t>(count);
  }
  return found == model.mutants.size();
}

void print_rules(const Model& model) {
  for (const Rule& rule : model.rules) {
    fmt::print("{} {}: {}\n", model.name, rule.name, rule.text);
    for (const Mutant& mutant : model.mutants)
      if (mutant.rule == rule.name) fmt::print("    {:28}{}\n", mutant.name, mutant.weakened);
  }
}

int run_all(std::string_view word) {
  bool good = true;
  for (const Model* model : kModels) {
    if (word == "--rules") print_rules(*model);
    if (word == "--long") good = run(*model, model->larger, false) && good;
    if (word == "--test") good = run(*model, model->tested, true) && rules_have_mutants(*model) && good;
    if (word == "--test" || word == "--mutants") good = run_mutants(*model) && good;
  }
  return good ? 0 : 1;
}

template <typename Number>
bool parse(std::string_view word, Number& out, Number max) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc{} && end == word.data() + word.size() && out <= max;
}

struct Options {
  Bounds bounds;
  std::string_view name = "-";
  Byte mutant = 0;
  std::uint64_t limit = kStatesMax;
  bool ends = true;
};

std::optional<Options> parse(const Model& model, std::vector<std::string_view> words) {
  Options out;
  if (const auto at = std::find(words.begin(), words.end(), "--limit"); at != words.end()) {
    if (at + 1 == words.end() || !parse(at[1], out.limit, kStatesMax)) return std::nullopt;
    words.erase(at, at + 2);
  }
  out.ends = std::erase(words, "--safety") == 0;
  out.bounds.apart = std::erase(words, "--apart") != 0;
  if (out.bounds.apart && !model.may_be_apart) return std::nullopt;
  const std::array<std::pair<Byte*, Byte>, 4> fields = {{{&out.bounds.sealed, model.sealed_max},
                                                         {&out.bounds.appends, Byte{4}},
                                                         {&out.bounds.crashes, Byte{3}},
                                                         {&out.bounds.losses, Byte{3}}}};
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (i >= words.size() || !parse(words[i], *fields[i].first, fields[i].second)) return std::nullopt;
  if (words.size() == fields.size()) return out;
  out.name = words[fields.size()];
  const auto mutant =
      std::find_if(model.mutants.begin(), model.mutants.end(), [&](const Mutant& one) { return one.name == out.name; });
  if (mutant == model.mutants.end() || words.size() > fields.size() + 1) return std::nullopt;
  out.mutant = mutant->id;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.empty()) return usage();
  constexpr std::array<std::string_view, 4> kAll = {"--rules", "--mutants", "--test", "--long"};
  if (words.size() == 1 && std::find(kAll.begin(), kAll.end(), words[0]) != kAll.end()) return run_all(words[0]);
  for (const Model* model : kModels) {
    if (words[0] != model->name) continue;
    const auto options = parse(*model, {words.begin() + 1, words.end()});
    if (!options) return usage();
    const Outcome outcome = model->search(options->bounds, options->mutant, options->limit, options->ends);
    print(options->name, *model, options->bounds, outcome);
    print_path(outcome);
    return outcome.violation.empty() ? 0 : 1;
  }
  return usage();
}
