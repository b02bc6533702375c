// Calls of the kernel for the bytes of files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <shared_mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "operations/mount.h"

namespace pif::mount {
namespace {

// One open file of a program, with its duplicates.
struct Handle {
  pid_t opener = 0;
  bool appends = false;
};
Handle& handle_of(const fuse_file_info* info) { return *reinterpret_cast<Handle*>(info->fh); }

// Whether the process that calls is the one that opened the file: both are threads of it.
bool is_opener(fuse_req_t request, const Handle& handle) {
  const pid_t caller = fuse_req_ctx(request)->pid;
  if (caller == handle.opener) return true;
  return ::access(fmt::format("/proc/{}/task/{}", handle.opener, caller).c_str(), F_OK) == 0;
}

bool can_read(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }

struct Version {
  Entry entry;
  std::optional<File> file;  // none: it may be written and not read
};

Result<Version> open_version(const Nodes& nodes, Client& client, const std::string& path, NodeId node, int flags) {
  Version version;
  auto file = client.open(path);
  if (file) {
    version.entry = file->entry();
    version.file.emplace(std::move(*file));
  } else if (file.error().code == Code::kPermission && !can_read(flags)) {
    PIF_TRY_VALUE(version.entry, client.stat(path));
  } else {
    return fail(std::move(file.error()));
  }
  version.entry = nodes.here(std::move(version.entry));
  if (version.entry.inode == node) return version;
  return fail(Code::kStaleFile, "it was replaced by others");  // the kernel looks the name up again
}

// The node's content, in its newest version. Who calls has the node's client.
Result<std::shared_ptr<Content>> open_content(Mount& mount, Client& client, NodeId node, int flags) {
  auto content = mount.nodes.content(node);
  if (content && !content->is_clean()) return content;
  auto path = mount.nodes.path(node);
  if (!path) {
    if (content) return content;
    return fail(std::move(path.error()));
  }
  auto version = open_version(mount.nodes, client, *path, node, flags);
  if (!version) {
    if (version.error().code == Code::kNotFound) version.error().code = Code::kStaleFile;
    return fail(std::move(version.error()));
  }
  if (content && content->id() == version->entry.id) return content;
  if (content)
    content->take_newer(std::move(version->entry), std::move(version->file));
  else
    content = std::make_shared<Content>(client, std::move(version->entry), std::move(version->file),
                                        mount.options.rewrite_max);
  return content;
}

void reply_opened(fuse_req_t request, NodeId node, std::shared_ptr<Content> content, fuse_file_info* info) {
  Mount& mount = mount_of(request);
  const bool is_known = mount.nodes.is_same_version(node, content->entry());
  info->keep_cache = is_known ? 1 : 0;
  // The kernel may believe an older size for another second.
  if (!is_known) fuse_lowlevel_notify_inval_inode(mount.session, node, -1, 0);
  auto handle = std::make_unique<Handle>();
  handle->opener = fuse_req_ctx(request)->pid;
  handle->appends = (info->flags & O_APPEND) != 0;
  info->fh = reinterpret_cast<std::uint64_t>(handle.get());
  mount.nodes.open(node, std::move(content));
  if (fuse_reply_open(request, info) == 0)
    (void)handle.release();
  else
    mount.nodes.close(node);  // interrupted
}

// By who is not root: the file is another program now, and runs as nobody else. An open that truncates is the only
// change of bytes that the kernel leaves that to us for.
Status clear_set_ids(fuse_req_t request, Client& client, NodeId node, const Entry& entry) {
  std::uint32_t cleared = S_ISUID;
  if ((entry.mode & S_IXGRP) != 0) cleared |= S_ISGID;
  if (fuse_req_ctx(request)->uid == 0 || (entry.mode & cleared) == 0) return {};
  PIF_TRY_VALUE(const std::string path, mount_of(request).nodes.path(node));
  AttributeChange change;
  change.mode = entry.mode & ~cleared;
  const Status done = client.change_attributes(path, change);
  fuse_lowlevel_notify_inval_inode(mount_of(request).session, node, -1, 0);
  if (!done && done.error().code == Code::kPermission) return {};  // a mount of who may write to it and not own it
  return done;
}

Status truncate_opened(fuse_req_t request, Client& client, NodeId node, Content& content) {
  PIF_TRY(content.truncate(0));
  content.touch(wall_ns());
  return clear_set_ids(request, client, node, content.entry());
}

void open_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  answer(request, [&]() -> Status {
    PIF_TRY_VALUE(const auto client, client_for(request, node));
    PIF_TRY_VALUE(auto content, open_content(mount_of(request), *client, node, info->flags));
    if ((info->flags & O_TRUNC) != 0) PIF_TRY(truncate_opened(request, *client, node, *content));
    reply_opened(request, node, std::move(content), info);
    return {};
  });
}

void reply_created(fuse_req_t request, NodeId folder, const char* name, const Entry& entry,
                   std::shared_ptr<Content> content, unsigned client, fuse_file_info* info) {
  Mount& mount = mount_of(request);
  mount.nodes.look_up(folder, name, entry, client);
  mount.nodes.open(entry.inode, std::move(content));
  auto handle = std::make_unique<Handle>();
  handle->opener = fuse_req_ctx(request)->pid;
  handle->appends = (info->flags & O_APPEND) != 0;
  info->fh = reinterpret_cast<std::uint64_t>(handle.get());
  fuse_entry_param out = {};
  out.ino = entry.inode;
  out.attr = attributes_of(entry);
  out.attr_timeout = out.entry_timeout = mount.options.attr_timeout;
  if (fuse_reply_create(request, &out, info) == 0) {
    (void)handle.release();
    return;
  }
  mount.nodes.close(entry.inode);
  mount.nodes.forget(entry.inode, 1);
}

// The name is there already, as others have made it since the kernel looked.
Status open_existing(fuse_req_t request, NodeId folder, const char* name, const std::string& path,
                     fuse_file_info* info) {
  Mount& mount = mount_of(request);
  Result<Entry> entry = fail(Code::kInternal, "");
  {
    PIF_TRY_VALUE(const auto client, client_for(request, folder));
    entry = client->stat(path);
  }
  if (!entry) return fail(entry.error());
  entry = mount.nodes.here(std::move(*entry));
  if (entry->kind != EntryKind::kFile) return fail(Code::kExists, path + " is no file");
  PIF_TRY_VALUE(const auto client, client_for(request, entry->inode));
  mount.nodes.look_up(folder, name, *entry);
  auto content = open_content(mount, *client, entry->inode, info->flags);
  mount.nodes.forget(entry->inode, 1);
  if (!content) return fail(content.error());
  if ((info->flags & O_TRUNC) != 0) PIF_TRY(truncate_opened(request, *client, entry->inode, **content));
  const Entry now = (*content)->entry();
  reply_created(request, folder, name, now, std::move(*content), mount.nodes.client_of(now.inode), info);
  return {};
}

// False: this one cannot wait.
Result<bool> create_waiting(fuse_req_t request, NodeId folder, const char* name, CreateOptions options,
                            fuse_file_info* info) {
  Mount& mount = mount_of(request);
  // The kernel has just looked: nobody else of this mount has made it.
  options.exclusive = (info->flags & O_EXCL) != 0;
  const std::shared_lock lock(mount.folders);
  PIF_TRY_VALUE(std::string path, mount.nodes.path(folder, name));
  const unsigned number = mount.waiting.next_client();
  auto client = mount.clients.use(number, [request] { return fuse_req_interrupted(request) != 0; });
  if (!client) return fail(client.error());
  const auto entry = make_waiting(mount, **client, number, {folder, name, std::move(path), std::move(options)});
  if (!entry) return false;
  reply_created(request, folder, name, *entry, mount.nodes.content(entry->inode), number, info);
  return true;
}

void create_file(fuse_req_t request, fuse_ino_t folder, const char* name, mode_t mode, fuse_file_info* info) {
  answer(request, [&]() -> Status {
    Mount& mount = mount_of(request);
    PIF_TRY_VALUE(const std::string path, mount.nodes.path(folder, name));
    const CreateOptions options = create_options(creator_of(request), mode);
    if (mount.options.lazy) {
      PIF_TRY_VALUE(const bool is_made, create_waiting(request, folder, name, options, info));
      if (is_made) return {};
    }
    const unsigned number = mount.next_client++;
    auto client = mount.clients.use(number, [request] { return fuse_req_interrupted(request) != 0; });
    if (!client) return fail(client.error());
    auto created = (*client)->create_now(path, options);
    if (!created && created.error().code == Code::kExists && (info->flags & O_EXCL) == 0) {
      { const auto done = std::move(*client); }  // its turn is over
      return open_existing(request, folder, name, path, info);
    }
    if (!created) return fail(created.error());
    const Entry entry = created->entry;
    auto content = std::make_shared<Content>(**client, std::move(*created), mount.options.rewrite_max);
    reply_created(request, folder, name, entry, std::move(content), number, info);
    return {};
  });
}

// What a call for an open file does with its content, with the node's client.
template <typename Body>
void answer_open(fuse_req_t request, NodeId node, Body body) {
  answer(request, [&]() -> Status {
    PIF_TRY_VALUE(const auto client, client_for(request, node));
    return body(*mount_of(request).nodes.content(node));
  });
}

void read_file(fuse_req_t request, fuse_ino_t node, std::size_t size, off_t offset, fuse_file_info*) {
  answer_open(request, node, [&](Content& content) -> Status {
    thread_local std::vector<std::byte> buffer;
    if (buffer.size() < size) buffer.resize(size);
    PIF_TRY_VALUE(const std::size_t done,
                  content.read(std::span(buffer).first(size), static_cast<std::uint64_t>(offset)));
    fuse_reply_buf(request, reinterpret_cast<const char*>(buffer.data()), done);
    return {};
  });
}

void write_file(fuse_req_t request, fuse_ino_t node, const char* data, std::size_t size, off_t offset,
                fuse_file_info* info) {
  // What the kernel writes from memory that a program has mapped has its place.
  const bool appends = handle_of(info).appends && info->writepage == 0;
  answer_open(request, node, [&](Content& content) -> Status {
    const auto in = std::as_bytes(std::span(data, size));
    PIF_TRY(appends ? content.append(in, now()) : content.write(in, static_cast<std::uint64_t>(offset), now()));
    content.touch(wall_ns());
    fuse_reply_write(request, size);
    return {};
  });
}

// Commits what was written. That gives the file its time by the server's clock, and a listing may have given the kernel
// what the file was before: the kernel is made to ask again.
template <typename Commit>
Status commit_times(fuse_req_t request, NodeId node, Content& content, Commit commit) {
  const bool was_touched = content.is_touched();
  const Status done = commit();
  const bool is_over = !done || !content.is_touched();
  if (was_touched && is_over) fuse_lowlevel_notify_inval_inode(mount_of(request).session, node, -1, 0);
  return done;
}

void flush_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  const bool is_opened_here = is_opener(request, handle_of(info));
  Mount& mount = mount_of(request);
  if (mount.waiting.is_full()) send_waiting(mount, mount.nodes.client_of(node), Time::min());
  answer_open(request, node, [&](Content& content) -> Status {
    PIF_TRY(commit_times(request, node, content, [&] { return is_opened_here ? content.flush() : content.send(); }));
    fuse_reply_err(request, 0);
    return {};
  });
}

