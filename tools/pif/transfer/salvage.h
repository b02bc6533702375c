// Files of which rows are gone, read with --stale: all that can be read of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pif/client/client.h"

namespace pif::cli {

struct Salvaged {
  std::uint64_t bytes = 0;                // that were written
  std::uint64_t missing = 0;              // records that could not be read
  std::vector<RecordNumber> missing_are;  // the first of them
  Error why{};                            // the first could not be read

  // The text of it for a person. of: records that were asked for.
  std::string text(const std::string& path, std::uint64_t of, bool is_fixed) const;
};

// Writes these records to `fd`, in order. As many zero bytes stand for a record of fixed length that cannot be read, so
// that all others are where they were; of variable ones it is left out. Errors: those of `fd`, and what would end all
// that comes next, too.
[[nodiscard]] Result<Salvaged> salvage(File& file, Range records, int fd, const std::string& name);

}  // namespace pif::cli
