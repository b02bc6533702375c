// Records of an open file, one after the other: for the controller.
#pragma once

#include <functional>

#include "keys/keys.h"
#include "pif/client/client.h"

namespace pif::sort {

// f(record) for every record of the range, in order, until it says no. Errors: f's, and those of reading.
[[nodiscard]] Status for_each_record(File& file, Range range, const std::function<Result<bool>(Bytes)>& f);

}  // namespace pif::sort
