// The layout of a file over its LFSs, with or without parity. Dibble 1990, sections 2.3 and 4.1.1 (equations 4.2 to
// 4.8; the printed bound of t in 4.5-4.7 is one too high, and 4.4 simplifies to i = (c - r mod B) mod (B + 1)).
//
// Without bevies this is Placement. With bevies the p LFSs are cut into an even number m of consecutive bevies; bevies
// a and a + m/2 are companions and have the same size B >= 2. Within a bevy, cell (r, c) is a parity record iff
// c = r mod B; it protects data of the companion bevy. What placement guarantees, and what of the thesis's claims it
// does not: docs/ARCHITECTURE.md "Placement".
// Pure; values; any thread.
#pragma once

#include <cstdint>
#include <optional>
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

  // Where record n is (eq. 4.8); its inverse (nothing for a parity cell). Here and below cell.lfs and lfs are below
  // width().
  Cell locate(RecordNumber n) const;
  std::optional<RecordNumber> record_at(Cell cell) const;

  // Whether the cell holds a parity record, in a file that is long enough: c = r mod B. Never without bevies.
  bool is_parity(Cell cell) const;
  // data: a data cell of a layout with parity. Its parity cell, in the companion bevy (eq. 4.2 to 4.4).
  Cell parity_of(Cell data) const;
  // parity: a parity cell. Its B - 1 data cells, on B - 1 different LFSs of the companion bevy, by rising row (eq. 4.5
  // to 4.7).
  std::vector<Cell> members_of(Cell parity) const;

  // One more than the highest row in which `lfs` has a data record among the first `records` records (0: none).
  // Without bevies also the exact number of its rows.
  std::uint64_t rows(LfsIndex lfs, std::uint64_t records) const;
  // How many data records of the first `records` records `lfs` holds.
  std::uint64_t data_rows(LfsIndex lfs, std::uint64_t records) const;
  // The rows of `lfs` that hold records of `range`; with bevies the stretch may have parity cells in it, and starts and
  // ends with a data cell. Empty ranges come back as {x, x}.
  Range rows(LfsIndex lfs, Range range) const;
  // First data row of `lfs` that is at or after `row`.
  Row next_data_row(LfsIndex lfs, Row row) const;

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
