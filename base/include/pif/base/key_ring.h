// The keys of a file system's MACs while they are changed: one signs, and another one may be accepted besides, so that
// nothing is refused while some daemons sign with the old key and others with the new one (docs/SECURITY.md "The
// cluster's key").
//
// Copies are of one ring: what is set in one of them counts in all. Thread-safety: none; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pif/base/capability.h"
#include "pif/base/result.h"

namespace pif {

inline constexpr std::int64_t kOldKeySeconds = 600;  // what was signed before lives no longer, but for credentials

class KeyRing {
 public:
  KeyRing() : KeyRing(ClusterKey{}) {}                                              // of a key of zeros
  KeyRing(const ClusterKey& key) : keys_(std::make_shared<Keys>(Keys{key, {}})) {}  // one is a ring; NOLINT

  const ClusterKey& signing() const { return keys_->signing; }  // until the next set()
  // From now on. A signature by a key that is no more among them must be verified again: see version().
  void set(const ClusterKey& signing, const std::optional<ClusterKey>& accepted) {
    const bool is_same = same(signing, keys_->signing) && accepted.has_value() == keys_->accepted.has_value() &&
                         (!accepted || same(*accepted, *keys_->accepted));
    if (is_same) return;
    keys_->signing = signing;
    keys_->accepted = accepted;
    ++keys_->version;
  }
  std::uint64_t version() const { return keys_->version; }  // rises with every change

  // verify(key), a Result, by the key that signs; where that says kBadCapability, by the other one. The error is the
  // first one's.
  template <typename Verify>
  auto verify(const Verify& verify) const -> decltype(verify(ClusterKey{})) {
    auto found = verify(keys_->signing);
    if (found || !keys_->accepted || found.error().code != Code::kBadCapability) return found;
    auto other = verify(*keys_->accepted);
    return other ? std::move(other) : std::move(found);
  }

 private:
  struct Keys {
    ClusterKey signing;
    std::optional<ClusterKey> accepted;
    std::uint64_t version = 0;
  };
  static bool same(const ClusterKey& a, const ClusterKey& b) { return a.bytes == b.bytes; }

  std::shared_ptr<Keys> keys_;
};

// As with a ClusterKey: by the key that signs; and by either.
inline std::string mint(const KeyRing& keys, const Credential& credential) { return mint(keys.signing(), credential); }
inline std::string mint(const KeyRing& keys, const Capability& capability) { return mint(keys.signing(), capability); }
[[nodiscard]] inline Result<Credential> verify_credential(const KeyRing& keys, std::string_view packed,
                                                          std::int64_t now) {
  return keys.verify([&](const ClusterKey& key) { return verify_credential(key, packed, now); });
}
[[nodiscard]] inline Result<Capability> verify_capability(const KeyRing& keys, std::string_view packed,
                                                          std::int64_t now) {
  return keys.verify([&](const ClusterKey& key) { return verify_capability(key, packed, now); });
}

}  // namespace pif
