#include "pif/base/capability.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <sodium.h>

namespace pif {
namespace {

constexpr std::size_t kMacBytes = 16;
constexpr char kCredentialTag = 'C';
constexpr char kCapabilityTag = 'F';

template <typename T>
void append(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff));
}

// Takes little-endian integers off the front of a string known to be long enough.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T take() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    rest_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }

 private:
  std::string_view rest_;
};

std::array<unsigned char, kMacBytes> mac(const ClusterKey& key, std::string_view bytes) {
  std::array<unsigned char, kMacBytes> out{};
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                     reinterpret_cast<const unsigned char*>(key.bytes.data()), key.bytes.size());
  return out;
}

std::string sealed(const ClusterKey& key, std::string bytes) {
  const auto tag = mac(key, bytes);
  bytes.append(reinterpret_cast<const char*>(tag.data()), tag.size());
  return bytes;
}

bool is_authentic(const ClusterKey& key, std::string_view packed) {
  const auto tag = mac(key, packed.substr(0, packed.size() - kMacBytes));
  return sodium_memcmp(tag.data(), packed.data() + packed.size() - kMacBytes, kMacBytes) == 0;
}

std::string utc(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  if (gmtime_r(&time, &parts) == nullptr) return fmt::format("{} s since 1970", seconds);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Status check_expiry(std::int64_t expiry, std::int64_t now, std::string_view what) {
  if (expiry >= now - kClockSkewSeconds) return {};
  // No expiry that was minted makes this wrap, whatever it is.
  const std::uint64_t ago = static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(expiry);
  return fail(
      Code::kBadCapability,
      fmt::format(
          "the {0} expired {1} s ago by the clock of this host, where it is {2}: either it was not renewed, or the "
          "clocks of this host and of the PIF Server's, which issued it, differ by about {1} s: see `pif doctor`",
          what, ago, utc(now)));
}

constexpr std::size_t kCapabilityBytes = 1 + 8 + 4 + 4 + 8 + 8 + kMacBytes;
constexpr std::size_t kCredentialFixedBytes = 1 + 8 + 4 + 8 + 2 + kMacBytes;

}  // namespace

std::string mint(const ClusterKey& key, const Credential& credential) {
  std::string out(1, kCredentialTag);
  append(out, credential.session.value);
  append(out, credential.uid);
  append(out, credential.expiry);
  const auto count = std::min(credential.gids.size(), kGroupsMax);
  append(out, static_cast<std::uint16_t>(count));
  for (std::size_t i = 0; i < count; ++i) append(out, credential.gids[i]);
  return sealed(key, std::move(out));
}

std::string mint(const ClusterKey& key, const Capability& capability) {
  std::string out(1, kCapabilityTag);
  append(out, capability.file.value);
  append(out, capability.uid);
  append(out, capability.rights);
  append(out, capability.epoch);
  append(out, capability.expiry);
  return sealed(key, std::move(out));
}

Result<Credential> verify_credential(const ClusterKey& key, std::string_view packed, std::int64_t now) {
  if (packed.size() < kCredentialFixedBytes + sizeof(std::uint32_t) || packed[0] != kCredentialTag ||
      !is_authentic(key, packed))
    return fail(Code::kBadCapability, "the credential is not one this cluster issued");
  Cursor in(packed.substr(1));
  Credential out;
  out.session = SessionId(in.take<std::uint64_t>());
  out.uid = in.take<std::uint32_t>();
  out.expiry = in.take<std::int64_t>();
  const auto count = in.take<std::uint16_t>();
  if (packed.size() != kCredentialFixedBytes + count * sizeof(std::uint32_t))
    return fail(Code::kBadCapability, "the credential has the wrong length");
  for (unsigned i = 0; i < count; ++i) out.gids.push_back(in.take<std::uint32_t>());
  PIF_TRY(check_expiry(out.expiry, now, "credential"));
  return out;
}

Result<Capability> verify_capability(const ClusterKey& key, std::string_view packed, std::int64_t now) {
  if (packed.size() != kCapabilityBytes || packed[0] != kCapabilityTag || !is_authentic(key, packed))
    return fail(Code::kBadCapability, "the capability is not one this cluster issued");
  Cursor in(packed.substr(1));
  Capability out;
  out.file = FileId(in.take<std::uint64_t>());
  out.uid = in.take<std::uint32_t>();
  out.rights = in.take<std::uint32_t>();
  out.epoch = in.take<std::uint64_t>();
  out.expiry = in.take<std::int64_t>();
  PIF_TRY(check_expiry(out.expiry, now, "capability"));
  return out;
}

std::string sign(const ClusterKey& key, char tag, std::string_view payload) {
  std::string out(1, tag);
  out.append(payload);
  return sealed(key, std::move(out));
}

Result<std::string_view> verify_signed(const ClusterKey& key, char tag, std::string_view packed) {
  if (packed.size() < 1 + kMacBytes || packed[0] != tag || !is_authentic(key, packed))
    return fail(Code::kBadCapability, "the bytes are not ones that this cluster signed");
  return packed.substr(1, packed.size() - 1 - kMacBytes);
}

Status require(const Capability& capability, FileId file, std::uint32_t rights, std::uint32_t uid) {
  const bool any_file = (capability.rights & kMayManage) != 0 && capability.file.value == 0;
  if (capability.file != file && !any_file)
    return fail(Code::kBadCapability,
                fmt::format("the capability is for file {:x}, not {:x}", capability.file.value, file.value));
  if ((capability.rights & rights) != rights)
    return fail(Code::kBadCapability, fmt::format("the capability lacks rights {:#x}", rights & ~capability.rights));
  if (capability.uid != uid)
    return fail(Code::kBadCapability, fmt::format("the capability was issued to uid {}, not {}", capability.uid, uid));
  return {};
}

}  // namespace pif
