// A long list of blocks of bytes: a datatype of a million blocks at irregular distances.
#pragma once

#include <cstdint>
#include <vector>

#include "pif/client/pif.h"

namespace pif::mpi {

// Constant, so any thread may use it. Offsets count from its lowest byte.
class Blocks {
 public:
  // Neither is empty: the list, and each block of it. Their lowest byte is at offset 0.
  explicit Blocks(std::vector<pif_piece> pieces);

  const std::vector<pif_piece>& pieces() const { return pieces_; }
  std::uint64_t bytes() const { return bytes_; }
  std::int64_t end() const { return end_; }  // behind its highest byte
  // Whether each block begins at or behind the end of the one before.
  bool is_ascending() const { return is_ascending_; }
  // Where byte n lies, in the order of the list. n: less than bytes().
  std::int64_t offset_of(std::uint64_t n) const;

 private:
  std::vector<pif_piece> pieces_;
  std::vector<std::uint64_t> before_;  // bytes before each kBeforeEvery-th block
  std::uint64_t bytes_ = 0;
  std::int64_t end_ = 0;
  bool is_ascending_ = true;
};

}  // namespace pif::mpi
