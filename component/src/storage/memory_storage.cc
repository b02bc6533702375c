#include "pif/component/memory_storage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <sys/mman.h>

#include "pif/base/assert.h"
#include "storage/memory_tree.h"

namespace pif::component {
namespace {

class Disk final : public MemoryDisk {
 public:
  using Fault = std::function<Code(std::string_view call, std::string_view path)>;

  std::shared_ptr<MemoryDisk> copy() const override {
    const std::lock_guard guard(mutex);
    auto out = std::make_shared<Disk>();
    out->root = root->copy();
    out->capacity = capacity;
    out->used_bytes = out->root->total();
    return out;
  }
  void crash() override {
    const std::lock_guard guard(mutex);
    root->crash();
    used_bytes = root->total();
    locks.clear();
    ++world;
  }
  void crash(std::size_t block_bytes, const Pick& pick) override {
    write_back(block_bytes, pick);
    crash();
  }
  void write_back(std::size_t block_bytes, const Pick& pick) override {
    const std::lock_guard guard(mutex);
    root->persist_some(block_bytes, pick);
  }
  std::uint64_t used() const override {
    const std::lock_guard guard(mutex);
    return used_bytes;
  }
  std::vector<std::string> files(const std::string& folder) const override {
    const std::lock_guard guard(mutex);
    std::vector<std::string> out;
    if (const auto inode = find_inode(root, folder)) (*inode)->list_files(folder, out);
    return out;
  }
  void set_capacity(std::uint64_t bytes) override {
    const std::lock_guard guard(mutex);
    capacity = bytes;
  }
  void set_inodes(std::uint64_t total, std::uint64_t free) override {
    const std::lock_guard guard(mutex);
    inodes_total = total;
    inodes_free = free;
  }
  void flip_bit(const std::string& path, std::uint64_t byte, unsigned bit) override {
    edit(path, [&](std::vector<std::byte>& bytes) {
      if (byte < bytes.size()) bytes[byte] ^= std::byte{1} << (bit % 8);
    });
  }
  void edit(const std::string& path, const std::function<void(std::vector<std::byte>&)>& change) override {
    const std::lock_guard guard(mutex);
    const auto inode = find_inode(root, path);
    if (!inode) return;
    used_bytes -= (*inode)->total();
    change((*inode)->bytes);
    change((*inode)->durable_bytes);  // a crash does not heal it
    used_bytes += (*inode)->total();
  }
  void set_fault(Fault next) override {
    const std::lock_guard guard(mutex);
    fault = next ? std::make_shared<const Fault>(std::move(next)) : nullptr;
  }

  // What every call asks first, without the mutex: a fault may itself crash the disk.
  Code inject(std::string_view call, std::string_view path) {
    std::shared_ptr<const Fault> ask;
    {
      const std::lock_guard guard(mutex);
      ask = fault;
    }
    return ask ? (*ask)(call, path) : Code::kOk;
  }

  // Makes a file longer or shorter, inside the capacity.
  Status resize(Inode& inode, std::size_t size, const std::string& path) {
    const std::size_t old = inode.bytes.size();
    PIF_TRY(take_room(inode, std::max(size, inode.reserved), path));
    inode.bytes.resize(size);
    inode.mark_dirty(std::min(old, size), std::max(old, size));
    return {};
  }
  // Room for the first `size` bytes of a file, inside the capacity.
  Status reserve(Inode& inode, std::size_t size, const std::string& path) {
    PIF_TRY(take_room(inode, std::max(size, inode.bytes.size()), path));
    inode.reserved = size;
    return {};
  }
  // The inode lost its name. Its bytes count as free at once, though open files keep them.
  void release(Inode& inode) {
    PIF_ASSERT(used_bytes >= inode.total(), used_bytes, inode.total());
    used_bytes -= inode.total();
    inode.unlink();
  }

 private:
  // The file is to take so many bytes.
  Status take_room(const Inode& inode, std::size_t size, const std::string& path) {
    const std::size_t old = inode.total();
    if (size > old && size - old > capacity - std::min(capacity, used_bytes))
      return fail(Code::kNoSpace, fmt::format("cannot write {}: the disk is full", path));
    PIF_ASSERT(!inode.linked || used_bytes >= old, used_bytes, old);
    if (inode.linked) used_bytes = used_bytes - old + size;
    return {};
  }

