// Datatypes of MPI as patterns: which bytes, and in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "mpi_file_api.h"
#include "outcome.h"

namespace pif::mpi {

// `count` repetitions, `stride` bytes apart, of `bytes` bytes or of what is inside. The first is `offset` bytes behind
// the enclosing level.
struct Level {
  std::int64_t offset = 0;
  std::uint64_t count = 1;
  std::int64_t stride = 0;
  std::uint64_t bytes = 0;
  std::vector<Level> inner = {};
};

struct Run {
  std::int64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A datatype, decoded. Never changes.
class Datatype {
 public:
  Datatype(std::vector<Level> levels, std::int64_t extent);

  std::uint64_t bytes() const { return bytes_; }     // of one item
  std::int64_t extent() const { return extent_; }    // from one item to the next
  std::int64_t lowest() const { return lowest_; }    // offset of its lowest byte
  std::int64_t highest() const { return highest_; }  // end of its highest byte
  // Whether no byte comes twice, and each comes behind those before it, in all items one after another.
  bool is_rising() const { return is_rising_; }
  // The bytes of one item, if they follow one another.
  const std::optional<Run>& run() const { return run_; }
  // Whether the bytes of all items follow one another.
  bool is_dense() const { return run_ && static_cast<std::int64_t>(bytes_) == extent_; }
  // How many bytes of items, one after another without end, are in front of byte `limit`. It is rising.
  std::uint64_t bytes_before(std::int64_t limit) const;

  // Its pattern, tiled by the extent. from_lowest: offsets count from the lowest byte. Valid as long as this object.
  const pif_pattern* pattern() const { return pattern_.get(); }
  const pif_pattern* pattern_from_lowest() const { return from_lowest_.get(); }

 private:
  struct Free {
    void operator()(pif_pattern* pattern) const { pif_pattern_free(pattern); }
  };
  std::vector<Level> levels_;
  std::int64_t extent_ = 0, lowest_ = 0, highest_ = 0;
  std::uint64_t bytes_ = 0;
  bool is_rising_ = true;
  std::optional<Run> run_;
  std::unique_ptr<pif_pattern, Free> pattern_, from_lowest_;
};

// Decoded once for each datatype, and kept as an attribute of it. MPI_ERR_TYPE: none, or one that no pattern has.
Outcome decode(MPI_Datatype type, std::shared_ptr<const Datatype>& decoded);

}  // namespace pif::mpi
