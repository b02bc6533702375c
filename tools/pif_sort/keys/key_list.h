// Sort keys on their way between the workers of a merge by token.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keys/lengths.h"
#include "pif/net/buffer.h"

namespace pif::sort {

// Byte strings, packed.
class KeyList {
 public:
  std::size_t size() const { return ends_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return std::string_view(bytes_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }
  void add(std::string_view key);
  // The number after the key's bytes, the most significant first.
  void add(std::string_view key, std::uint64_t number);
  void clear();
  bool are_at_least(std::size_t bytes) const;  // long, each
  // Those from `from` on. Unpacking fails if they do not fill the body.
  net::Buffer pack(std::size_t from) const;
  static std::optional<KeyList> unpack(std::span<const std::byte> body);
  // How many keys of these lengths fit into a body of so many bytes, whichever they are.
  static std::uint64_t fit(const Lengths& lengths, std::size_t body_bytes);

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_ = {0};
};

// Whether key a comes before key b. Most differ in their first bytes.
inline bool before(std::string_view a, std::string_view b) {
  std::uint64_t x = 0, y = 0;
  if (a.size() >= sizeof x && b.size() >= sizeof y) {
    std::memcpy(&x, a.data(), sizeof x);
    std::memcpy(&y, b.data(), sizeof y);
    if (x != y) return __builtin_bswap64(x) < __builtin_bswap64(y);
  }
  return a < b;
}

}  // namespace pif::sort
