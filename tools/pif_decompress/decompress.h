// The work of pif-decompress, apart from its command line.
#pragma once

#include <string>

#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace pif::decompress {

// The user's options.
struct DecompressOptions : tool::OutputOptions {  // no_clobber alone: the layout is the source's
  std::string source, target;
  unsigned threads = 0;
};

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const DecompressOptions& wanted);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, const DecompressOptions& wanted);
[[nodiscard]] Status work(tool::Worker& worker);

}  // namespace pif::decompress
