// What records hold in a simulated history: which write made them, and nothing else could.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pif::simulate {

inline constexpr std::size_t kStampBytes = 12;

// The index-th record of write `write`.
struct Stamp {
  std::uint64_t write = 0;
  std::uint32_t index = 0;
  bool operator==(const Stamp&) const = default;
};

// length: at least kStampBytes.
void fill_record(Stamp stamp, std::span<std::byte> record);
// Whose record this is; nothing if any byte is not what that write wrote.
std::optional<Stamp> read_record(std::span<const std::byte> record);
// A length for a record of variable length.
std::uint32_t variable_length(Stamp stamp);

}  // namespace pif::simulate
