// Z85 (ZeroMQ's RFC 32): bytes as text, 5 characters for 4 of them. Any thread. Errors: kUnsupported, where ZeroMQ
// cannot be loaded; kInvalid, for text that is none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "pif/base/result.h"

namespace pif::net {

// bytes: a multiple of 4 of them.
[[nodiscard]] Result<std::string> z85_encode(std::span<const std::uint8_t> bytes);
// text: of so many bytes.
[[nodiscard]] Status z85_decode(const std::string& text, std::span<std::uint8_t> bytes);

}  // namespace pif::net