 public:
  mutable std::mutex mutex;  // guards everything below, and the inodes
  std::shared_ptr<Inode> root = std::make_shared<Inode>(true);
  std::uint64_t world = 0;  // counts crashes
  std::uint64_t capacity = UINT64_MAX;
  std::uint64_t inodes_total = 0, inodes_free = 0;
  std::uint64_t used_bytes = 0;  // bytes of files that have a name
  std::set<std::string, std::less<>> locks;
  std::shared_ptr<const Fault> fault;
};

tl::unexpected<Error> injected(Code code, std::string_view call, std::string_view path) {
  return fail(code, fmt::format("cannot {} {}: {}", call, path, code_name(code)));
}

tl::unexpected<Error> crashed(std::string_view path) {
  return fail(Code::kIo, fmt::format("{} was open when the machine crashed", path));
}

// An open file description: what several File objects, here and at others, may share.
struct Opened {
  Opened(std::shared_ptr<Disk> on, std::shared_ptr<Inode> what, std::string where, bool may_write)
      : disk(std::move(on)), inode(std::move(what)), path(std::move(where)), writable(may_write), world(disk->world) {
    if (writable) ++inode->writers;
  }
  ~Opened() {
    const std::lock_guard guard(disk->mutex);
    if (writable) --inode->writers;
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  const std::shared_ptr<Disk> disk;
  const std::shared_ptr<Inode> inode;
  const std::string path;
  const bool writable;
  const std::uint64_t world;  // the disk's when it was opened
};

class MemoryFile final : public File {
 public:
  explicit MemoryFile(std::shared_ptr<Opened> opened) : opened_(std::move(opened)) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<const Piece> pieces) override {
    const Code code = opened_->disk->inject("read", opened_->path);
    if (code != Code::kOk && code != Code::kEndOfFile) return injected(code, "read", opened_->path);
    const std::lock_guard guard(opened_->disk->mutex);
    if (stale()) return crashed(opened_->path);
    const auto& bytes = opened_->inode->bytes;
    std::size_t wanted = 0;
    for (const Piece& piece : pieces) wanted += piece.size;
    std::size_t left = std::min<std::uint64_t>(wanted, bytes.size() - std::min<std::uint64_t>(offset, bytes.size()));
    if (code == Code::kEndOfFile) left /= 2;
    const std::size_t total = left;
    for (const Piece& piece : pieces) {
      const std::size_t n = std::min(left, piece.size);
      if (n == 0) continue;
      std::memcpy(piece.data, bytes.data() + offset, n);
      offset += n;
      left -= n;
    }
    return total;
  }

  Result<std::size_t> read_cached(std::uint64_t offset, std::span<std::byte> into) override {
    if (opened_->disk->inject("read_cached", opened_->path) != Code::kOk) return 0;
    return File::read(offset, into);
  }

  Status write(std::uint64_t offset, std::span<const ConstPiece> pieces) override {
    const Code code = opened_->disk->inject("write", opened_->path);
    const std::lock_guard guard(opened_->disk->mutex);
    PIF_TRY(usable_for_writing());
    std::size_t total = 0;
    for (const ConstPiece& piece : pieces) total += piece.size;
    // A call that fails has done half of its work.
    std::size_t left = code == Code::kOk ? total : total / 2;
    for (const ConstPiece& piece : pieces) {
      const std::size_t n = std::min(left, piece.size);
      PIF_TRY(put(offset, piece.data, n));
      offset += n;
      left -= n;
    }
    if (code != Code::kOk) return injected(code, "write", opened_->path);
    return {};
  }

  Status sync() override {
    const Code code = opened_->disk->inject("sync", opened_->path);
    const std::lock_guard guard(opened_->disk->mutex);
    if (stale()) return crashed(opened_->path);
    if (opened_->inode->lost) return injected(Code::kIo, "sync", opened_->path);
    if (code == Code::kOk) {
      opened_->inode->sync();
      return {};
    }
    opened_->inode->forget_dirty();
    return injected(code, "sync", opened_->path);
  }

  Status check_written() override {
    PIF_TRY(begin("check_written"));
    const std::lock_guard guard(opened_->disk->mutex);
    if (stale()) return crashed(opened_->path);
    if (opened_->inode->lost) return injected(Code::kIo, "write", opened_->path);
    return {};
  }

