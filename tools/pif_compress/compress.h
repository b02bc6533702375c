// The work of pif-compress, apart from its command line.
#pragma once

#include <string>

#include "pif/tool/output_options.h"
#include "pif/tool/tool_main.h"

namespace pif::compress {

// The user's options.
struct CompressOptions : tool::OutputOptions {  // no_clobber alone: the layout is the source's
  std::string source, target;
  int level = 3;
  bool has_chains = false;
  unsigned threads = 0;
};

[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const CompressOptions& wanted);
[[nodiscard]] Result<tool::Plan> explain(tool::Controller& controller, const CompressOptions& wanted);
[[nodiscard]] Status work(tool::Worker& worker);

}  // namespace pif::compress
