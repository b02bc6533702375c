// The layout of a file over its LFSs, with or without parity. Dibble 1990, sections 2.3 and 4.1.1 (equations 4.2 to
// 4.8; the printed bound of t in 4.5-4.7 is one too high, and 4.4 simplifies to i = (c - r mod B) mod (B + 1)).
//
// Without bevies this is Placement. With bevies the p LFSs are cut into an even number m of consecutive bevies; bevies
// a and a + m/2 are companions and have the same size B >= 2. The thesis has one array of cells for a bevy, in which
// cell (r, c) is a parity record iff c = r mod B; it protects data of the companion bevy. Stored rows are dense: row q
// of an LFS is its q-th data cell, and its parity row j is its j-th parity cell, so a block of B cell rows is B - 1
// rows and one parity row. A cell's row is for pictures only. The guarantees of placement, and the
// claims of the thesis that it does not keep: docs/ARCHITECTURE.md "Placement". Pure; values; any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pif/base/ids.h"
#include "pif/base/placement.h"
#include "pif/base/result.h"

namespace pif::parity {

class Layout {
 public:
  // bevies: sizes in order; empty: no parity. kInvalid, with the rule that is broken, if width is 0 or over kWidthMax,
  // the sizes do not add up to width, their number is odd, one is below 2, or companions differ.
  [[nodiscard]] static Result<Layout> make(std::uint32_t width, std::vector<std::uint32_t> bevies = {});

  // LFSs of the file; and the bevies' sizes in order, as make() got them, none without parity. The span is valid as
  // long as this object.
  std::uint32_t width() const { return plain_.width(); }
  bool has_parity() const { return !bevies_.empty(); }
  std::span<const std::uint32_t> bevies() const { return sizes_; }

  // Consecutive rows of an LFS hold records width() apart. True without bevies; with them distances vary.
  bool is_even() const { return bevies_.empty(); }

  // Where record n is (eq. 4.8), and which record is there: inverse to one another. Here and below cell.lfs and lfs are
  // below width().
  Cell locate(RecordNumber n) const;
  RecordNumber record_at(Cell cell) const;
  // The rows of `lfs` among the first `records` records: exactly so many.
  std::uint64_t rows(LfsIndex lfs, std::uint64_t records) const;
  // The rows of `lfs` that hold records of `range`: contiguous. Empty ranges come back as {x, x}.
  Range rows(LfsIndex lfs, Range range) const {
    return {rows(lfs, range.begin), rows(lfs, range.empty() ? range.begin : range.end)};
  }

  // ---- parity: only with bevies ---- //

  // The LFSs whose rows are in a keeper's parity, by rising LFS, and where: parity row j has row
  // j * lfs.size() + offsets[i] of lfs[i].
  struct ParityMembers {
    std::vector<LfsIndex> lfs;           // B - 1 of the companion bevy
    std::vector<std::uint32_t> offsets;  // each below B - 1
  };

  // Which LFS keeps the parity of a data row, in the companion bevy, and its parity row (eq. 4.2 to 4.4).
  Cell parity_of(Cell data) const;
  // The B - 1 rows of a parity row, by rising LFS (eq. 4.5 to 4.7). parity: {who keeps it, parity row}.
  std::vector<Cell> members_of(Cell parity) const;
  ParityMembers members(LfsIndex keeper) const;
  // The B - 1 LFSs that keep the parity of an LFS's rows: of row q that of index q mod (B - 1).
  std::vector<LfsIndex> keepers(LfsIndex lfs) const;
  // So many first parity rows of `keeper` have all their members among the first `whole_records` records; have any
  // member among the first `records`.
  std::uint64_t full_groups(LfsIndex keeper, std::uint64_t whole_records) const;
  std::uint64_t parity_rows(LfsIndex keeper, std::uint64_t records) const;

  // Where figure 4.1 shows a row, and a parity row. The former also without bevies, where it is the row.
  Row cell_row(Cell data) const;
  Row parity_cell_row(LfsIndex keeper, Row parity_row) const;

  // The same records in the same cells; of which nodes the LFSs are, a layout does not know.
  bool operator==(const Layout& other) const { return width() == other.width() && sizes_ == other.sizes_; }

 private:
  struct Bevy {
    LfsIndex first;      // its first LFS
    std::uint32_t size;  // B
    std::uint32_t companion;
  };
  explicit Layout(std::uint32_t width) : plain_(width) {}
  const Bevy& bevy_of(LfsIndex lfs) const { return bevies_[bevy_of_lfs_[lfs]]; }

  Placement plain_;
  std::vector<std::uint32_t> sizes_;
  std::vector<Bevy> bevies_;
  std::vector<std::uint32_t> bevy_of_lfs_;
};

}  // namespace pif::parity