  Status resize(std::uint64_t size) override {
    PIF_TRY(begin("resize"));
    const std::lock_guard guard(opened_->disk->mutex);
    PIF_TRY(usable_for_writing());
    Inode& inode = *opened_->inode;
    if (size < inode.reserved) PIF_TRY(opened_->disk->reserve(inode, size, opened_->path));
    return opened_->disk->resize(inode, size, opened_->path);
  }

  Status punch(std::uint64_t offset, std::uint64_t size) override {
    PIF_TRY(begin("punch"));
    const std::lock_guard guard(opened_->disk->mutex);
    PIF_TRY(usable_for_writing());
    auto& bytes = opened_->inode->bytes;
    const auto from = static_cast<std::size_t>(std::min<std::uint64_t>(offset, bytes.size()));
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(size, bytes.size() - from));
    if (count == 0) return {};
    std::memset(bytes.data() + from, 0, count);
    opened_->inode->mark_dirty(from, from + count);
    return {};
  }

  Status reserve(std::uint64_t size) override {
    PIF_TRY(begin("reserve"));
    const std::lock_guard guard(opened_->disk->mutex);
    PIF_TRY(usable_for_writing());
    if (size > SIZE_MAX / 2)
      return fail(Code::kNoSpace, fmt::format("cannot reserve {} bytes for {}", size, opened_->path));
    Inode& inode = *opened_->inode;
    return opened_->disk->reserve(inode, std::max<std::size_t>(size, inode.reserved), opened_->path);
  }

  // Of blocks as a disk has them; those that hold zeros are holes.
  Result<std::uint64_t> next_data(std::uint64_t offset) override {
    constexpr std::ptrdiff_t kBlock = 4096;
    PIF_TRY(begin("next_data"));
    const std::lock_guard guard(opened_->disk->mutex);
    if (stale()) return crashed(opened_->path);
    const auto& bytes = opened_->inode->bytes;
    if (offset >= bytes.size()) return bytes.size();
    const auto found = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(offset), bytes.end(),
                                    [](std::byte byte) { return byte != std::byte{0}; });
    if (found == bytes.end()) return bytes.size();
    const auto block = static_cast<std::uint64_t>((found - bytes.begin()) / kBlock * kBlock);
    return std::max(offset, block);
  }

  Result<std::uint64_t> size() override {
    PIF_TRY(begin("size"));
    const std::lock_guard guard(opened_->disk->mutex);
    if (stale()) return crashed(opened_->path);
    return opened_->inode->bytes.size();
  }

  void start_writeback(std::uint64_t, std::uint64_t) override {}

  Status clone_from(File& source) override {
    auto* other = dynamic_cast<MemoryFile*>(&source);
    if (other == nullptr || other->opened_->disk != opened_->disk)
      return fail(Code::kUnsupported, fmt::format("{} is not on the same storage", opened_->path));
    PIF_TRY(begin("clone"));
    const std::lock_guard guard(opened_->disk->mutex);
    PIF_TRY(usable_for_writing());
    const auto& from = *other->opened_->inode;
    auto& to = *opened_->inode;
    PIF_TRY(opened_->disk->resize(to, from.bytes.size(), opened_->path));
    if (&to != &from) to.bytes = from.bytes;
    to.mark_dirty(0, to.bytes.size());
    return {};
  }

  Result<bool> has_writers() override {
    PIF_TRY(begin("has_writers"));
    const std::lock_guard guard(opened_->disk->mutex);
    if (stale()) return crashed(opened_->path);
    if (opened_->writable) return fail(Code::kInvalid, fmt::format("{} is itself open for writing", opened_->path));
    return opened_->inode->writers > 0;
  }

  Result<Handle> share() override {
    PIF_TRY(begin("share"));
    return Handle{UniqueFd(), opened_};
  }

 private:
  bool stale() const { return opened_->world != opened_->disk->world; }

  Status begin(std::string_view call) {
    const Code code = opened_->disk->inject(call, opened_->path);
    if (code != Code::kOk) return injected(code, call, opened_->path);
    return {};
  }

  Status usable_for_writing() {
    if (stale()) return crashed(opened_->path);
    if (!opened_->writable) return fail(Code::kReadOnly, fmt::format("{} is open for reading only", opened_->path));
    return {};
  }