void sync_file(fuse_req_t request, fuse_ino_t node, int, fuse_file_info*) {
  Mount& mount = mount_of(request);
  if (const auto client = client_for(request, node)) mount.nodes.content(node)->close_unsent();
  send_all_waiting(mount);
  answer_open(request, node, [&](Content& content) -> Status {
    PIF_TRY(commit_times(request, node, content, [&] { return content.commit(); }));
    fuse_reply_err(request, 0);
    return {};
  });
}

// Nobody hears of an error here.
void release_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  delete &handle_of(info);
  Mount& mount = mount_of(request);
  {
    const auto client = mount.clients.use(mount.nodes.client_of(node));
    const auto last = mount.nodes.close(node);
    if (client && last) {
      if (const auto done = commit_times(request, node, *last, [&] { return last->finish(); }); !done)
        spdlog::error("{}: what was written is lost: {}", last->entry().name, done.error().to_string());
    }
  }
  fuse_reply_err(request, 0);
}

}  // namespace

Status truncate_closed(Mount& mount, Client& client, NodeId node, std::uint64_t size) {
  PIF_TRY_VALUE(const auto content, open_content(mount, client, node, O_WRONLY));
  Status done = content->truncate(size);
  if (done) done = content->finish();
  return done;
}

void add_file_operations(fuse_lowlevel_ops& operations) {
  operations.open = open_file;
  operations.create = create_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.flush = flush_file;
  operations.fsync = sync_file;
  operations.release = release_file;
}

}  // namespace pif::mount
