// Calls of the kernel that list folders. A listing is read in pages, and each page is forgotten when the next comes.
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "operations/mount.h"

namespace pif::mount {
namespace {

constexpr std::uint32_t kPageEntries = 1000;
constexpr off_t kDots = 2;  // places of "." and ".."

// An open folder. Each entry has a place: programs may go back to one.
class Listing {
 public:
  // The entry at this place, behind the dots; nullptr: there is none. Valid until the next call. list: ListPage of what
  // follows a name; asked if the place is in no page that was read.
  template <typename List>
  Result<const Entry*> at(std::uint64_t place, List list) {
    while (true) {
      if (place >= first_ && place - first_ < page_.size()) return &page_[place - first_];
      const bool is_behind = is_read_ && place >= first_ + page_.size();
      if (is_behind && !has_more_) return nullptr;
      if (is_behind) {
        starts_.push_back({first_ + page_.size(), page_.back().name});
      } else {  // back to the page that has it
        while (starts_.size() > 1 && starts_.back().place > place) starts_.pop_back();
      }
      PIF_TRY_VALUE(ListPage page, list(starts_.back().after));
      take(std::move(page));
    }
  }
  // From the beginning, as it is now.
  void rewind() {
    starts_.resize(1);
    page_.clear();
    first_ = 0;
    is_read_ = false;
  }

 private:
  struct Start {
    std::uint64_t place = 0;
    std::string after;
  };
  void take(ListPage page) {
    page_ = std::move(page.entries);
    has_more_ = page.more && !page_.empty();
    first_ = starts_.back().place;
    is_read_ = true;
  }

  std::vector<Start> starts_{1};  // of the pages that were read
  std::vector<Entry> page_;
  std::uint64_t first_ = 0;  // place of the page's first entry
  bool has_more_ = false;
  bool is_read_ = false;
};

Listing& listing_of(fuse_file_info* info) { return *reinterpret_cast<Listing*>(info->fh); }

void open_folder(fuse_req_t request, fuse_ino_t folder, fuse_file_info* info) {
  Mount& mount = mount_of(request);
  if (mount.options.lazy) {
    // Before a program looks at the folder's time, and reads it.
    send_all_waiting(mount);
    fuse_lowlevel_notify_inval_inode(mount.session, folder, -1, 0);
  }
  auto listing = std::make_unique<Listing>();
  info->fh = reinterpret_cast<std::uint64_t>(listing.get());
  if (fuse_reply_open(request, info) == 0) (void)listing.release();
}

void close_folder(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  delete &listing_of(info);
  fuse_reply_err(request, 0);
}

// What goes into one answer.
class Page {
 public:
  Page(fuse_req_t request, std::size_t size, bool with_attributes)
      : request_(request), bytes_(size), with_attributes_(with_attributes) {}

  // False: it does not fit any more. Entries with attributes count as looked up.
  bool add(NodeId folder, const char* name, const Entry& entry, bool is_dot, off_t next) {
    fuse_entry_param out = {};
    out.attr = attributes_of(entry);
    std::size_t size = 0;
    const std::size_t left = bytes_.size() - used_;
    if (with_attributes_) {
      if (!is_dot) {
        out.ino = entry.inode;
        out.attr_timeout = out.entry_timeout = mount_of(request_).options.attr_timeout;
      }
      size = fuse_add_direntry_plus(request_, bytes_.data() + used_, left, name, &out, next);
    } else {
      size = fuse_add_direntry(request_, bytes_.data() + used_, left, name, &out.attr, next);
    }
    if (size > left) return false;
    used_ += size;
    if (with_attributes_ && !is_dot) {
      mount_of(request_).nodes.look_up(folder, name, entry);
      mount_of(request_).nodes.see_folder(entry.inode, entry);
    }
    return true;
  }
  void send() { fuse_reply_buf(request_, bytes_.data(), used_); }

 private:
  fuse_req_t request_;
  std::vector<char> bytes_;
  std::size_t used_ = 0;
  bool with_attributes_;
};

Entry dot(NodeId node) {
  Entry entry;
  entry.kind = EntryKind::kFolder;
  entry.inode = node;
  return entry;
}

void read_any(fuse_req_t request, fuse_ino_t folder, std::size_t size, off_t offset, fuse_file_info* info,
              bool with_attributes) {
  answer(request, [&]() -> Status {
    Mount& mount = mount_of(request);
    Listing& listing = listing_of(info);
    PIF_TRY_VALUE(const std::string path, mount.nodes.path(folder));
    const auto list = [&](const std::string& after) -> Result<ListPage> {
      PIF_TRY_VALUE(const auto client, client_for(request, folder));
      return client->list(path, after, kPageEntries);
    };
    Page page(request, size, with_attributes);
    if (offset == 0) {
      send_all_waiting(mount);
      listing.rewind();
    }
    off_t at = offset;
    bool fits = true;
    for (; at < kDots && fits; ++at) fits = page.add(folder, at == 0 ? "." : "..", dot(folder), true, at + 1);
    while (fits) {
      PIF_TRY_VALUE(const Entry* const entry, listing.at(static_cast<std::uint64_t>(at - kDots), list));
      if (entry == nullptr) break;
      const Entry here = mount.nodes.here(folder, *entry);
      if (mount.nodes.content(here.inode)) {  // open here
        PIF_TRY_VALUE(const Entry seen, as_seen_here(request, here));
        fits = page.add(folder, seen.name.c_str(), seen, false, at + 1);
      } else {
        fits = page.add(folder, here.name.c_str(), here, false, at + 1);
      }
      ++at;
    }
    page.send();
    return {};
  });
}

void read_folder(fuse_req_t request, fuse_ino_t folder, std::size_t size, off_t offset, fuse_file_info* info) {
  read_any(request, folder, size, offset, info, false);
}
void read_folder_plus(fuse_req_t request, fuse_ino_t folder, std::size_t size, off_t offset, fuse_file_info* info) {
  read_any(request, folder, size, offset, info, true);
}
void sync_folder(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) { fuse_reply_err(request, 0); }  // it is durable

}  // namespace

void add_folder_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = open_folder;
  operations.readdir = read_folder;
  operations.readdirplus = read_folder_plus;
  operations.releasedir = close_folder;
  operations.fsyncdir = sync_folder;
}

}  // namespace pif::mount
