// Writing to descriptors of the local machine.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "pif/base/result.h"

namespace pif {

// All of it, going on after signals and short writes. `failure` begins the error's text: "cannot write to x".
[[nodiscard]] Status write_all(int fd, std::span<const std::byte> bytes, const std::string& failure);

}  // namespace pif
