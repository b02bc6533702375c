// A bounded set of files: beyond the bound the one that was added first is forgotten. One thread.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_set>

#include "pif/base/assert.h"
#include "pif/base/ids.h"

namespace pif::lfs {

class RecentFiles {
 public:
  static constexpr std::size_t kMax = 4096;

  bool contains(FileId file) const { return files_.contains(file.value); }
  void add(FileId file) {
    if (files_.insert(file.value).second) order_.push_back(file.value);
    if (order_.size() > kMax) {
      files_.erase(order_.front());
      order_.pop_front();
    }
    PIF_ASSERT(files_.size() == order_.size() && order_.size() <= kMax, files_.size(), order_.size());
  }
  void erase(FileId file) {
    if (files_.erase(file.value) > 0) order_.remove(file.value);
  }
  void clear() {
    files_.clear();
    order_.clear();
  }

 private:
  std::unordered_set<std::uint64_t> files_;
  std::list<std::uint64_t> order_;
};

}  // namespace pif::lfs
