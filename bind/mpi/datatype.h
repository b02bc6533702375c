// An MPI datatype, decoded: which bytes it has, in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "blocks.h"
#include "outcome.h"
#include "pif/client/pif.h"

namespace pif::mpi {

struct FreePattern {
  void operator()(pif_pattern* pattern) const { pif_pattern_free(pattern); }
};
using PatternPtr = std::unique_ptr<pif_pattern, FreePattern>;

// `count` repetitions, each `stride` bytes behind the one before, of `bytes` bytes or of what `inner` or `blocks` says.
struct Level {
  std::int64_t offset = 0;
  std::uint64_t count = 1;
  std::int64_t stride = 0;
  std::uint64_t bytes = 0;  // of one repetition, those of inner ones too
  std::vector<Level> inner;
  std::shared_ptr<const Blocks> blocks;
  std::uint64_t before = 0;  // bytes of the levels before it in its vector
};

// A datatype, decoded: constant from then on, so any thread may use it. It may be tiled: tile t is the type t * extent
// bytes further on. "Byte n" counts in the order of the type map, through all tiles.
class Datatype;
using DatatypePtr = std::shared_ptr<const Datatype>;

class Datatype {
 public:
  // One byte.
  static DatatypePtr byte();
  // All combiners of MPI-3.1. It is decoded once, and kept as an attribute of the type. MPI_ERR_TYPE: it is none, or
  // one that cannot be looked into.
  static Outcome decode(MPI_Datatype type, DatatypePtr* out);
  // `count` of them, one extent apart, as one type.
  static DatatypePtr repeated(const Datatype& one, std::uint64_t count);

  std::uint64_t bytes() const { return bytes_; }
  std::int64_t extent() const { return extent_; }
  std::int64_t begin() const { return begin_; }  // of its lowest byte
  std::int64_t end() const { return end_; }      // behind its highest byte
  // Whether bytes `from` to `from + count` are one range, in order. count is not 0.
  bool is_range(std::uint64_t from, std::uint64_t count) const;
  // Whether byte n + 1 lies behind byte n for each n, through all tiles.
  bool is_ascending() const { return is_ascending_; }
  // Where byte n lies. bytes() is not 0.
  std::int64_t offset_of(std::uint64_t n) const;
  // Whether the places of the first n bytes are numbers of 62 bits. Ask before offset_of(n - 1).
  bool reaches(std::uint64_t n) const;
  // How many bytes lie before this offset, through all tiles. It is ascending, and bytes() is not 0.
  std::uint64_t bytes_before(std::int64_t offset) const;
  // All tiles, for pif.h; the byte at begin() is at its offset 0. It was compiled once. NULL: memory was out, or there
  // are no bytes.
  const pif_pattern* pattern() const { return pattern_.get(); }

 private:
  Datatype(std::vector<Level> levels, std::int64_t extent);
  static DatatypePtr make(std::vector<Level> levels, std::int64_t extent);
  PatternPtr compile() const;

  std::vector<Level> levels_;
  std::uint64_t bytes_ = 0;
  std::int64_t extent_ = 0;
  std::int64_t begin_ = 0, end_ = 0;
  bool is_ascending_ = true;
  PatternPtr pattern_;
};

// Adds `count` repetitions of `what` to `levels`, each `stride` bytes behind the one before, from `offset` on. What
// can be said in fewer levels is.
void append_repeated(std::vector<Level>& levels, const std::vector<Level>& what, std::int64_t offset,
                     std::uint64_t count, std::int64_t stride);

}  // namespace pif::mpi
