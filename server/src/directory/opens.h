// Which sessions have which files open: leases, and holds of tools that want no writer meanwhile. In memory: after a
// restart whoever renews is known again. Holds are durable besides (input_locks.h).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "pif/base/capability.h"
#include "pif/base/result.h"

namespace pif::server {

// An open that is not renewed ends with the capability it gave, skew included.
inline constexpr std::int64_t kLeaseSeconds = kCapabilitySeconds + kClockSkewSeconds;
inline constexpr std::size_t kOpensPerSessionMax = 65536;

struct Holder {
  std::uint64_t session = 0;
  std::uint32_t rights = 0;  // of Rights
  bool hold = false;
  std::uint32_t count = 0;  // opens of the same file by the same session
  std::int64_t expiry = 0;  // wall seconds
};

class Opens {
 public:
  // Another session's holder that an open with these rights collides with; null: none.
  const Holder* conflict(std::uint64_t file, std::uint64_t session, std::uint32_t rights, bool hold) const;
  // One more open (`again`: or the renewal of one).
  void add(std::uint64_t file, std::uint64_t session, std::uint32_t rights, bool hold, bool again, std::int64_t wall);
  // As it was before a restart: a holder whose session does not have the file open yet.
  void restore(std::uint64_t file, Holder holder);
  const Holder* find(std::uint64_t file, std::uint64_t session) const;
  bool is_open(std::uint64_t file) const { return files_.contains(file); }
  std::size_t count_of(std::uint64_t session) const;
  // The files that the session has open for writing.
  std::vector<std::uint64_t> written_by(std::uint64_t session) const;

  // These return the files that nobody has open any more.
  bool close(std::uint64_t file, std::uint64_t session);
  std::vector<std::uint64_t> close_all(std::uint64_t session);
  std::vector<std::uint64_t> expire(std::int64_t wall);

  // Holds that have ended since they were taken last.
  struct Ended {
    std::uint64_t file;
    std::uint64_t session;
  };
  std::vector<Ended>& ended_holds() { return ended_holds_; }

 private:
  // Each removes a holder from one of two maps, which both have it. remove() says whether it was the file's last one.
  bool remove(std::uint64_t file, std::uint64_t session);
  void forget(std::uint64_t file, const Holder& holder);

  std::unordered_map<std::uint64_t, std::vector<Holder>> files_;
  std::unordered_map<std::uint64_t, std::set<std::uint64_t>> by_session_;  // files
  std::vector<Ended> ended_holds_;
};

}  // namespace pif::server
