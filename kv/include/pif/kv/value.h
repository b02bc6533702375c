// Values with a checksum in front, and keys of big-endian integers: what the server and the LFSs store.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif::kv {

// 8 bytes little-endian XXH3-64 of payload, then payload.
std::string seal_value(std::string_view payload);
// The same without a copy: `value` has 8 bytes of any content in front of the payload; they become the checksum.
void seal_in_place(std::string& value);
// The payload; kCorrupt, naming `what`, if the checksum fails. The view is into `value`.
[[nodiscard]] Result<std::string_view> open_value(std::string_view value, std::string_view what);

std::string key_u64(std::uint64_t value);        // 8 bytes, big-endian: keys sort as numbers
std::string key_u32(std::uint32_t value);        // 4 bytes, likewise
std::uint64_t u64_of_key(std::string_view key);  // key: at least 8 bytes

}  // namespace pif::kv
