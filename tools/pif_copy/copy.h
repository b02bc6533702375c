// The work of pif-copy, apart from its command line.
#pragma once

#include <string>

#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace pif::copy {

// The user's options.
struct CopyOptions : tool::OutputOptions {
  std::string source;
  std::string target;
};

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const CopyOptions& wanted);
[[nodiscard]] Status work(tool::Worker& worker);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, const CopyOptions& wanted);

}  // namespace pif::copy
