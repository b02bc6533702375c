// How long a transpose will take, from this file system's calibration. Dibble 1990, 5.4.2, eq. (5.12), has the formula
// of the recursive one, by record; ours goes by byte. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pif/tool/prediction.h"

namespace pif::transpose {

// Times of a worker, in seconds, by name.
using Phases = std::vector<std::pair<std::string, double>>;

struct DirectShape {
  std::uint64_t bytes = 0;  // of the whole matrix
  std::uint32_t sources = 1, destinations = 1;
  std::uint64_t stripes = 1;
  std::uint64_t window_bytes = 0;  // of all together
  unsigned threads = 0;            // on each machine; 0: as many as it has cores
};
struct RecursiveShape {
  std::uint64_t bytes = 0;  // of the matrix, padded to a square
  std::uint64_t output_bytes = 0;
  std::uint32_t width = 1;
  std::uint32_t passes = 0;  // 0: there is one band
};

// The work of the workers, by the names that they give to it. Input is taken to be in the page cache.
tool::Prediction predict(const tool::Calibration& calibration, const DirectShape& shape);
tool::Prediction predict(const tool::Calibration& calibration, const RecursiveShape& shape);

inline constexpr const char* kTransposePhase = "read and transpose";
inline constexpr const char* kWritePhase = "put together and write";
inline constexpr const char* kPassPhase = "passes";
inline constexpr const char* kBandPhase = "bands";

}  // namespace pif::transpose
