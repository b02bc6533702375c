// Files with parity whose part here may be behind, or missing: this LFS lost its disk, or others wrote without it.
// Nobody may take such a component for what the file is: a sequencer would start from an old length, or from 0. And
// files that this LFS lacks though it takes part again: these are durable (rebuild/lacking.h). One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "pif/base/ids.h"

namespace pif::lfs {

class LostFiles {
 public:
  // From now on any file may be one: which ones is not known yet.
  void expect_any() {
    any_ = true;
    files_.clear();
    caught_up_.clear();
  }
  // All of them: no others. ids: ascending. Those that have caught up may be among them.
  void expect(std::vector<std::uint64_t> ids) {
    any_ = false;
    files_ = std::move(ids);
  }
  // A member, which has all other files, makes this one anew (scrub/component_mend.h). No lock says so: for most of
  // that time there is no component to have one.
  void begin_mending(FileId file) { mended_ = file; }
  void end_mending() { mended_.reset(); }
  bool is_mended(FileId file) const { return mended_ == file; }
  // By file: the order of loss of this LFS when it had all of it (proto::FileLack).
  using Lacking = std::map<std::uint64_t, std::uint32_t>;
  // A file is added before that is durable, and taken away afterwards.
  void set_lacking(Lacking lacking) { lacking_ = std::move(lacking); }
  const Lacking& lacking() const { return lacking_; }
  bool lacks(FileId file) const { return lacking_.contains(file.value); }
  bool are_known() const { return !any_; }
  // This one is none any more: what is written to it comes here again.
  void note_caught_up(FileId file) { caught_up_.insert(file.value); }
  bool has_caught_up(FileId file) const { return caught_up_.contains(file.value); }
  bool has(FileId file) const {
    if (has_caught_up(file)) return false;
    return any_ || std::binary_search(files_.begin(), files_.end(), file.value);
  }

 private:
  bool any_ = true;
  std::vector<std::uint64_t> files_;
  std::unordered_set<std::uint64_t> caught_up_;
  std::optional<FileId> mended_;
  Lacking lacking_;
};

}  // namespace pif::lfs
