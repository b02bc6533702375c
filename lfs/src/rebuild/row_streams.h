// Rows of one component that come back from several keepers of parity. Row q is rebuilt by keeper q mod n, so that each
// keeper gives a stream of every n-th row; together they are written in order. This decides what is asked of whom, and
// holds what has come until it can be written. Pure.
//
// Memory: at most kAheadMax pieces of a stream are asked for, or wait; a piece is of about kBulkBytes (less with many
// streams), or one record.
// Thread-safety: none; assemble() of a batch on any thread.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/net/buffer.h"

namespace pif::lfs {

class RowStreams {
 public:
  // Consecutive rows of one stream, n apart, as one keeper sends them.
  struct Piece {
    std::size_t stream = 0;
    Row first = 0;
    std::uint64_t step = 1;
    std::uint64_t wanted = 0;          // rows; variable records: as many of them as come
    std::uint64_t expected_bytes = 0;  // of a reply
    bool is_complete = false;
    // The rows of one reply. Those of a piece's bodies follow one another.
    struct Body {
      std::uint64_t rows = 0;
      std::uint32_t last_bytes = 0;        // fixed records: of its last row
      std::vector<std::uint32_t> lengths;  // variable records
      net::Buffer buffer;
      std::span<const std::byte> data;  // of the rows
    };
    std::vector<Body> bodies;
    std::uint64_t rows() const;  // that came
    Row next() const { return first + rows() * step; }
    // The count of a Reconstruct: rows of all streams from next() to the last that is wanted.
    std::uint64_t span() const { return (wanted - rows() - 1) * step + 1; }
  };
  using PiecePtr = std::shared_ptr<Piece>;

  // Rows of `first` up to before `end`, whose pieces are complete.
  struct Batch {
    Row first = 0;
    Row end = 0;
    std::vector<std::vector<PiecePtr>> pieces;  // by stream, those that have some of these rows
  };
  struct Rows {
    std::vector<std::byte> bytes;
    std::vector<std::uint32_t> lengths;  // variable records
    std::uint32_t last_bytes = 0;        // fixed records: of the last row
  };

  // rows: of the component; streams: how many keepers, at least one. row_bytes: of a variable row, about. first: rows
  // in front of it are there; at most `rows`.
  RowStreams(const Format& format, std::uint64_t rows, std::size_t streams, std::uint64_t row_bytes, Row first = 0);

  // The next piece to ask for; null: nothing more at present.
  PiecePtr next();
  // A reply to what was asked for piece.next(). kCorrupt: it cannot be one. The piece is complete now, or rows from
  // next() on are still to be asked for.
  [[nodiscard]] Status take(Piece& piece, std::uint64_t rows, net::Buffer body);

  // Takes the rows that can be written now, behind those that were taken before. first == end: there are none.
  Batch take_ready();
  // All rows of the batch, in order.
  static Rows assemble(const Format& format, const Batch& batch);

  bool is_done() const { return written_ == rows_; }
  std::size_t streams() const { return streams_.size(); }

 private:
  static constexpr std::size_t kAheadMax = 2;
  struct Stream {
    Row next = 0;                 // to ask for
    std::deque<PiecePtr> pieces;  // in order; those asked for, and those that wait
  };
  [[nodiscard]] Status take_fixed(Piece::Body& body) const;
  Row first_of(std::size_t index) const;
  // Where the rows of the stream end that have come without a gap.
  Row frontier(const Stream& stream, std::size_t index) const;

  const Format format_;
  const std::uint64_t rows_;
  const std::uint64_t piece_rows_;
  const std::uint64_t row_bytes_;
  std::vector<Stream> streams_;
  Row written_ = 0;  // rows in front of it have left
};

}  // namespace pif::lfs
