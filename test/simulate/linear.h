// Whether a history of concurrent operations could have happened one after another (Wing and Gong 1993, with Lowe's
// memory of what was tried, 2017). For short histories: the effort grows with how many operations overlap.
//
// Model: { using State (copyable, comparable); using Op (has begin, end: Time; end kNever if nobody knows
// whether it happened: then it may have, at any later time, or never); static bool apply(State&, const Op&): whether
// the operation can have its result in this state, and what becomes of the state; static std::uint64_t hash(const
// State&) }.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "pif/base/clock.h"

namespace pif::simulate {

enum class Verdict : std::uint8_t { kLinearizable, kNot, kTooHard };

template <typename Model>
class Linearizer {
 public:
  using Op = typename Model::Op;
  using State = typename Model::State;

  explicit Linearizer(std::vector<Op> ops, std::size_t tries_max = 200'000)
      : ops_(std::move(ops)), tries_left_(tries_max) {
    std::stable_sort(ops_.begin(), ops_.end(), [](const Op& a, const Op& b) { return a.begin < b.begin; });
    done_.resize(ops_.size());
    for (const Op& op : ops_) must_ += op.end != kNever ? 1 : 0;
  }

  Verdict check(const State& initial) {
    if (search(initial)) return Verdict::kLinearizable;
    return tries_left_ == 0 ? Verdict::kTooHard : Verdict::kNot;
  }
  // After kNot: the first operation that no attempt got past, by begin.
  const Op& stuck_at() const { return ops_[std::min(furthest_, ops_.size() - 1)]; }

 private:
  bool search(const State& state) {
    const std::size_t before = order_.size();
    take_idle(state);
    if (must_ == 0) return true;
    if (tries_left_ > 0 && tried_.insert(key_of(state)).second) {
      --tries_left_;
      if (branch(state, true) || branch(state, false)) return true;
    }
    while (order_.size() > before) put_back();
    return false;
  }

  // What can happen now and changes nothing: no harm in letting it happen first.
  void take_idle(const State& state) {
    for (bool again = true; again;) {
      again = false;
      const Time first_end = earliest_end();
      for (std::size_t i = 0; i < ops_.size() && ops_[i].begin <= first_end; ++i) {
        if (done_[i] || ops_[i].end == kNever) continue;
        State next = state;
        if (!Model::apply(next, ops_[i]) || !(next == state)) continue;
        take(i);
        again = true;
      }
    }
    furthest_ = std::max(furthest_, first_open());
  }

  // Those whose end is known first: the others need not happen at all.
  bool branch(const State& state, bool known) {
    const Time first_end = earliest_end();
    for (std::size_t i = 0; i < ops_.size() && ops_[i].begin <= first_end; ++i) {
      if (done_[i] || (ops_[i].end != kNever) != known) continue;
      State next = state;
      if (!Model::apply(next, ops_[i]) || next == state) continue;
      take(i);
      if (search(next)) return true;
      put_back();
    }
    return false;
  }

  void take(std::size_t i) {
    done_[i] = true;
    must_ -= ops_[i].end != kNever ? 1 : 0;
    order_.push_back(i);
  }
  void put_back() {
    const std::size_t i = order_.back();
    order_.pop_back();
    done_[i] = false;
    must_ += ops_[i].end != kNever ? 1 : 0;
  }

  std::size_t first_open() const {
    std::size_t i = 0;
    while (i < ops_.size() && (done_[i] || ops_[i].end == kNever)) ++i;
    return i;
  }

  Time earliest_end() const {
    Time out = kNever;
    for (std::size_t i = 0; i < ops_.size() && ops_[i].begin <= out; ++i)
      if (!done_[i]) out = std::min(out, ops_[i].end);
    return out;
  }

  std::uint64_t key_of(const State& state) const {
    std::uint64_t key = Model::hash(state);
    for (std::size_t i = 0; i < done_.size(); ++i) {
      if (done_[i]) key = (key ^ (i + 1)) * 0x9e3779b97f4a7c15;
      key ^= key >> 29;
    }
    return key;
  }

  std::vector<Op> ops_;
  std::vector<bool> done_;
  std::vector<std::size_t> order_;  // in which they were taken
  std::size_t must_ = 0;            // operations with a known end that are not done
  std::size_t furthest_ = 0;
  std::size_t tries_left_;
  std::unordered_set<std::uint64_t> tried_;
};

}  // namespace pif::simulate
