#include "numbers-model/search.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <span>
#include <string_view>

#include <xxhash.h>

#include "numbers-model/steps.h"

namespace pif::numbers {
namespace {

struct Fingerprint {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Fingerprint&) const = default;
};

Fingerprint fingerprint(const State& state) {
  const XXH128_hash_t hash = XXH3_128bits(&state, sizeof state);
  return {hash.low64, hash.high64};
}

// Fingerprints of all states, in the order in which they were found, each with the one it was found from.
// 128 bits: that two of 10^8 states share one has a chance below 10^-22.
class Seen {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The new state's number, or kNone if it was there.
  std::uint32_t insert(const Fingerprint& key, std::uint32_t parent) {
    if (keys_.size() * 2 >= table_.size()) grow();
    std::uint32_t& place = table_[find(key)];
    if (place != kNone) return kNone;
    place = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(key);
    parents_.push_back(parent);
    return place;
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  // From the first state to `last`.
  [[nodiscard]] std::vector<Fingerprint> chain(std::uint32_t last) const {
    std::vector<Fingerprint> out;
    for (std::uint32_t at = last; at != kNone; at = parents_[at]) out.push_back(keys_[at]);
    std::reverse(out.begin(), out.end());
    return out;
  }

 private:
  [[nodiscard]] std::size_t find(const Fingerprint& key) const {
    std::size_t at = key.low & (table_.size() - 1);
    while (table_[at] != kNone && keys_[table_[at]] != key) at = (at + 1) & (table_.size() - 1);
    return at;
  }
  void grow() {
    table_.assign(std::max<std::size_t>(1024, table_.size() * 2), kNone);
    for (std::uint32_t i = 0; i < keys_.size(); ++i) table_[find(keys_[i])] = i;
  }

  std::vector<Fingerprint> keys_;
  std::vector<std::uint32_t> parents_;
  std::vector<std::uint32_t> table_;  // open addressing; a power of two
};

// States of one depth, each as its nonzero words behind a mask of them: most of a state is zero.
class Level {
 public:
  void push(const State& state, std::uint32_t number) {
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), &state, sizeof state);
    std::uint64_t mask = 0;
    const std::size_t at = data_.size();
    data_.push_back(0);
    data_.push_back(number);
    for (std::size_t i = 0; i < kWords; ++i) {
      if (words[i] == 0) continue;
      mask |= std::uint64_t{1} << i;
      data_.push_back(words[i]);
    }
    data_[at] = mask;
  }
  // The state at `at`, which becomes the place of the next.
  std::pair<State, std::uint32_t> pop(std::size_t& at) const {
    std::array<std::uint64_t, kWords> words{};
    std::uint64_t mask = data_[at++];
    const auto number = static_cast<std::uint32_t>(data_[at++]);
    for (; mask != 0; mask &= mask - 1) words[static_cast<std::size_t>(std::countr_zero(mask))] = data_[at++];
    State state;
    std::memcpy(static_cast<void*>(&state), words.data(), sizeof state);
    return {state, number};
  }
  [[nodiscard]] std::size_t end() const { return data_.size(); }
  void clear() { data_.clear(); }

 private:
  static constexpr std::size_t kWords = (sizeof(State) + 7) / 8;
  static_assert(kWords <= 64);
  std::vector<std::uint64_t> data_;
};

// The first state of a search.
State first_state(Steps& steps, std::size_t lfss, Begin begin) {
  State state = steps.first();
  if (begin == Begin::kEmpty) return state;
  const char* const create = lfss == 1 ? "create at LFS 0: file" : "create at both: file";
  const auto go = [&](std::string_view text, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      const auto& all = steps.expand(state);
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const Successor& next) { return next.label.text == text; });
      if (found != all.end()) state = State(found->state);
    }
  };
  go("server starts", 1);
  go("starts", lfss);
  go("keeps its incarnation", lfss);
  go("is confirmed", lfss);
  go("server serves", 1);
  go(create, 1);
  go("seal", lfss);
  go("commit", 1);
  go("settle", lfss);
  for (std::size_t lfs = 0; lfs < lfss; ++lfs) {
    for (const Successor& next : std::vector<Successor>(steps.expand(state)))
      if (next.label.text == std::string_view("heartbeat") && next.label.lfs == static_cast<int>(lfs))
        state = next.state;
  }
  go("a second passes", 1);
  return state;
}

// The way along `chain`, by going it again.
std::vector<std::string> labels(Steps& steps, State state, std::span<const Fingerprint> chain) {
  std::vector<std::string> out;
  for (const Fingerprint& key : chain.subspan(1)) {
    for (const Successor& next : steps.expand(state)) {
      if (fingerprint(next.state) != key) continue;
      out.push_back(next.label.to_string());
      state = next.state;
      break;
    }
  }
  return out;
}

class Search {
 public:
  Search(const Bounds& bounds, Mutant mutant, std::uint64_t states_max, Begin begin)
      : steps_(bounds, mutant), first_(first_state(steps_, bounds.lfss, begin)), states_max_(states_max) {}

  Outcome run() {
    Level level;
    level.push(first_, seen_.insert(fingerprint(first_), Seen::kNone));
    while (level.end() != 0 && outcome_.violation.empty() && seen_.size() < states_max_) {
      next_.clear();
      for (std::size_t at = 0; at != level.end() && outcome_.violation.empty() && seen_.size() < states_max_;) {
        const auto [state, number] = level.pop(at);
        visit(state, number);
      }
      std::swap(level, next_);
      ++outcome_.depth;
    }
    outcome_.states = seen_.size();
    outcome_.complete = level.end() == 0 && outcome_.violation.empty();
    return std::move(outcome_);
  }

 private:
  void visit(const State& state, std::uint32_t number) {
    for (const Successor& next : steps_.expand(state)) {
      if (next.violation != nullptr) return report(next, next.violation, number);
      const std::uint32_t inserted = seen_.insert(fingerprint(next.state), number);
      if (inserted == Seen::kNone) continue;
      if (const char* violation = steps_.check(next.state)) return report(next, violation, number);
      next_.push(next.state, inserted);
    }
  }

  void report(const Successor& last, const char* violation, std::uint32_t number) {
    outcome_.violation = violation;
    const std::string end = last.label.to_string();
    outcome_.path = labels(steps_, first_, seen_.chain(number));
    outcome_.path.push_back(end);
  }

  Steps steps_;
  State first_;
  std::uint64_t states_max_;
  Seen seen_;
  Level next_;
  Outcome outcome_;
};

}  // namespace

Outcome search(const Bounds& bounds, Mutant mutant, std::uint64_t states_max, Begin begin) {
  const auto started = std::chrono::steady_clock::now();
  Outcome out = Search(bounds, mutant, states_max, begin).run();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return out;
}

}  // namespace pif::numbers
