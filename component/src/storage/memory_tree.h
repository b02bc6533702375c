// The content of a memory disk: inodes with the contents the process sees and those a crash leaves. Thread-safety:
// none; MemoryDisk's mutex guards all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pif/base/result.h"

namespace pif::component {

struct Inode {
  using Names = std::map<std::string, std::shared_ptr<Inode>, std::less<>>;
  // Names that change together, and what they stand for afterwards: nothing if they go.
  using Change = std::vector<std::pair<std::string, std::shared_ptr<Inode>>>;
  using Pick = std::function<std::uint64_t(std::uint64_t limit)>;

  explicit Inode(bool is_folder) : folder(is_folder) {}

  const bool folder;

  // A folder's.
  Names names;
  Names durable_names;
  std::vector<Change> changes;  // of names, since the folder was synced

  // A file's. Bytes [dirty_begin, dirty_end) may differ from the durable ones.
  std::vector<std::byte> bytes;
  std::vector<std::byte> durable_bytes;
  std::size_t dirty_begin = SIZE_MAX;
  std::size_t dirty_end = 0;
  std::size_t writers = 0;   // open file objects that may write
  std::size_t reserved = 0;  // bytes from the front on that have room, as long as nobody cuts the file off before
  bool lost = false;         // dirty blocks could not be written, and no sync has failed yet
  bool linked = true;        // has a name, so that its bytes count against the capacity

  void mark_dirty(std::size_t begin, std::size_t end);
  void sync();
  // A sync has failed: what it was to write is taken for clean, as kernels do, and never written.
  void forget_dirty();
  // The same, by a sync of all: the next sync of the file, or question, fails.
  void lose();
  // Everything here and below is durable, names too.
  void sync_below();
  // A folder's names, one way of changing them.
  void change(Change change);
  // Changes that a kernel may have written back by now, here and below: changes of names, blocks of files, sizes; each
  // or not.
  void persist_some(std::size_t block_bytes, const Pick& pick);
  // The durable state, here and in everything below, as other inodes.
  std::shared_ptr<Inode> copy() const;
  // Back to what is durable, here and in everything below.
  void crash();
  // Here and in everything below.
  void unlink();
  // Bytes of all files below, or of this one.
  std::uint64_t total() const;
  // Paths of all files below, or its own.
  void list_files(const std::string& path, std::vector<std::string>& out) const;

 private:
  static void apply(Names& names, const Change& change);
  void persist_names(const Pick& pick);
  void persist_blocks(std::size_t block_bytes, const Pick& pick);
};

// Splits "/a//b/c" into {"a", "b", "c"}.
std::vector<std::string_view> path_parts(std::string_view path);
// The inode at the path; kNotFound or kNotDirectory name the path.
Result<std::shared_ptr<Inode>> find_inode(const std::shared_ptr<Inode>& root, std::string_view path);
// The folder a path is in, and the last part of the path. kInvalid for the root.
Result<std::pair<std::shared_ptr<Inode>, std::string>> find_parent(const std::shared_ptr<Inode>& root,
                                                                   std::string_view path);

}  // namespace pif::component
