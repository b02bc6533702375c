// Tools that a command runs for its user: programs of their own, with workers beside the data.
#pragma once

#include <string>
#include <vector>

#include "command/program.h"

namespace pif::cli {

// Runs `tool`, "pif-copy", with these arguments on the file system that `program` is connected to, and with its common
// options. Returns the report that --json prints. The tool's own error; kInternal if it says none; kCancelled after an
// interrupt that was caught.
[[nodiscard]] Result<Json> run_tool(const Program& program, const std::string& tool,
                                    const std::vector<std::string>& arguments);

}  // namespace pif::cli
