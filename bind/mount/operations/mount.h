// One mounted file system: what all calls of the kernel share.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include <spdlog/spdlog.h>

#include "content/content.h"
#include "nodes/clients.h"
#include "nodes/nodes.h"
#include "nodes/waiting.h"
#include "process/alarm.h"
#include "process/error_numbers.h"
#include "process/options.h"

namespace pif::mount {

struct Mount {
  explicit Mount(MountOptions asked)
      : options(std::move(asked)),
        clients(connect_options(options), options.clients),
        nodes(options.clients),
        waiting(options.clients) {}

  const MountOptions options;
  Clients clients;
  Nodes nodes;
  fuse_session* session = nullptr;
  std::atomic<unsigned> next_client{0};  // of files that are created
  // ---- -o lazy ----
  Waiting waiting;
  // Held alone to rename or remove folders: files that wait keep the path that they were made with.
  std::shared_mutex folders;
  Alarm alarm;  // of who sends what is gathered, and waits
};

inline Mount& mount_of(fuse_req_t request) { return *static_cast<Mount*>(fuse_req_userdata(request)); }

// The system's clock, in nanoseconds.
inline std::int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}
inline Time now() { return Time(std::chrono::steady_clock::now().time_since_epoch()); }

// The client of this node, for the length of a request; its calls end when whoever waits for them is interrupted.
inline Result<Clients::Use> client_for(fuse_req_t request, NodeId node) {
  Mount& mount = mount_of(request);
  return mount.clients.use(mount.nodes.client_of(node), [request] { return fuse_req_interrupted(request) != 0; });
}

// The answer of a request that failed. Programs get a number: what it means is in the log.
void reply_error(fuse_req_t request, const Error& error);
// Runs `body`, which answers the request itself if it succeeds.
template <typename Body>
void answer(fuse_req_t request, Body body) {
  if (const Status done = body(); !done) reply_error(request, done.error());
}

struct stat attributes_of(const Entry& entry);
// The file as programs here see it: others may have its content open here.
[[nodiscard]] Result<Entry> as_seen_here(fuse_req_t request, Entry entry);
// Nothing if the file system knows the file.
[[nodiscard]] std::optional<Entry> unsent_entry(fuse_req_t request, NodeId node);
// The entry of a node: by its path, or as it was if it is open and has no name any more.
[[nodiscard]] Result<Entry> entry_of(fuse_req_t request, NodeId node);
void reply_entry(fuse_req_t request, NodeId folder, const char* name, const Entry& entry);

// The owner and group of new entries; the mount's own user gets them by itself.
struct Creator {
  std::optional<std::uint32_t> owner, group;
};
CreateOptions create_options(const Creator& creator, mode_t mode);
Creator creator_of(fuse_req_t request);

void add_name_operations(fuse_lowlevel_ops& operations);
void add_folder_operations(fuse_lowlevel_ops& operations);
void add_file_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);

// Truncates a file that is not open here. The caller has the node's client.
[[nodiscard]] Status truncate_closed(Mount& mount, Client& client, NodeId node, std::uint64_t size);
// Sends what is gathered for longer than that, closes what is not written to; then what moved is dropped by the kernel.
void send_gathered(Mount& mount, Time before);

// ---- -o lazy: waiting.cc has which files wait ----
// A new file that nobody knows of yet: its node, which the mount has opened and looked up for itself. Nothing: this
// one cannot wait. The caller has the client, and `folders` shared.
struct NewFile {
  NodeId folder = 0;
  const char* name = nullptr;
  std::string path;
  CreateOptions options;
};
[[nodiscard]] std::optional<Entry> make_waiting(Mount& mount, Client& client, unsigned number, NewFile made);
// Sends what waits with this client. Open files get their names if they were made before `open_before`. The caller has
// no client. Errors: the content has them, and the log if no program has it open.
void send_waiting(Mount& mount, unsigned number, Time open_before);
// With all clients, all files.
void send_all_waiting(Mount& mount);
// Nobody makes files that wait as long as the lock lives, and none waits.
[[nodiscard]] std::unique_lock<std::shared_mutex> lock_folders(Mount& mount);
// Those for which it is time, or a batch is full.
void send_due(Mount& mount, Time before);
// All that is open, to its end: errors are logged.
void finish_all(Mount& mount);

}  // namespace pif::mount
