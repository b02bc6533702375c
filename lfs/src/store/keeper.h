// An LFS keeps parity, in one file, of the rows of B - 1 LFSs of the companion bevy: its members. Pure; any thread.
#pragma once

#include "pif/component/component.h"
#include "pif/component/parity.h"
#include "pif/parity/layout.h"

namespace pif::lfs {

struct Keeper {
  parity::Layout layout;
  LfsIndex index = 0;                     // the keeper
  parity::Layout::ParityMembers members;  // by rising LFS
  component::ParityShape shape;           // the same members

  // layout: with parity. index: below its width.
  static Keeper of(const component::Shape& shape, const parity::Layout& layout, LfsIndex index);

  std::size_t size() const { return members.lfs.size(); }
  const Format& format() const { return shape.format; }
  // Records that are whole, whatever is appended: all but a short last one.
  std::uint64_t whole_records(const FileLength& file_length) const;
  // Pages of full groups of whole records; and parity rows that have any record.
  std::uint64_t pages(const FileLength& file_length) const;
  std::uint64_t parity_rows(const FileLength& file_length) const {
    return layout.parity_rows(index, file_length.records);
  }
  // Parity rows in which that member has one of its `rows`.
  Range parity_rows_of(std::size_t member, Range rows) const;
  // Rows of a member that hold records of `records`.
  Range rows_of(std::size_t member, Range records) const { return layout.rows(members.lfs[member], records); }
  // Parity rows from the first to the last that have any of these records; and pages that have none but these.
  Range touched(Range records) const;
  Range pages_inside(Range records) const;
  // The record in a member's row of a parity row.
  RecordNumber record(std::size_t member, std::uint64_t parity_row) const {
    return layout.record_at({members.lfs[member], shape.row_of(member, parity_row)});
  }
  // Bytes of the parity of a file; about.
  std::uint64_t bytes(const FileLength& file_length) const;
};

// Bytes of one row, about, as rows of a file of this length are; at least 1. Whatever somebody says that the length is,
// no more than a record can have: what is computed with it stays far below 2^64.
std::uint64_t row_bytes_of(const Format& format, const FileLength& file_length);

// `range` without what is outside `of`.
inline Range cut(Range range, Range of) {
  const Range out{std::max(range.begin, of.begin), std::min(range.end, of.end)};
  return out.empty() ? Range{range.begin, range.begin} : out;
}

}  // namespace pif::lfs
