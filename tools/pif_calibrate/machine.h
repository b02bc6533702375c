// A worker's measurements of its machine, apart from any tool: memory, the disk of its LFS, words and bytes to other
// workers, sorting and merging in memory.
#pragma once

#include <string>
#include <string_view>

#include "pif/tool/calibration.h"
#include "pif/tool/worker.h"

namespace pif::calibrate {

// The worker's side. Its result is for take_measured().
[[nodiscard]] Status measure_machine(tool::Worker& worker);

// Puts into `constants` the findings of most of the workers. kCorrupt names a worker that said what cannot be.
[[nodiscard]] Status take_measured(const std::vector<std::string>& results, tool::Constants& constants);

}  // namespace pif::calibrate
