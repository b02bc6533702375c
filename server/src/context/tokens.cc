#include "context/tokens.h"

#include <fmt/format.h>

namespace pif::server {
namespace {

constexpr std::size_t kPayloadBytes = 8 + 4 + 8;

void append(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t integer(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace

std::string mint_token(const KeyRing& keys, char tag, const Token& token) {
  std::string payload;
  append(payload, token.number, 8);
  append(payload, token.uid, 4);
  append(payload, static_cast<std::uint64_t>(token.expiry), 8);
  return sign(keys.signing(), tag, payload);
}

Result<std::uint64_t> verify_token(const KeyRing& keys, char tag, std::string_view packed, std::uint32_t uid,
                                   std::int64_t wall) {
  const auto payload = keys.verify([&](const ClusterKey& key) { return verify_signed(key, tag, packed); });
  if (!payload || payload->size() != kPayloadBytes)
    return fail(Code::kBadCapability, "the token is not one that this file system issued");
  const auto expiry = static_cast<std::int64_t>(integer(payload->substr(12, 8)));
  if (expiry < wall) {
    return fail(Code::kBadCapability,
                fmt::format("the token expired {} s ago: who shares can ask for another", wall - expiry));
  }
  const auto holder = static_cast<std::uint32_t>(integer(payload->substr(8, 4)));
  if (holder != uid) return fail(Code::kPermission, fmt::format("the token is of uid {}, not {}", holder, uid));
  return integer(payload->substr(0, 8));
}

}  // namespace pif::server
