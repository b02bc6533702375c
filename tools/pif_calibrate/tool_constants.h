// The constants of the tools' cost formulas: the tools are run on small files, and the formulas are solved for what
// their reports say.
#pragma once

#include <string>

#include "pif/client/client.h"
#include "pif/tool/calibration.h"

namespace pif::calibrate {

// Fills in what pif-copy, pif-sort and pif-transpose take. calibration: has its hardware, and what a worker measures.
// where: the file system's folder on this host. Errors: as the client's; kIo: a tool failed, and what it said.
[[nodiscard]] Status measure_tools(Client& client, const std::string& where, tool::Calibration& calibration);

}  // namespace pif::calibrate
