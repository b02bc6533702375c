// The PIF Server: owns the directory and the life cycle of every interleaved file, knows the LFSs, mints credentials and
// capabilities. It never sees a record. One thread: serve() runs the event loop; all requests that are waiting at once
// share one transaction (group commit).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "pif/base/capability.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/base/timers.h"
#include "pif/kv/store.h"
#include "pif/net/messenger.h"

namespace pif::server {

// Tables of the directory, in the order in which the store must be opened.
inline const std::vector<std::string> kDirectoryTables = {"entries", "files", "nodes", "recent", "meta"};

struct Config {
  std::string cluster;                // id
  ClusterKey key;
  std::uint32_t owner_uid = 0;        // the cluster's owner: may do what root may
  std::uint32_t default_bevy = 0;
  Duration suspect_after = kSuspectAfter;   // silence of an LFS
  Duration down_after = kDownAfter;
};

struct World {
  net::Messenger& messenger;
  kv::Store& directory;
  Entropy& entropy;
};

class Server {
 public:
  Server(Config config, World world);
  ~Server();

  // Reads the directory; makes the root folder in a new one. kVersion, kCorrupt, kInvalid (another cluster's).
  [[nodiscard]] Status open();
  // Serves until `stop` is set and the messenger woken. Errors only if it cannot go on.
  [[nodiscard]] Status serve(const std::atomic<bool>& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `pif-server check FOLDER`: reads the whole directory without any daemon and lists what does not hold.
struct CheckReport {
  std::uint64_t folders = 0;
  std::uint64_t files = 0;
  std::vector<std::string> damages;
};
[[nodiscard]] Result<CheckReport> check_directory(kv::Store& directory);

}  // namespace pif::server