  // Writes what fits: a full disk takes the first part.
  Status put(std::uint64_t offset, const std::byte* data, std::size_t size) {
    if (size == 0) return {};
    Inode& inode = *opened_->inode;
    if (offset > SIZE_MAX / 2 || size > SIZE_MAX / 2)
      return fail(Code::kTooLarge, fmt::format("cannot write {} at byte {}", opened_->path, offset));
    Status status;
    if (offset + size > inode.bytes.size()) {
      status = opened_->disk->resize(inode, offset + size, opened_->path);
      if (!status) size = inode.bytes.size() - std::min<std::uint64_t>(offset, inode.bytes.size());
    }
    if (size == 0) return status;
    std::memcpy(inode.bytes.data() + offset, data, size);
    inode.mark_dirty(offset, offset + size);
    return status;
  }

  const std::shared_ptr<Opened> opened_;
};

class MemoryStorage final : public Storage {
 public:
  explicit MemoryStorage(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {
    const std::lock_guard guard(disk_->mutex);
    world_ = disk_->world;
  }
  ~MemoryStorage() override {
    const std::lock_guard guard(disk_->mutex);
    if (world_ != disk_->world) return;
    for (const auto& path : locks_) disk_->locks.erase(path);
  }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    PIF_TRY(begin("open", path));
    std::shared_ptr<Opened> opened;  // goes after the guard: its destructor locks
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(path);
    PIF_TRY_VALUE(auto parent, find_parent(disk_->root, path));
    auto& [folder, name] = parent;
    if (!folder->names.contains(name)) {
      if (mode != OpenMode::kCreate) return fail(Code::kNotFound, fmt::format("cannot open {}: no such file", path));
      folder->change({{name, std::make_shared<Inode>(false)}});
    }
    auto inode = folder->names[name];
    if (inode->folder) return fail(Code::kIsDirectory, fmt::format("{} is a folder", path));
    opened = std::make_shared<Opened>(disk_, std::move(inode), path, mode != OpenMode::kRead);
    return std::make_unique<MemoryFile>(std::move(opened));
  }

  Result<std::unique_ptr<File>> adopt(Handle handle) override {
    auto opened = std::static_pointer_cast<Opened>(std::move(handle.object));
    if (opened == nullptr) return fail(Code::kInvalid, "no file came with the message");
    PIF_TRY(begin("adopt", opened->path));
    return std::make_unique<MemoryFile>(std::move(opened));
  }

  Result<Handle> make_nameless(const std::string& folder) override {
    PIF_TRY(begin("make_nameless", folder));
    UniqueFd fd(::memfd_create("pif-nameless", MFD_CLOEXEC));
    if (!fd) return fail_errno(errno, "cannot make a file in memory");
    return Handle{std::move(fd), nullptr};
  }

  Status remove(const std::string& path) override {
    PIF_TRY(begin("remove", path));
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(path);
    auto parent = find_parent(disk_->root, path);
    if (!parent && parent.error().code == Code::kNotFound) return {};
    if (!parent) return fail(std::move(parent.error()));
    auto& [folder, name] = *parent;
    const auto entry = folder->names.find(name);
    if (entry == folder->names.end()) return {};
    if (entry->second->folder) return fail(Code::kIsDirectory, fmt::format("cannot remove {}: a folder", path));
    disk_->release(*entry->second);
    folder->change({{name, nullptr}});
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    PIF_TRY(begin("rename", from));
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(from);
    PIF_TRY_VALUE(auto inode, find_inode(disk_->root, from));
    PIF_TRY_VALUE(auto source, find_parent(disk_->root, from));
    PIF_TRY_VALUE(auto target, find_parent(disk_->root, to));
    const auto old = target.first->names.find(target.second);
    if (old != target.first->names.end()) {
      if (old->second == inode) return {};
      if (old->second->folder != inode->folder)
        return fail(inode->folder ? Code::kNotDirectory : Code::kIsDirectory,
                    fmt::format("cannot rename {} to {}: not of one kind", from, to));
      if (old->second->folder && !old->second->names.empty())
        return fail(Code::kNotEmpty, fmt::format("cannot rename {} to {}: not empty", from, to));
      disk_->release(*old->second);
    }
    if (source.first == target.first) {
      source.first->change({{source.second, nullptr}, {target.second, std::move(inode)}});
      return {};
    }
    source.first->change({{source.second, nullptr}});
    target.first->change({{target.second, std::move(inode)}});
    return {};
  }

  Status make_folder(const std::string& path) override {
    PIF_TRY(begin("make_folder", path));
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(path);
    std::shared_ptr<Inode> at = disk_->root;
    for (const auto part : path_parts(path)) {
      if (!at->names.contains(part)) at->change({{std::string(part), std::make_shared<Inode>(true)}});
      const auto next = at->names.find(part)->second;
      if (!next->folder) return fail(Code::kNotDirectory, fmt::format("cannot make {}: {} is a file", path, part));
      at = next;
    }
    return {};
  }

