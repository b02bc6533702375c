// The PIF Server: owns the directory and the life cycle of every interleaved file, knows the LFSs, mints credentials
// and capabilities. It never sees a record. One thread: serve() runs the event loop; all requests that are waiting at
// once share one transaction (group commit).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/key_ring.h"
#include "pif/base/result.h"
#include "pif/base/timers.h"
#include "pif/kv/store.h"
#include "pif/net/messenger.h"

namespace pif::server {

// Tables of the directory, in the order in which the store must be opened.
inline const std::vector<std::string> kDirectoryTables = {"entries", "files",   "nodes", "recent",
                                                          "meta",    "numbers", "",      "input-locks"};

// The file system that a directory belongs to.
struct DirectoryIdentity {
  std::string cluster;
  std::string uuid;  // 32 hex digits, as in pif.toml; empty: any (tests)
};

// Makes a new directory in an empty store, with the root folder, which `owner_uid` owns. Nothing happens to one that
// has this identity already. kCorrupt: rows without an identity; kInvalid, kVersion: somebody else's.
[[nodiscard]] Status make_directory(kv::Store& store, const DirectoryIdentity& identity, std::uint32_t owner_uid,
                                    std::int64_t wall_seconds);
// Takes over, once, a directory that an earlier release wrote (format 1).
[[nodiscard]] Status adopt_directory(kv::Store& store, const DirectoryIdentity& identity);

// The description that all hosts of a file system share, as the server's host has it (docs/FORMAT.md "Several hosts").
struct Description {
  std::uint64_t edition = 0;                        // 0: there is one host
  std::map<std::uint32_t, std::string> root_uuids;  // Config
  std::vector<proto::ClusterFile> files;
};

struct Config {
  std::string cluster;                              // id
  std::string uuid;                                 // of the directory; empty: any (tests)
  std::map<std::uint32_t, std::string> root_uuids;  // of the LFSs, by node; empty: any, and any nodes (tests)
  KeyRing key;
  std::function<void()> look_at_keys;  // once a second: brings `key` up to date; may be empty
  std::uint32_t owner_uid = 0;         // the cluster's owner: may do what root may
  std::uint32_t default_bevy = 0;
  Duration suspect_after = kSuspectAfter;  // silence of an LFS
  Duration down_after = kDownAfter;
  // The server declares nodes lost that were silent for so long, unless two companions would be absent; otherwise only
  // a person does.
  bool declares_lost = true;
  Duration lost_after = kLostAfter;
  // After a start LFSs are waited for so long: one of them may know more than the directory does.
  Duration gather_max = std::chrono::seconds(3);
  std::string host;  // where this server runs, as pif.toml names it; empty: there is one host
  // The description, if it has changed since this was called last (the first time: it has). Asked once a second.
  std::function<std::optional<Description>()> changed_description;
};

struct World {
  net::Messenger& messenger;
  kv::Store& directory;
  Entropy& entropy;
};

class Server {
 public:
  // All that `world` refers to outlives it; the directory is open with kDirectoryTables. Nothing is read yet. Its end
  // answers nobody.
  Server(Config config, World world);
  ~Server();

  // Reads the directory and begins a run. kVersion, kCorrupt, kNotFound (nothing in it), kInvalid (another one's).
  [[nodiscard]] Status open();
  // Serves until `stop` is set and the messenger woken. Errors only if it cannot go on.
  [[nodiscard]] Status serve(const std::atomic<bool>& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `pif-server check FOLDER`: reads the whole directory without any daemon and lists what does not hold, in lines for
// people, up to a bound on their number.
struct CheckReport {
  std::uint64_t folders = 0;
  std::uint64_t files = 0;
  std::vector<std::string> damages;
};
// Writes nothing. An error: it cannot be read at all (kVersion, kCorrupt, kIo); what is wrong in it is in the report.
[[nodiscard]] Result<CheckReport> check_directory(kv::Store& directory);

}  // namespace pif::server
