#include "matrix/cost.h"

#include <algorithm>

namespace pif::transpose {

// With several stripes the first one reads whole rows, and those after it what is theirs.
tool::Prediction predict(const tool::Calibration& calibration, const DirectShape& shape) {
  const tool::Constants& c = calibration.constants;
  const double bytes = static_cast<double>(shape.bytes), all = calibration.hardware.cores;
  const auto busy = [&](std::uint32_t workers) {
    const double threads = shape.threads == 0 ? all : std::max(shape.threads, workers);
    return std::min(all, std::max<double>(workers, threads));
  };
  const double reads = shape.stripes > 1 ? 2 : 1;
  tool::Prediction prediction;
  prediction.add(kTransposePhase,
                 {{"turn_byte", bytes * c.turn_byte / busy(shape.sources)},
                  {"cached_read_byte", (reads - 1) * bytes * c.cached_read_byte / busy(shape.sources)}});
  prediction.add(kWritePhase, {{"weave_byte", bytes * c.weave_byte / busy(shape.destinations)}});
  prediction.writing = prediction.phases.back().seconds();
  const double windows = static_cast<double>(shape.window_bytes);
  prediction.add(tool::kStartPhase,
                 {{"direct_fixed", c.direct_fixed},
                  {"window_byte", windows * c.window_byte / std::min<double>(all, shape.destinations)}});
  return prediction;
}

// A pass moves everything twice: into two parts, and together again. (k1 to k8; k12, a barrier, takes no time beside
// it.)
tool::Prediction predict(const tool::Calibration& calibration, const RecursiveShape& shape) {
  const tool::Constants& c = calibration.constants;
  const double cores = std::min<double>(calibration.hardware.cores, std::max(shape.width, 1U));
  const double bytes = static_cast<double>(shape.bytes), out = static_cast<double>(shape.output_bytes);
  tool::Prediction prediction;
  tool::Terms passes = {{"load_byte", bytes * c.load_byte / cores}};
  if (shape.passes > 0) {
    passes.emplace_back("parts_byte", bytes * c.parts_byte / cores);
    passes.emplace_back("pass_half_byte", shape.passes * bytes * c.pass_half_byte / cores);
  }
  prediction.add(kPassPhase, std::move(passes));
  if (shape.passes == 0) {
    prediction.add(kBandPhase, {{"band_fixed", c.band_fixed}, {"band_byte", out * c.band_byte / cores}});
  } else {
    prediction.add(kBandPhase, {{"band_fixed", c.band_fixed}, {"small_band_byte", out * c.small_band_byte / cores}});
  }
  prediction.writing = prediction.phases.back().seconds();
  return prediction;
}

}  // namespace pif::transpose
