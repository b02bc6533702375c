// The work of pif-count, apart from its command line: each worker counts what its LFS has of a file, and the controller
// puts the counts together as the bytes follow one another in the file.
#pragma once

#include <string>

#include "pif/tool/tool_main.h"

namespace pif::counts {

// The user's options.
struct CountOptions {
  std::string path;
  bool longest = false;  // the longest line, too
};

// Prints lines, words and, if it is asked for, the longest line, which are the report's results, too. kUnsupported: the
// records are no lines, and there are so many that workers could not tell of each how it begins and ends.
[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const CountOptions& options);
[[nodiscard]] Status work(tool::Worker& worker);

}  // namespace pif::counts
