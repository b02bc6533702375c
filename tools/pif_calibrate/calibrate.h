// The work of pif-calibrate, apart from its command line.
#pragma once

#include "pif/tool/tool_main.h"

namespace pif::calibrate {

struct CalibrateOptions {
  bool if_needed = false;  // only if there is no calibration, or it is of another machine
};

// Measures, and replaces the file system's calibration.
[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const CalibrateOptions& wanted);
// The present calibration.
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller);

}  // namespace pif::calibrate
