// A worker's own rows of the matrix, in order, stripe by stripe: of each row the bytes of some columns.
//
// A row is verified as a whole, because it is under one checksum, or several rows are. So the first stripe reads whole
// rows; stripes after it read their bytes only, of what is known to be right. Not thread-safe.
#pragma once

#include <vector>

#include "pif/matrix/transpose.h"
#include "pif/tool/worker.h"

namespace pif::transpose {

class RowSource {
 public:
  // rows: record numbers. worker and input outlive it.
  RowSource(tool::Worker& worker, tool::Input& input, Range rows);

  // Rows of this component among them.
  std::uint64_t count() const { return rows_.size(); }
  // From the first row on again, now bytes [bytes.begin, bytes.end) of each.
  void begin_stripe(Range bytes);
  // The next `count` rows, which must be there; in memory until the next call.
  [[nodiscard]] Result<matrix::ConstRows> next(std::uint64_t count);

 private:
  std::size_t piece_bytes() const { return static_cast<std::size_t>(bytes_.end - bytes_.begin); }
  bool reads_whole_rows() const;
  [[nodiscard]] Status read(Row first, std::uint64_t count, std::byte* to);
  [[nodiscard]] Status read_whole(Row first, std::uint64_t count, std::byte* to);
  [[nodiscard]] Status cut_from_whole(Row first, std::uint64_t count, std::byte* to);
  [[nodiscard]] Status read_pieces(Row first, std::uint64_t count, std::byte* to);
  [[nodiscard]] Status map();

  tool::Worker& worker_;
  tool::Input& input_;
  Range rows_;                 // local ones
  std::uint64_t stripes_ = 0;  // begun
  Range bytes_;
  Row next_ = 0;
  std::size_t pitch_ = 0;
  std::vector<std::byte> memory_;
  tool::RowBatch whole_;
  bool is_mapped_ = false;  // or cannot be
  tool::Scratch mapped_;    // the component
};

}  // namespace pif::transpose
