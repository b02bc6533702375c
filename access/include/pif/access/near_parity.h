// Rows of an LFS that is away, rebuilt by this process: from the pages of those who keep their parity, and the rows of
// the others, all through descriptors that LFSs of this machine pass. Rows that are in no page yet, or fail a check,
// are for the keepers (rebuilt_read.h).
//
// open() an LFS and run the requests; then read(). Thread-safety: read() from several threads; all else only on the
// thread of the requests.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "pif/access/checked_read.h"
#include "pif/component/parity.h"

namespace pif::access {

class NearParity {
 public:
  // All outlives it. others: the components of the file, by LFS; readers of those that are needed must be open.
  using Others = std::function<ComponentAccess&(LfsIndex)>;
  NearParity(component::Storage& storage, const FileParts& parts, Others others);

  // Asks those who keep parity of its rows for descriptors, once. Their errors are none: has() says what came.
  void open(Requests& requests, LfsIndex lfs);
  // The LFSs whose readers rows of `lfs` need; it is open.
  std::span<const LfsIndex> needed(LfsIndex lfs) const { return away_.at(lfs).needed; }
  // Whether rows of `lfs` can be rebuilt here.
  bool has(LfsIndex lfs) const;
  // Fixed records. kEndOfFile: some rows are in no page; else as component::rebuild_stretch().
  [[nodiscard]] Status read(const ReadPart& part) const;

 private:
  struct Kept {
    component::ParityShape shape;
    std::vector<LfsIndex> members;
    component::ParityFiles files;
    std::uint64_t pages = 0;
    bool is_here = false;
  };
  // State of an LFS that is away.
  struct Away {
    std::vector<LfsIndex> keepers;
    std::vector<LfsIndex> needed;
  };
  void ask(Requests& requests, LfsIndex keeper);
  [[nodiscard]] Status read_kept(const ReadPart& part, Kept& kept, Range parity_rows) const;

  component::Storage& storage_;
  const FileParts& parts_;
  const Others others_;
  std::map<LfsIndex, Away> away_;          // by LFS, of those that are open
  mutable std::map<LfsIndex, Kept> kept_;  // by keeper; the files are read by position
};

}  // namespace pif::access
