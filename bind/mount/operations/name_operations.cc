// Calls of the kernel for names: looking up, making, removing, renaming.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/fs.h>  // RENAME_NOREPLACE
#include <cerrno>

#include "operations/mount.h"
#include "pif/base/path.h"

namespace pif::mount {
namespace {

// As `answer`, with what is wrong with a name as programs know it.
template <typename Body>
void answer_name(fuse_req_t request, const char* name, Body body) {
  if (!is_utf8(name)) {
    fuse_reply_err(request, EILSEQ);
    return;
  }
  if (const Status done = body(); !done) {
    if (done.error().code == Code::kTooLarge)
      fuse_reply_err(request, ENAMETOOLONG);
    else
      reply_error(request, done.error());
  }
}

void reply_none(fuse_req_t request) {
  fuse_entry_param none = {};
  none.entry_timeout = mount_of(request).options.attr_timeout;
  fuse_reply_entry(request, &none);
}

void look_up(fuse_req_t request, fuse_ino_t folder, const char* name) {
  answer_name(request, name, [&]() -> Status {
    Nodes& nodes = mount_of(request).nodes;
    PIF_TRY_VALUE(const std::string path, nodes.path(folder, name));
    if (const auto node = nodes.find(folder, name)) {
      if (const auto unsent = unsent_entry(request, *node)) {
        reply_entry(request, folder, name, *unsent);
        return {};
      }
    }
    Result<Entry> found = fail(Code::kInternal, "");
    {
      PIF_TRY_VALUE(const auto client, client_for(request, folder));
      found = client->stat(path);
    }
    if (!found && found.error().code == Code::kNotFound) {
      reply_none(request);
      return {};
    }
    if (!found) return fail(found.error());
    PIF_TRY_VALUE(const Entry entry, as_seen_here(request, nodes.here(folder, std::move(*found))));
    reply_entry(request, folder, name, entry);
    return {};
  });
}

void forget(fuse_req_t request, fuse_ino_t node, std::uint64_t lookups) {
  mount_of(request).nodes.forget(node, lookups);
  fuse_reply_none(request);
}

void forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) {
  for (std::size_t i = 0; i < count; ++i) mount_of(request).nodes.forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(request);
}

// Whatever `make` makes at the path, and its entry.
template <typename Make>
void make_at(fuse_req_t request, fuse_ino_t folder, const char* name, Make make) {
  answer_name(request, name, [&]() -> Status {
    PIF_TRY_VALUE(const std::string path, mount_of(request).nodes.path(folder, name));
    Result<Entry> made = fail(Code::kInternal, "");
    {
      PIF_TRY_VALUE(const auto client, client_for(request, folder));
      PIF_TRY(make(*client, path));
      made = client->stat(path);
    }
    if (!made) return fail(made.error());
    reply_entry(request, folder, name, *made);
    return {};
  });
}

void make_folder(fuse_req_t request, fuse_ino_t folder, const char* name, mode_t mode) {
  make_at(request, folder, name, [&](Client& client, const std::string& path) {
    const Creator creator = creator_of(request);
    return client.make_folder(path, false, mode & 07777, {}, {creator.owner, creator.group});
  });
}

EntryKind kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO: return EntryKind::kFifo;
    case S_IFSOCK: return EntryKind::kSocket;
    case S_IFCHR: return EntryKind::kCharacterDevice;
    case S_IFBLK: return EntryKind::kBlockDevice;
    default: return EntryKind::kFile;
  }
}

void make_node(fuse_req_t request, fuse_ino_t folder, const char* name, mode_t mode, dev_t device) {
  make_at(request, folder, name, [&](Client& client, const std::string& path) {
    const Creator creator = creator_of(request);
    const EntryKind kind = kind_of(mode);
    if (kind == EntryKind::kFile) return client.create_empty(path, create_options(creator, mode));
    return client.create_other(path, {kind, {}, device, mode & 07777, creator.owner, creator.group});
  });
}

void make_link(fuse_req_t request, const char* target, fuse_ino_t folder, const char* name) {
  make_at(request, folder, name, [&](Client& client, const std::string& path) {
    const Creator creator = creator_of(request);
    return client.create_other(path, {EntryKind::kLink, target, 0, 0777, creator.owner, creator.group});
  });
}

