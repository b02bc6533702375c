// Common parts of commands that take several files: their operands, and what becomes of those that fail.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "names/entries.h"
#include "names/operand_paths.h"
#include "pif/base/typed_path.h"
#include "text/expand.h"

namespace pif::cli {

// For each path what `each` does, a Status; of several, those that fail are passed over. Its error names the path.
template <typename Each>
Status for_each_operand(const std::vector<std::string>& paths, Failures& failures, Each each) {
  for (const auto& path : paths) {
    const Status done = each(path);
    if (done) continue;
    const Error error = at(path, done.error());
    if (paths.size() == 1 || ends_all(error)) return fail(error);
    failures.add(error);
  }
  return {};
}

}  // namespace pif::cli
