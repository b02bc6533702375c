// Ranges of keys, one for each worker, with about as many records each: found in a sample of an input. With a Partition
// every worker gets the records of one range, so that what all workers make is in the order of keys.
//
//   PIF_TRY_VALUE(const auto ranges, KeyRanges::sample(worker, team, *input, key_of));
//   const auto owner = [&](auto, auto record) { return ranges.owner(key_of(record)); };
//   PIF_TRY_VALUE(auto mine, Partition::make(worker, team, *input, owner));
//
// Not thread-safe, but for const calls.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/result.h"
#include "pif/tool/component.h"
#include "pif/tool/team.h"
#include "pif/tool/worker.h"

namespace pif::tool {

class KeyRanges {
 public:
  using KeyOf = std::function<std::string_view(std::span<const std::byte> record)>;
  // Called by all workers, a step of the team: some 256 records for each worker are looked at, wherever they lie. Keys
  // are compared as bytes; at most 1 KiB of each counts. Errors: as Input::read() and the team's steps.
  static Result<KeyRanges> sample(Worker& worker, Team& team, const Input& input, const KeyOf& key_of);

  // By rank. Equal keys have one owner.
  std::uint32_t owner(std::string_view key) const;

 private:
  std::vector<std::string> firsts_;  // of the ranges from the second on: the first key of each
};

}  // namespace pif::tool
