// A dictionary for the records of a file. The controller's thread.
#pragma once

#include <cstddef>
#include <string>

#include "pif/client/client.h"

namespace pif::compress {

// At most so many bytes, trained with records from all over the file; empty: it would not help, because records are
// long, few, or nothing alike. Errors: those of reading.
[[nodiscard]] Result<std::string> train_dictionary(File& file, const FileLength& file_length, std::size_t bytes_max);

}  // namespace pif::compress
