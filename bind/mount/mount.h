// One mounted file system: what all calls of the kernel share.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include <spdlog/spdlog.h>

#include "clients.h"
#include "content.h"
#include "error_numbers.h"
#include "nodes.h"
#include "options.h"

namespace pif::mount {

struct Mount {
  explicit Mount(MountOptions asked)
      : options(std::move(asked)), clients(connect_options(options), options.clients), nodes(options.clients) {}

  const MountOptions options;
  Clients clients;
  Nodes nodes;
  fuse_session* session = nullptr;
  std::atomic<unsigned> next_client{0};  // of files that are created
};

inline Mount& mount_of(fuse_req_t request) { return *static_cast<Mount*>(fuse_req_userdata(request)); }

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
// What programs here see of the file: others may have its content open here.
[[nodiscard]] Result<Entry> as_seen_here(fuse_req_t request, Entry entry);
// Of a node: by its path, and of one that is open though it has no name any more, as it was.
[[nodiscard]] Result<Entry> entry_of(fuse_req_t request, NodeId node);
void reply_entry(fuse_req_t request, NodeId folder, const char* name, const Entry& entry);

// What new entries get from who makes them: the mount's own user gets them by itself.
struct Creator {
  std::optional<std::uint32_t> owner, group;
};
Creator creator_of(fuse_req_t request);

void add_name_operations(fuse_lowlevel_ops& operations);
void add_folder_operations(fuse_lowlevel_ops& operations);
void add_file_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);

// Of a file that is not open here. Who calls has the node's client.
[[nodiscard]] Status truncate_closed(Mount& mount, Client& client, NodeId node, std::uint64_t size);
// Sends what is gathered for longer than that, closes what is not written to; then what moved is dropped by the kernel.
void send_gathered(Mount& mount, Time before);
// All that is open, to its end: errors are logged.
void finish_all(Mount& mount);

}  // namespace pif::mount
