// The summary of each key's records: how many, and the moments of some fields. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "moments.h"
#include "pif/base/result.h"
#include "pif/tool/team.h"
#include "pif/tool/worker.h"

namespace pif::summarize {

struct Group {
  std::uint64_t count = 0;
  std::vector<Moments> fields;
};

// So that a key is looked up as it lies in its record.
struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const;
};

class Groups {
 public:
  using All = std::unordered_map<std::string, Group, KeyHash, std::equal_to<>>;

  // fields: of each group.
  explicit Groups(std::size_t fields) : fields_(fields) {}

  // The key's, made if it is new: valid until the next call. kTooLarge: the keys are too many for memory.
  [[nodiscard]] Result<Group*> at(std::string_view key);
  const All& all() const { return groups_; }

  // So many of them, with their counts, the most frequent first; of equally frequent ones the lower key.
  std::vector<std::pair<std::uint64_t, std::string>> most_frequent(std::size_t count) const;

  // By all workers, a talk of the team: each key's group goes to one worker. The groups that are left here are this
  // worker's part of all workers' groups. The same bytes at every run.
  [[nodiscard]] Status exchange(tool::Worker& worker, tool::Team& team);

  // All of them, for messages.
  std::string pack() const;
  // Adds those that pack() made. kInvalid: they are none; kTooLarge: as at().
  [[nodiscard]] Status add_packed(std::string_view packed);

 private:
  void pack_group(std::string& out, const std::string& key, const Group& group) const;

  std::size_t fields_;
  std::uint64_t bytes_ = 0;
  All groups_;
};

}  // namespace pif::summarize
