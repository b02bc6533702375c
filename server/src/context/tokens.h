// Tokens that a program hands to others of its user, so that they may join in: a number, the user and an expiry,
// signed. Fixed little-endian bytes; docs/PROTOCOL.md "Rights" has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pif/base/key_ring.h"

namespace pif::server {

inline constexpr char kJoinTag = 'J';   // of a file that several write: its id
inline constexpr char kGroupTag = 'G';  // of a group of a parallel-open: its number
inline constexpr std::int64_t kTokenSeconds = 24 * 3600;

struct Token {
  std::uint64_t number = 0;
  std::uint32_t uid = 0;    // who may show it
  std::int64_t expiry = 0;  // wall seconds
};

std::string mint_token(const KeyRing& keys, char tag, const Token& token);
// The number in what mint_token() packed. kBadCapability: forged, of another tag, or expired at `wall` (seconds), as
// the text says; kPermission: not of `uid`.
[[nodiscard]] Result<std::uint64_t> verify_token(const KeyRing& keys, char tag, std::string_view packed,
                                                 std::uint32_t uid, std::int64_t wall);

}  // namespace pif::server
