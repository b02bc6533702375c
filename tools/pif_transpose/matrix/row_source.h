// A worker's own rows of the matrix, in order, stripe by stripe: of each row the bytes of some columns.
//
// A row is verified as a whole, because it is under one checksum, or several rows are. So the first stripe reads whole
// rows; stripes after it read their bytes only, of what is known to be right. Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "pif/matrix/transpose.h"
#include "pif/tool/worker.h"

namespace pif::transpose {

class RowSource {
 public:
  // rows: of the component. input outlives it. Several may read one input at once, each on a thread.
  RowSource(tool::Input& input, Range rows) : input_(input), rows_(rows) {}

  // The number of rows.
  std::uint64_t count() const { return rows_.size(); }
  // From the first row on again, now bytes [bytes.begin, bytes.end) of each.
  void begin_stripe(Range bytes);
  // The next `count` rows, which must be there; in memory until the next call.
  [[nodiscard]] Result<matrix::ConstRows> next(std::uint64_t count);
  // Bytes read since the last call, for Input::count_read().
  std::uint64_t take_bytes_read() { return std::exchange(bytes_read_, 0); }

 private:
  std::size_t piece_bytes() const { return static_cast<std::size_t>(bytes_.end - bytes_.begin); }
  bool reads_whole_rows() const;
  [[nodiscard]] Status read(Row first, std::uint64_t count, std::byte* to);
  [[nodiscard]] Status read_whole(Row first, std::uint64_t count, std::byte* to);
  [[nodiscard]] Status cut_from_whole(Row first, std::uint64_t count, std::byte* to);
  [[nodiscard]] Status read_pieces(Row first, std::uint64_t count, std::byte* to);
  void read_ahead(Row first, std::uint64_t count) const;
  [[nodiscard]] Status map();

  tool::Input& input_;
  const Range rows_;
  std::uint64_t stripes_ = 0;  // begun
  Range bytes_;
  Row next_ = 0;
  std::size_t pitch_ = 0;
  std::vector<std::byte> memory_;
  std::vector<std::byte> whole_;  // rows of which pieces are wanted
  std::uint64_t bytes_read_ = 0;
  bool is_mapped_ = false;  // or cannot be
  tool::Scratch mapped_;    // the component
};

// The matrix's rows, which are records `rows`, that are in this component.
inline Range rows_here(const tool::Input& input, Range rows) {
  return input.is_here() ? input.layout().rows(input.index(), rows) : Range{};
}

}  // namespace pif::transpose
