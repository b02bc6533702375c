// The task, with its inputs opened: as far as it is known before a worker runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "local.h"
#include "sort.h"

namespace pif::sort {

struct Task {
  std::vector<std::string> sources;  // names, by the controller's numbers
  Operand target;
  std::optional<LocalOutput> local;  // if the target is not in the file system
  KeyOptions keys;                   // columns by number
  FileLength file_length;            // of all inputs
  std::vector<std::string> header;   // records of the first one that come first in the output
  std::uint64_t memory = 0;          // 0: all of it is sorted in memory
  std::string path;                  // of the output, or where one is made that never gets a name,
  CreateOptions options;             // and how
};

// Opens all inputs, reads local ones in, and looks whether the output can be. kInvalid: they cannot be sorted so.
[[nodiscard]] Result<Task> prepare(tool::Controller& controller, const SortOptions& wanted);

}  // namespace pif::sort
