// Values of any length between workers in one step, one from each to each, and what all gave on its way along a tree.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pif/base/assert.h"
#include "pif/tool/channel.h"

namespace pif::tool {

// Workers in a tree, each with up to kFanOut below it, so that no worker has to hear or tell all. Pure.
class Tree {
 public:
  static constexpr std::uint32_t kFanOut = 8;
  // rank: below width.
  Tree(std::uint32_t rank, std::uint32_t width) : rank_(rank), width_(width) {
    PIF_ASSERT(rank_ < width_, rank_, width_);
  }
  std::optional<std::uint32_t> parent() const {
    return rank_ == 0 ? std::nullopt : std::optional<std::uint32_t>((rank_ - 1) / kFanOut);
  }
  std::vector<std::uint32_t> neighbours() const {
    std::vector<std::uint32_t> ranks = children();
    if (parent()) ranks.push_back(*parent());
    return ranks;
  }
  std::vector<std::uint32_t> children() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint64_t rank = std::uint64_t{rank_} * kFanOut + 1; ranks.size() < kFanOut && rank < width_; ++rank)
      ranks.push_back(static_cast<std::uint32_t>(rank));
    return ranks;
  }
  // Whether that worker is this one, or below it.
  bool has(std::uint32_t rank) const {
    while (rank > rank_) rank = (rank - 1) / kFanOut;
    return rank == rank_;
  }
  std::uint32_t size() const {
    std::uint32_t count = 0;
    for (std::uint32_t rank = rank_; rank < width_; ++rank) count += has(rank) ? 1 : 0;
    return count;
  }

 private:
  std::uint32_t rank_;
  std::uint32_t width_;
};

class ValueStep {
 public:
  // Begins a step of the team, which outlives it. senders: ranks of those that send something to this worker.
  ValueStep(Team& team, Duration patience, std::vector<std::uint32_t> senders);
  [[nodiscard]] Status send(std::uint32_t to, std::string_view value);
  // The value that worker sends, when all of it is there.
  Result<std::string> receive(std::uint32_t from);
  // Returns when nothing waits to be sent.
  [[nodiscard]] Status finish();

 private:
  struct Part {
    std::uint64_t size = 0;  // of the value, in all
    static auto members(auto& self) { return std::tie(self.size); }
  };
  struct Value {
    std::string bytes;
    std::optional<std::uint64_t> size;
    bool is_whole() const { return size == bytes.size(); }
  };
  [[nodiscard]] Status take(const Channel<Part>::Item& item);

  std::vector<std::uint32_t> senders_;
  Talk talk_;
  std::map<std::uint32_t, Value> values_;  // by rank
  Channel<Part> parts_;
};

// Values by rank, in one text.
void append_value(std::string& list, std::uint32_t rank, std::string_view value);
// kInvalid unless it has one of every worker that the tree has, and no other. The others' places stay empty.
[[nodiscard]] Result<std::vector<std::string>> unpack_values(std::string_view list, const Tree& tree,
                                                             std::uint32_t width);

}  // namespace pif::tool
