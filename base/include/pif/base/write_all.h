// Writing to descriptors of the local machine.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "pif/base/result.h"

namespace pif {

// All of it, from where `fd` stands, going on after signals and short writes; waits as long as it takes where a
// non-blocking descriptor takes no more. After an error any part may have been written. Errors: code_from_errno().
// `failure` begins their text: "cannot write to x". Any thread.
[[nodiscard]] Status write_all(int fd, std::span<const std::byte> bytes, const std::string& failure);

}  // namespace pif
