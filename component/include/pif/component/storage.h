// The storage seam: files and folders of one local file system. Real (real_storage.h) or in memory with faults
// (memory_storage.h). Offsets and sizes in bytes. Files may be used by several threads at once for positioned calls, a
// Storage for all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::component {

// Piece of memory for vectored calls.
struct Piece {
  std::byte* data = nullptr;
  std::size_t size = 0;
};
struct ConstPiece {
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

class File {
 public:
  virtual ~File() = default;
  // Fills the pieces in order from `offset`; fewer bytes only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<const Piece> pieces) = 0;
  // The same, of what is in memory: it does not wait for a disk. Fewer bytes, also none, where it would have to, or
  // where nobody knows.
  virtual Result<std::size_t> read_cached(std::uint64_t offset, std::span<std::byte> into) = 0;
  // All of it, or an error (after which any part may have been written).
  virtual Status write(std::uint64_t offset, std::span<const ConstPiece> pieces) = 0;
  virtual Status sync() = 0;  // data and size durable; after an error nothing is known: never retried
  // After Storage::sync_all: whether all that was written here has got to the disk. The result of sync(), without
  // waiting for it.
  virtual Status check_written() = 0;
  // Cuts it off there, or makes it longer with zeros. kReadOnly, of writes too: it is not open for writing.
  virtual Status resize(std::uint64_t size) = 0;
  // Gives the blocks back; reads as zeros, and the size stays. kUnsupported where the file system cannot. kReadOnly.
  virtual Status punch(std::uint64_t offset, std::uint64_t size) = 0;
  // Where the first byte at `offset` or behind it is that is in no hole: nothing between has to be read, for it is
  // zero. `offset` where the file system cannot tell; the file's size if there is none.
  virtual Result<std::uint64_t> next_data(std::uint64_t offset) = 0;
  virtual Result<std::uint64_t> size() = 0;  // as all who have it open have made it by now
  // Asks for early write-back, so that a later sync has less to do. Only a hint.
  virtual void start_writeback(std::uint64_t offset, std::uint64_t size) = 0;
  // Shares all blocks of `source` (FICLONE). kUnsupported where the file system cannot.
  virtual Status clone_from(File& source) = 0;
  // Whether any descriptor or mapping other than this one may still write. This file must be open read-only.
  // kInvalid if it is not.
  virtual Result<bool> has_writers() = 0;
  // A handle another process may hold; the same access as this file.
  virtual Result<Handle> share() = 0;
  // Takes room for bytes [0, size), so that writing them does not fail for lack of it; the file's size and what is read
  // stay. Room behind the size is freed by the next resize(), or with the file. kNoSpace; kUnsupported where the file
  // system cannot. kReadOnly.
  virtual Status reserve(std::uint64_t size) = 0;

  // The same with one piece of memory.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) {
    const Piece piece{into.data(), into.size()};
    return read(offset, std::span(&piece, 1));
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) {
    const ConstPiece piece{from.data(), from.size()};
    return write(offset, std::span(&piece, 1));
  }
};

enum class OpenMode : std::uint8_t {
  kRead,
  kWrite /* read and write */,
  kCreate /* write; made if missing, mode 0600 */
};

struct Space {
  std::uint64_t total = 0;  // bytes
  std::uint64_t free = 0;
  std::uint64_t inodes_total = 0;  // 0: the file system makes as many as it needs
  std::uint64_t inodes_free = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;
  // kNotFound; kIsDirectory for a folder; kInvalid for what is no regular file. The last name is not followed if it is
  // a link. Its name is durable after sync_folder().
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Result<std::unique_ptr<File>> adopt(Handle handle) = 0;  // what share() made, after it travelled
  // A new file in that folder without a name, to read and write and map: a descriptor, even in memory. It is gone with
  // the last process that has it.
  virtual Result<Handle> make_nameless(const std::string& folder) = 0;
  virtual Status remove(const std::string& path) = 0;  // a missing file is no error
  // A file that has the name `to` is replaced, in one step.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status make_folder(const std::string& path) = 0;  // with parents; existing is no error; mode 0700
  // A file, or a folder with all that is in it; what is missing is no error. Links are removed, not followed.
  virtual Status remove_tree(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;  // names, sorted
  virtual Status sync_folder(const std::string& path) = 0;  // names made or removed in it are durable
  // Bytes, sizes and names of all files of the file system that the folder is on are durable, other people's too; what
  // became of one file, its check_written() says. kIo: something was not written. kUnsupported: not known to be durable
  // here.
  virtual Status sync_all(const std::string& path) = 0;
  // Space of the file system that the path is on; free: what this process may still use.
  virtual Result<Space> space(const std::string& path) = 0;
  // Takes the folder for this Storage, until it is destroyed: kBusy, naming the holder, if another has it.
  virtual Status lock(const std::string& path) = 0;
  // Bytes that a file takes on the disk, as its file system counts blocks: holes nothing, shared blocks each time.
  // Nothing: it is missing.
  virtual Result<std::optional<std::uint64_t>> stored_bytes(const std::string& path) = 0;
};

}  // namespace pif::component
