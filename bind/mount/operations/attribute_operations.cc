// Calls of the kernel for attributes of nodes, and of the whole.
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "operations/mount.h"
#include "pif/base/limits.h"
#include "process/mount_point.h"

namespace pif::mount {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kStatBlock = 4096;

void reply_attributes(fuse_req_t request, const Entry& entry, bool is_gone) {
  struct stat attributes = attributes_of(entry);
  if (is_gone) attributes.st_nlink = 0;
  mount_of(request).nodes.see_folder(entry.inode, entry);
  fuse_reply_attr(request, &attributes, mount_of(request).options.attr_timeout);
}

bool is_unlinked(fuse_req_t request, NodeId node) {
  if (mount_of(request).nodes.removed_folder(node)) return true;
  if (!mount_of(request).nodes.content(node)) return false;
  const auto client = client_for(request, node);
  const auto content = client ? mount_of(request).nodes.content(node) : nullptr;
  return content && content->is_unlinked();
}

void get_attributes(fuse_req_t request, fuse_ino_t node, fuse_file_info*) {
  answer(request, [&]() -> Status {
    PIF_TRY_VALUE(const Entry entry, entry_of(request, node));
    reply_attributes(request, entry, is_unlinked(request, node));
    return {};
  });
}

// What of the kernel's wishes the directory keeps.
AttributeChange change_of(const struct stat& wanted, int which) {
  AttributeChange change;
  if ((which & FUSE_SET_ATTR_MODE) != 0) change.mode = wanted.st_mode & 07777;
  if ((which & FUSE_SET_ATTR_UID) != 0) change.owner = wanted.st_uid;
  if ((which & FUSE_SET_ATTR_GID) != 0) change.group = wanted.st_gid;
  if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0)
    change.modified_ns = wall_ns();
  else if ((which & FUSE_SET_ATTR_MTIME) != 0)
    change.modified_ns = wanted.st_mtim.tv_sec * kSecond + wanted.st_mtim.tv_nsec;
  return change;
}

bool says_nothing(const AttributeChange& change) {
  return !change.mode && !change.owner && !change.group && !change.modified_ns;
}

// False: the file system knows the file now, and the change is still to be made.
Result<bool> change_unsent(Content& content, const AttributeChange& change) {
  const bool is_owners = change.owner || change.group;
  if (is_owners && ::geteuid() != 0) {  // the server decides
    PIF_TRY(content.send_name());
    return false;
  }
  content.change_unsent(change);
  return true;
}

Status set_attributes(fuse_req_t request, NodeId node, const struct stat& wanted, int which) {
  Mount& mount = mount_of(request);
  // Files that are made in it would change its time, or might not be made any more.
  if (mount.nodes.folder(node)) send_all_waiting(mount);
  PIF_TRY_VALUE(const auto client, client_for(request, node));
  const auto content = mount.nodes.content(node);
  if ((which & FUSE_SET_ATTR_SIZE) != 0) {
    const auto size = static_cast<std::uint64_t>(wanted.st_size);
    PIF_TRY(content ? content->truncate(size) : truncate_closed(mount, *client, node, size));
    if (content) content->touch(wall_ns());
  }
  const AttributeChange change = change_of(wanted, which);
  if (change.modified_ns && content) PIF_TRY(content->send());
  if (says_nothing(change)) return {};
  if (content && content->is_unsent()) {
    PIF_TRY_VALUE(const bool is_done, change_unsent(*content, change));
    if (is_done) return {};
  }
  if (content && content->is_unlinked()) {
    content->change_unlinked(change);
    return {};
  }
  PIF_TRY_VALUE(const std::string path, mount.nodes.path(node));
  PIF_TRY_VALUE(const Entry entry, client->stat(path));
  if (mount.nodes.here(entry).inode != node) return fail(Code::kStaleFile, path + " was replaced by others");
  PIF_TRY(client->change_attributes(path, change));
  if (content && change.modified_ns) content->forget_touch();
  return {};
}

void set_attributes(fuse_req_t request, fuse_ino_t node, struct stat* wanted, int which, fuse_file_info*) {
  if (const auto done = set_attributes(request, node, *wanted, which); !done) {
    // POSIX: who may not change attributes gets EPERM.
    const bool is_size = (which & FUSE_SET_ATTR_SIZE) != 0;
    if (done.error().code == Code::kPermission && !is_size)
      fuse_reply_err(request, EPERM);
    else
      reply_error(request, done.error());
    return;
  }
  get_attributes(request, node, nullptr);
}

void get_statistics(fuse_req_t request, fuse_ino_t node) {
  answer(request, [&]() -> Status {
    PIF_TRY_VALUE(const auto client, client_for(request, node));
    PIF_TRY_VALUE(const SystemStatus status, client->status());
    struct statvfs out = {};
    out.f_bsize = out.f_frsize = kStatBlock;
    out.f_namemax = kNameBytesMax;
    for (const Node& lfs : status.nodes) {
      out.f_blocks += lfs.bytes_total / kStatBlock;
      out.f_bfree += lfs.bytes_free / kStatBlock;
    }
    out.f_bavail = out.f_bfree;
    out.f_files = status.files + status.folders;
    fuse_reply_statfs(request, &out);
    return {};
  });
}

void control(fuse_req_t request, fuse_ino_t, unsigned command, void*, fuse_file_info*, unsigned, const void*,
             std::size_t, std::size_t out_size) {
  const int process = ::getpid();
  if (command == static_cast<unsigned>(kAskProcess) && out_size >= sizeof process)
    fuse_reply_ioctl(request, 0, &process, sizeof process);
  else
    fuse_reply_err(request, ENOTTY);
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = get_attributes;
  operations.setattr = set_attributes;
  operations.statfs = get_statistics;
  operations.ioctl = control;
}

}  // namespace pif::mount
