// A Credential says who somebody is, a Capability what they may do with one file. The PIF Server mints both with the
// cluster's key; every LFS verifies them itself, without asking the server. Fixed little-endian bytes under a keyed
// BLAKE2b-128 MAC; docs/PROTOCOL.md "Rights" draws them. Thread-safety: pure functions; a Key may be shared once
// made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/ids.h"
#include "pif/base/result.h"

namespace pif {

struct ClusterKey {
  std::array<std::byte, 32> bytes{};
};

inline constexpr std::size_t kGroupsMax = 32;            // supplementary groups a credential carries; more are dropped
inline constexpr std::int64_t kCapabilitySeconds = 600;  // life of a capability
inline constexpr std::int64_t kClockSkewSeconds = 30;    // how much later than its expiry an LFS still takes one

struct Credential {
  SessionId session;
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;  // primary first; at least one
  std::int64_t expiry = 0;          // wall seconds
};

enum Rights : std::uint32_t {
  kMayRead = 1,    // records and lengths of a committed file
  kMayWrite = 2,   // append to and overwrite a committed file
  kMayCreate = 4,  // make and fill the components of a file not yet committed; sealing and aborting them
  kMayManage = 8,  // the server's own: publish, delete, list, check
};

struct Capability {
  FileId file;               // 0 with kMayManage: any file
  std::uint32_t uid = 0;     // holder; the requester's uid must equal it
  std::uint32_t rights = 0;  // of Rights
  std::uint64_t epoch = 0;   // an LFS that knows a higher epoch of the file refuses
  std::int64_t expiry = 0;   // wall seconds
};

// Packed bytes with their MAC, ready for Envelope.credential and Envelope.capability. The first kGroupsMax groups of a
// credential are packed.
std::string mint(const ClusterKey& key, const Credential& credential);
std::string mint(const ClusterKey& key, const Capability& capability);

// Unpacks the result of mint(). kBadCapability for anything but intact, unexpired bytes: the text says whether they are
// forged or too old. `now` in wall seconds; kClockSkewSeconds are allowed for.
[[nodiscard]] Result<Credential> verify_credential(const ClusterKey& key, std::string_view packed, std::int64_t now);
[[nodiscard]] Result<Capability> verify_capability(const ClusterKey& key, std::string_view packed, std::int64_t now);

// Ok if `rights` of Rights are all in the capability, it is for `file` (or, with kMayManage, any), and its holder is
// `uid`; else kBadCapability, saying which of these is not so. Does not look at its expiry: verify_capability() has.
[[nodiscard]] Status require(const Capability& capability, FileId file, std::uint32_t rights, std::uint32_t uid);

// Bytes of another kind under the cluster's key: the tag, `payload`, and a MAC over both. Tags are of one use each:
// 'C' and 'F' are the above, 'V' is a view (wire/views.h),
// 'J' and 'G' are tokens (server/src/context/tokens.h).
std::string sign(const ClusterKey& key, char tag, std::string_view payload);
// The payload of what sign() made; valid as long as `packed`. kBadCapability for anything else.
[[nodiscard]] Result<std::string_view> verify_signed(const ClusterKey& key, char tag, std::string_view packed);

}  // namespace pif
