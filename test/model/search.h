// Breadth first through all states of a model, so that what is found first is a shortest way to it.
//
// A model gives a class Steps:
//   State          trivially copyable bytes without padding: equal states have equal bytes
//   expand(state)  all that can happen next, valid until the next call: each a label with to_string(), the state after
//                  it, and what was wrong in the step itself, or null
//   check(state)   what is wrong with a state, or null
// and, if it shall be shown that whatever is begun can end:
//   is_end(state)  whether nothing is left to do
//   and in each successor `accident`: whether the step is one that need not happen.
// A state from which no end is reached without accidents is a violation, too.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <xxhash.h>

namespace pif::model {

struct Outcome {
  std::uint64_t states = 0;
  std::uint64_t depth = 0;
  bool complete = false;  // else the limit was reached, or a violation
  std::string violation;  // empty: none
  std::vector<std::string> path;
  double seconds = 0;
};

struct Fingerprint {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Fingerprint&) const = default;
};

template <typename State>
Fingerprint fingerprint(const State& state) {
  const XXH128_hash_t hash = XXH3_128bits(&state, sizeof state);
  return {hash.low64, hash.high64};
}

// Fingerprints of all states, in the order in which they were found, each with the one it was found from.
// 128 bits: that two of 10^8 states share one has a chance below 10^-22.
class Seen {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // The state's number, and whether it is new.
  std::pair<std::uint32_t, bool> insert(const Fingerprint& key, std::uint32_t parent) {
    if (keys_.size() * 2 >= table_.size()) grow();
    std::uint32_t& place = table_[find(key)];
    if (place != kNone) return {place, false};
    place = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(key);
    parents_.push_back(parent);
    return {place, true};
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
template <typename State>
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

// Which states can reach an end.
class Ends {
 public:
  void state(bool is_end) { reaches_.push_back(is_end ? 1 : 0); }
  void step(std::uint32_t from, std::uint32_t to) {
    if (from != to) steps_.push_back({from, to});
  }
  // The number of the first state that reaches none, or kNone.
  std::uint32_t first_stuck() {
    std::vector<std::uint32_t> begin(reaches_.size() + 1, 0), before(steps_.size());
    for (const auto& [from, to] : steps_) ++begin[to + 1];
    for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    std::vector<std::uint32_t> place(begin.begin(), begin.end() - 1), work;
    for (const auto& [from, to] : steps_) before[place[to]++] = from;
    for (std::uint32_t i = 0; i < reaches_.size(); ++i)
      if (reaches_[i] != 0) work.push_back(i);
    while (!work.empty()) {
      const std::uint32_t state = work.back();
      work.pop_back();
      for (std::uint32_t i = begin[state]; i < begin[state + 1]; ++i) {
        if (reaches_[before[i]] != 0) continue;
        reaches_[before[i]] = 1;
        work.push_back(before[i]);
      }
    }
    const auto stuck = std::find(reaches_.begin(), reaches_.end(), std::uint8_t{0});
    return stuck == reaches_.end() ? Seen::kNone : static_cast<std::uint32_t>(stuck - reaches_.begin());
  }

 private:
  std::vector<std::uint8_t> reaches_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> steps_;
};

template <typename Steps>
class Search {
 public:
  using State = typename Steps::State;
  static constexpr bool kHasEnds = requires(const Steps& steps, const State& state) { steps.is_end(state); };

  // With `ends`, the steps are kept until the search is over: 8 bytes each.
  Search(Steps steps, const State& first, std::uint64_t states_max, bool ends = kHasEnds)
      : steps_(std::move(steps)), first_(first), states_max_(states_max), with_ends_(ends && kHasEnds) {}

  Outcome run() {
    const auto started = std::chrono::steady_clock::now();
    Level<State> level;
    add(first_, Seen::kNone, level);
    while (level.end() != 0 && goes_on()) {
      next_.clear();
      for (std::size_t at = 0; at != level.end() && goes_on();) {
        const auto [state, number] = level.pop(at);
        visit(state, number);
      }
      std::swap(level, next_);
      ++outcome_.depth;
    }
    outcome_.states = seen_.size();
    const bool all = level.end() == 0 && outcome_.violation.empty();
    if (all && with_ends_) look_for_stuck();
    outcome_.complete = all && outcome_.violation.empty();
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] bool goes_on() const { return outcome_.violation.empty() && seen_.size() < states_max_; }

  // The state's number, and whether it is new.
  std::pair<std::uint32_t, bool> add(const State& state, std::uint32_t parent, Level<State>& level) {
    const auto inserted = seen_.insert(fingerprint(state), parent);
    if (!inserted.second) return inserted;
    level.push(state, inserted.first);
    if constexpr (kHasEnds)
      if (with_ends_) ends_.state(steps_.is_end(state));
    return inserted;
  }

  void visit(const State& state, std::uint32_t number) {
    for (const auto& next : steps_.expand(state)) {
      if (next.violation != nullptr) return report(next.label.to_string(), next.violation, number);
      const auto [place, is_new] = add(next.state, number, next_);
      if constexpr (kHasEnds)
        if (with_ends_ && !next.accident) ends_.step(number, place);
      if (!is_new) continue;
      if (const char* violation = steps_.check(next.state)) return report(next.label.to_string(), violation, number);
    }
  }

  void look_for_stuck() {
    const std::uint32_t stuck = ends_.first_stuck();
    if (stuck == Seen::kNone) return;
    outcome_.violation = "stuck: what was begun cannot end";
    outcome_.path = labels(seen_.chain(stuck));
  }

  void report(const std::string& last, const char* violation, std::uint32_t number) {
    outcome_.violation = violation;
    outcome_.path = labels(seen_.chain(number));
    outcome_.path.push_back(last);
  }

  // The way along `chain`, by going it again.
  std::vector<std::string> labels(std::span<const Fingerprint> chain) {
    std::vector<std::string> out;
    State state = first_;
    for (const Fingerprint& key : chain.subspan(1)) {
      for (const auto& next : steps_.expand(state)) {
        if (fingerprint(next.state) != key) continue;
        out.push_back(next.label.to_string());
        state = State(next.state);
        break;
      }
    }
    return out;
  }

  Steps steps_;
  State first_;
  std::uint64_t states_max_;
  bool with_ends_;
  Seen seen_;
  Ends ends_;
  Level<State> next_;
  Outcome outcome_;
};

}  // namespace pif::model
