#include "operations/mount.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace pif::mount {
namespace {

constexpr std::uint32_t kBlockBytes = 128u << 10;  // st_blksize: what cp, cat and stdio move at once
constexpr Duration kIdle = std::chrono::seconds(2);

mode_t type_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFolder: return S_IFDIR;
    case EntryKind::kFile: return S_IFREG;
    case EntryKind::kLink: return S_IFLNK;
    case EntryKind::kFifo: return S_IFIFO;
    case EntryKind::kSocket: return S_IFSOCK;
    case EntryKind::kCharacterDevice: return S_IFCHR;
    case EntryKind::kBlockDevice: return S_IFBLK;
  }
  return S_IFREG;
}

timespec time_of(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t seconds = ns / kSecond - (ns % kSecond < 0 ? 1 : 0);
  return {seconds, ns - seconds * kSecond};
}

}  // namespace

void reply_error(fuse_req_t request, const Error& error) {
  const int number = errno_of(error.code);
  if (number == EIO || number == EOPNOTSUPP) spdlog::error("{}", error.to_string());
  fuse_reply_err(request, number);
}

struct stat attributes_of(const Entry& entry) {
  struct stat out = {};
  out.st_ino = entry.inode;
  out.st_mode = type_of(entry.kind) | (entry.mode & 07777);
  out.st_nlink = 1;
  out.st_uid = entry.owner;
  out.st_gid = entry.group;
  out.st_rdev = entry.device;
  const bool is_link = entry.kind == EntryKind::kLink;
  out.st_size = static_cast<off_t>(is_link ? entry.target.size() : entry.file_length.bytes);
  out.st_blksize = kBlockBytes;
  out.st_blocks = (out.st_size + 511) / 512;
  out.st_mtim = time_of(entry.modified_ns);
  out.st_atim = out.st_mtim;
  out.st_ctim = time_of(entry.changed_ns);
  return out;
}

Result<Entry> as_seen_here(fuse_req_t request, Entry entry) {
  const auto content = mount_of(request).nodes.content(entry.inode);
  if (!content) return entry;
  PIF_TRY_VALUE(const auto client, client_for(request, entry.inode));
  return content->shown(std::move(entry));
}

std::optional<Entry> unsent_entry(fuse_req_t request, NodeId node) {
  if (!is_own(node) || !mount_of(request).nodes.content(node)) return {};
  const auto client = client_for(request, node);
  const auto content = client ? mount_of(request).nodes.content(node) : nullptr;
  if (!content || !content->is_unsent() || content->is_unlinked()) return {};
  return content->entry();
}

Result<Entry> entry_of(fuse_req_t request, NodeId node) {
  Mount& mount = mount_of(request);
  PIF_TRY_VALUE(const auto client, client_for(request, node));
  const auto content = mount.nodes.content(node);
  if (content && content->is_unsent()) return content->entry();
  const auto path = mount.nodes.path(node);
  Result<Entry> found = path ? client->stat(*path) : fail(path.error());
  if (found) found = mount.nodes.here(std::move(*found));
  const bool is_other = found && found->inode != node;
  const bool is_gone =
      is_other || (!found && (found.error().code == Code::kNotFound || found.error().code == Code::kStaleFile));
  if (is_gone) {
    if (content) return content->entry();
    if (const auto removed = mount.nodes.removed_folder(node)) return *removed;
    return fail(Code::kStaleFile, "it was renamed or removed by others");
  }
  return found && content ? content->shown(std::move(*found)) : found;
}

void reply_entry(fuse_req_t request, NodeId folder, const char* name, const Entry& entry) {
  Mount& mount = mount_of(request);
  if (!mount.nodes.look_up(folder, name, entry)) {
    fuse_reply_err(request, ESTALE);
    return;
  }
  mount.nodes.see_folder(entry.inode, entry);
  fuse_entry_param out = {};
  out.ino = entry.inode;
  out.attr = attributes_of(entry);
  out.attr_timeout = out.entry_timeout = mount.options.attr_timeout;
  if (fuse_reply_entry(request, &out) != 0) mount.nodes.forget(entry.inode, 1);  // interrupted: nobody knows it
}

Creator creator_of(fuse_req_t request) {
  const fuse_ctx* caller = fuse_req_ctx(request);
  if (::geteuid() != 0 || (caller->uid == ::geteuid() && caller->gid == ::getegid())) return {};
  return {caller->uid, caller->gid};
}

CreateOptions create_options(const Creator& creator, mode_t mode) {
  CreateOptions options;
  options.mode = mode & 07777;
  options.exclusive = true;
  options.owner = creator.owner;
  options.group = creator.group;
  return options;
}

// ---- what is done without being asked ------------------------------------------------------------------------------

void send_gathered(Mount& mount, Time before) {
  for (const NodeId node : mount.nodes.open_nodes()) {
    bool has_moved = false;
    {
      auto client = mount.clients.use(mount.nodes.client_of(node));
      const auto content = client ? mount.nodes.content(node) : nullptr;
      if (!content || content->state() != Content::State::kCommitted) continue;
      if (content->is_gathered_before(before)) {
        if (const auto sent = content->send(); !sent)
          spdlog::error("{}: bytes that were written are lost: {}", content->entry().name, sent.error().to_string());
      }
      if (content->is_idle_since(before - kIdle)) content->rest();
      has_moved = content->take_moved();
    }
    if (has_moved) fuse_lowlevel_notify_inval_inode(mount.session, node, 0, 0);
  }
}

void finish_all(Mount& mount) {
  send_all_waiting(mount);
  for (const NodeId node : mount.nodes.open_nodes()) {
    auto client = mount.clients.use(mount.nodes.client_of(node));
    const auto content = client ? mount.nodes.content(node) : nullptr;
    if (!content) continue;
    if (const auto done = content->finish(); !done)
      spdlog::error("{}: what was written is lost: {}", content->entry().name, done.error().to_string());
  }
}

}  // namespace pif::mount