  Status remove_tree(const std::string& path) override {
    PIF_TRY(begin("remove_tree", path));
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(path);
    const auto parent = find_parent(disk_->root, path);
    if (!parent) return parent.error().code == Code::kNotFound ? Status() : Status(fail(parent.error()));
    const auto entry = parent->first->names.find(parent->second);
    if (entry == parent->first->names.end()) return {};
    disk_->release(*entry->second);
    parent->first->change({{parent->second, nullptr}});
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    PIF_TRY(begin("list", path));
    const std::lock_guard guard(disk_->mutex);
    PIF_TRY_VALUE(const auto folder, folder_at(path));
    std::vector<std::string> names;
    for (const auto& [name, inode] : folder->names) names.push_back(name);
    return names;
  }

  Status sync_folder(const std::string& path) override {
    PIF_TRY(begin("sync_folder", path));
    const std::lock_guard guard(disk_->mutex);
    PIF_TRY_VALUE(const auto folder, folder_at(path));
    folder->durable_names = folder->names;
    folder->changes.clear();
    return {};
  }

  // A fault of a file's "sync" loses that file's bytes, and the rest becomes durable.
  Status sync_all(const std::string& path) override {
    PIF_TRY(begin("sync_all", path));
    std::vector<std::string> files;
    {
      const std::lock_guard guard(disk_->mutex);
      PIF_TRY(folder_at(path));
      disk_->root->list_files("", files);
    }
    std::set<std::string> lost;
    for (const std::string& file : files)
      if (disk_->inject("sync", file) != Code::kOk) lost.insert(file);
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(path);
    for (const std::string& file : lost)
      if (const auto inode = find_inode(disk_->root, file)) (*inode)->lose();
    disk_->root->sync_below();
    return lost.empty() ? Status() : Status(injected(Code::kIo, "sync", *lost.begin()));
  }

  Result<Space> space(const std::string& path) override {
    PIF_TRY(begin("space", path));
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(path);
    return Space{disk_->capacity, disk_->capacity - std::min(disk_->capacity, disk_->used_bytes), disk_->inodes_total,
                 disk_->inodes_free};
  }

  // Holes are in memory, too.
  Result<std::optional<std::uint64_t>> stored_bytes(const std::string& path) override {
    PIF_TRY(begin("stored_bytes", path));
    const std::lock_guard guard(disk_->mutex);
    if (stale()) return crashed(path);
    const auto inode = find_inode(disk_->root, path);
    if (inode) return (*inode)->total();
    if (inode.error().code == Code::kNotFound) return std::nullopt;
    return fail(inode.error());
  }

  Status lock(const std::string& path) override {
    PIF_TRY(begin("lock", path));
    const std::lock_guard guard(disk_->mutex);
    PIF_TRY_VALUE(const auto folder, folder_at(path));
    (void)folder;
    if (!disk_->locks.insert(path).second)
      return fail(Code::kBusy, fmt::format("{} is in use by another process of this simulation", path));
    locks_.push_back(path);
    return {};
  }

 private:
  bool stale() const { return world_ != disk_->world; }

  Status begin(std::string_view call, const std::string& path) {
    const Code code = disk_->inject(call, path);
    if (code != Code::kOk) return injected(code, call, path);
    return {};
  }

  Result<std::shared_ptr<Inode>> folder_at(const std::string& path) {
    if (stale()) return crashed(path);
    PIF_TRY_VALUE(auto inode, find_inode(disk_->root, path));
    if (!inode->folder) return fail(Code::kNotDirectory, fmt::format("{} is not a folder", path));
    return inode;
  }

  const std::shared_ptr<Disk> disk_;
  std::uint64_t world_ = 0;         // the disk's when this "process" started
  std::vector<std::string> locks_;  // guarded by the disk's mutex
};

}  // namespace

std::shared_ptr<MemoryDisk> MemoryDisk::make() { return std::make_shared<Disk>(); }

std::unique_ptr<Storage> make_memory_storage(std::shared_ptr<MemoryDisk> disk) {
  return std::make_unique<MemoryStorage>(std::static_pointer_cast<Disk>(std::move(disk)));
}

}  // namespace pif::component