void read_link(fuse_req_t request, fuse_ino_t node) {
  answer(request, [&]() -> Status {
    PIF_TRY_VALUE(const Entry entry, entry_of(request, node));
    fuse_reply_readlink(request, entry.target.c_str());
    return {};
  });
}

// Of a file that is open here, before its name goes. An error here shows when it is used.
void hold_open(fuse_req_t request, std::optional<NodeId> node) {
  if (!node || !mount_of(request).nodes.content(*node)) return;
  const auto client = client_for(request, *node);
  const auto content = client ? mount_of(request).nodes.content(*node) : nullptr;
  if (!content) return;
  (void)content->hold();
  const auto path = mount_of(request).nodes.path(*node);
  const auto entry = path ? (*client)->stat(*path) : fail(path.error());
  if (entry && mount_of(request).nodes.here(*entry).inode == *node) content->take_attributes(*entry);
}

// A file that is open here and has lost its name is never committed again.
void note_unlinked(fuse_req_t request, std::optional<NodeId> node, const std::string& path) {
  if (!node || !mount_of(request).nodes.content(*node)) return;
  const auto client = client_for(request, *node);
  const auto content = client ? mount_of(request).nodes.content(*node) : nullptr;
  if (content) content->unlink(path.substr(0, path.rfind('/')));
}

// A file that the file system does not know is just dropped. False: it knows it.
bool drop_unsent(fuse_req_t request, std::optional<NodeId> node, const std::string& path) {
  Nodes& nodes = mount_of(request).nodes;
  if (!node || !is_own(*node) || !nodes.content(*node)) return false;
  const auto client = client_for(request, *node);
  const auto content = client ? nodes.content(*node) : nullptr;
  if (!content || !content->is_unsent() || content->is_unlinked()) return false;
  content->unlink(path.substr(0, path.rfind('/')));
  nodes.unlink(*node);
  return true;
}

void remove_name(fuse_req_t request, fuse_ino_t folder, const char* name) {
  answer_name(request, name, [&]() -> Status {
    Nodes& nodes = mount_of(request).nodes;
    PIF_TRY_VALUE(const std::string path, nodes.path(folder, name));
    const std::optional<NodeId> node = nodes.find(folder, name);
    if (drop_unsent(request, node, path)) {
      fuse_reply_err(request, 0);
      return {};
    }
    hold_open(request, node);
    {
      PIF_TRY_VALUE(const auto client, client_for(request, folder));
      PIF_TRY(client->remove(path));
    }
    nodes.unlink(folder, name);
    note_unlinked(request, node, path);
    fuse_reply_err(request, 0);
    return {};
  });
}

// What waits in it is there before: the folder is not empty then.
void remove_folder(fuse_req_t request, fuse_ino_t folder, const char* name) {
  const auto lock = lock_folders(mount_of(request));
  remove_name(request, folder, name);
}

void rename_name(fuse_req_t request, fuse_ino_t from_folder, const char* from, fuse_ino_t to_folder, const char* to,
                 unsigned flags) {
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  // What was closed before a rename is there before it. Folders that are renamed have nothing that waits.
  const auto lock = lock_folders(mount_of(request));
  answer_name(request, to, [&]() -> Status {
    Nodes& nodes = mount_of(request).nodes;
    PIF_TRY_VALUE(const std::string from_path, nodes.path(from_folder, from));
    PIF_TRY_VALUE(const std::string to_path, nodes.path(to_folder, to));
    const std::optional<NodeId> replaced = nodes.find(to_folder, to);
    hold_open(request, replaced);
    {
      PIF_TRY_VALUE(const auto client, client_for(request, from_folder));
      PIF_TRY(client->rename(from_path, to_path, (flags & RENAME_NOREPLACE) != 0));
    }
    nodes.rename(from_folder, from, to_folder, to);
    if (from_path != to_path) note_unlinked(request, replaced, to_path);
    fuse_reply_err(request, 0);
    return {};
  });
}

void refuse_link(fuse_req_t request, fuse_ino_t, fuse_ino_t, const char*) { fuse_reply_err(request, EPERM); }

}  // namespace

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = look_up;
  operations.forget = forget;
  operations.forget_multi = forget_multi;
  operations.mkdir = make_folder;
  operations.mknod = make_node;
  operations.symlink = make_link;
  operations.readlink = read_link;
  operations.unlink = remove_name;
  operations.rmdir = remove_folder;
  operations.rename = rename_name;
  operations.link = refuse_link;
}

}  // namespace pif::mount
