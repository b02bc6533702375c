// Files of which this LFS had something before it got an empty disk, and has not got it back. Nobody may take such a
// component for one that never was: a sequencer would start from length 0. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pif/base/ids.h"

namespace pif::lfs {

class LostFiles {
 public:
  // From now on any file that has no component here may be one: which ones is not known yet.
  void expect_any() {
    any_ = true;
    files_.clear();
  }
  // ids: ascending. Those that are here again may be among them: only files without a component are asked about.
  void expect(std::vector<std::uint64_t> ids) {
    any_ = false;
    files_ = std::move(ids);
  }
  bool has(FileId file) const { return any_ || std::binary_search(files_.begin(), files_.end(), file.value); }

 private:
  bool any_ = true;
  std::vector<std::uint64_t> files_;
};

}  // namespace pif::lfs
