// The work of pif-search, apart from its command line: workers look through what their LFSs have of a file, and the
// controller prints what they find as it comes, in the file's order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "matcher.h"
#include "pif/tool/tool_main.h"

namespace pif::search {

struct SearchOptions {
  Query query;
  std::vector<std::string> files;  // and folders, with all that is below
  std::string to;                  // a file that what is found goes to; empty: standard output
  bool quiet = false;              // only the exit code; ends with the first match
  bool list = false;               // names of files that match
  bool numbers = false;            // of records, from 1
  bool names = false;              // of files, though there is one only
  bool no_names = false;
  std::uint64_t before = 0, after = 0;  // neighbours of records that match
};

// kDone if something was found, else kNegative. kInvalid: a pattern is none, or a path is no file.
[[nodiscard]] Result<tool::ExitCode> control(tool::Controller& controller, const SearchOptions& options);
[[nodiscard]] Status work(tool::Worker& worker);

}  // namespace pif::search
