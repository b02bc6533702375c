// An MPI datatype, decoded: which bytes it has, in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "outcome.h"
#include "pif/client/pif.h"

namespace pif::mpi {

struct FreePattern {
  void operator()(pif_pattern* pattern) const { pif_pattern_free(pattern); }
};
using PatternPtr = std::unique_ptr<pif_pattern, FreePattern>;

// `count` repetitions, each `stride` bytes behind the one before, of `bytes` bytes or of what `inner` says.
struct Level {
  std::int64_t offset = 0;
  std::uint64_t count = 1;
  std::int64_t stride = 0;
  std::uint64_t bytes = 0;  // of one repetition, those of inner ones too
  std::vector<Level> inner;
  std::uint64_t before = 0;  // bytes of the levels before it in its vector
};

// A datatype, decoded: constant from then on, so any thread may use it. It may be tiled: tile t is the type t * extent
// bytes further on. "Byte n" counts in the order of the type map, through all tiles.
class Datatype {
 public:
  // One byte.
  Datatype();
  // All combiners of MPI-3.1. MPI_ERR_TYPE: it is none, or one that cannot be looked into.
  static Outcome decode(MPI_Datatype type, Datatype* out);
  // `count` of them, one extent apart, as one type from `offset` on.
  static Datatype repeated(const Datatype& one, std::uint64_t count, std::int64_t offset);

  std::uint64_t bytes() const { return bytes_; }
  std::int64_t extent() const { return extent_; }
  std::int64_t begin() const { return begin_; }  // of its lowest byte
  std::int64_t end() const { return end_; }      // behind its highest byte
  // Whether all tiles together are one range of bytes, in order.
  bool is_range() const;
  // Whether byte n + 1 lies behind byte n for each n, through all tiles.
  bool is_ascending() const { return is_ascending_; }
  // Where byte n lies. bytes() is not 0.
  std::int64_t offset_of(std::uint64_t n) const;
  // Whether the places of the first n bytes are numbers of 62 bits. Ask before offset_of(n - 1).
  bool reaches(std::uint64_t n) const;
  // How many bytes lie before this offset, through all tiles. It is ascending, and bytes() is not 0.
  std::uint64_t bytes_before(std::int64_t offset) const;
  // The pieces of `bytes` bytes from byte `from` on, in order, if they are few of an irregular type's many; otherwise
  // none. bytes() is not 0.
  std::vector<pif_piece> few_pieces(std::uint64_t from, std::uint64_t bytes) const;
  // For pif.h; NULL: memory is out, or there are no bytes.
  PatternPtr pattern() const;

 private:
  void measure();

  std::vector<Level> levels_;
  std::uint64_t bytes_ = 0;
  std::int64_t extent_ = 0;
  std::int64_t begin_ = 0, end_ = 0;
  bool is_ascending_ = true;
};

// Adds `count` repetitions of `what` to `levels`, each `stride` bytes behind the one before, from `offset` on. What
// can be said in fewer levels is.
void append_repeated(std::vector<Level>& levels, const std::vector<Level>& what, std::int64_t offset,
                     std::uint64_t count, std::int64_t stride);

}  // namespace pif::mpi
