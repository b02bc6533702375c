// keys/cluster.key: the key of all MACs, and, while it is changed, the one that is accepted besides (docs/FORMAT.md
// "The cluster's key"). It is changed in two steps, each on all hosts before the next: first the new key is accepted
// everywhere, then it signs, and the old one is accepted for kOldKeySeconds more. Errors: as in cluster.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pif/base/key_ring.h"
#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {

struct KeyFile {
  ClusterKey signing;
  std::uint64_t number = 0;            // how often the key was changed
  std::optional<ClusterKey> accepted;  // the next one, or the one before
  std::int64_t until = 0;              // wall seconds; the one before is accepted so long. 0: it is the next one

  bool is_changing() const { return accepted.has_value() && until == 0; }  // after the first step
  // Whether the key before is still accepted.
  bool has_old(std::int64_t now) const { return accepted.has_value() && until > now; }
};

std::string format_key_file(const KeyFile& keys);                      // the file's bytes
[[nodiscard]] Result<KeyFile> parse_key_file(std::string_view bytes);  // kCorrupt
[[nodiscard]] Result<KeyFile> load_key_file(const Cluster& cluster);   // daemons and the owner only: 0400
// Whether `keys` are further than `others`: the step after, or a later key.
bool is_further(const KeyFile& keys, const KeyFile& others);

// The key file that another host sends. Nothing is changed if it is no further than what is here. kInvalid: it is of
// another file system, for no key of it is known here and it is not a later one.
[[nodiscard]] Status take_key_file(const std::string& folder, std::string_view bytes);
// The first step on this host: a new key is accepted. Nothing happens if one is already. Returns the keys there.
[[nodiscard]] Result<KeyFile> begin_key_change(const Cluster& cluster);
// The second step, after is_changing(): the new key signs, and the old one is accepted for `seconds` more.
[[nodiscard]] Result<KeyFile> end_key_change(const Cluster& cluster, std::int64_t now, std::int64_t seconds);

// The ring of a daemon, kept as the file says.
class WatchedKeys {
 public:
  WatchedKeys(const Cluster& cluster, const KeyFile& keys);  // keys: as they were loaded a moment ago
  const KeyRing& ring() const { return ring_; }              // of which look() changes all copies
  // Looks whether the file has changed, and whether the time of the key before is over; cheap. now: wall seconds. It
  // logs what it finds. A file that cannot be read changes nothing.
  void look(std::int64_t now);

 private:
  void apply(std::int64_t now);

  Cluster cluster_;
  KeyFile keys_;
  KeyRing ring_;
  std::int64_t seen_ = 0;
};

}  // namespace pif::cluster
