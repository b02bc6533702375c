// How long a transpose will take, from constants that the workers measure on a sample of their own components, all at
// the same time. Dibble 1990, 5.4.2, eq. (5.12), has the formula of the recursive one, by record; ours goes by byte.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pif/tool/worker.h"
#include "shape.h"

namespace pif::transpose {

// What a worker took, in seconds, by name.
using Phases = std::vector<std::pair<std::string, double>>;

// Seconds for each byte of the matrix.
struct Constants {
  double read = 0;       // and checked                         (k1, k9)
  double transpose = 0;  // in memory, to places far apart      (k10)
  double weave = 0;      // pieces to rows
  double write = 0;      // to a file                           (k3, k4, k8, k11)
  double crowd = 1;      // workers per core: a sample is too short to be interrupted, the work is not
  double threads = 1;    // of a worker, in the direct transpose; a sample has one
};

// A sample of this worker's rows; nothing is measured where it has none.
[[nodiscard]] Result<Constants> measure(tool::Worker& worker, tool::Input& input, const Shape& shape);
// What most of them see.
Constants mean_of(const std::vector<Constants>& all);

struct DirectShape {
  std::uint64_t bytes = 0;  // of the whole matrix
  std::uint32_t sources = 1, destinations = 1;
  std::uint64_t stripes = 1;
};
struct RecursiveShape {
  std::uint64_t bytes = 0;  // of the matrix, padded to a square
  std::uint64_t output_bytes = 0;
  std::uint32_t width = 1;
  std::uint32_t passes = 0;
};

// Seconds, by the names that the workers give to what they do.
Phases predict(const Constants& constants, const DirectShape& shape);
Phases predict(const Constants& constants, const RecursiveShape& shape);
double total_of(const Phases& phases);

inline constexpr const char* kTransposePhase = "read and transpose";
inline constexpr const char* kWritePhase = "put together and write";
inline constexpr const char* kPassPhase = "passes";
inline constexpr const char* kBandPhase = "bands";

}  // namespace pif::transpose
