// A local file system in memory, for tests and simulation. Faults it injects: loss of unsynced data and names at a
// crash, all of it or any part, with torn writes; a full disk, failed calls, short reads and writes, syncs that fail
// and lose what they were to write, flipped bits, blocks that landed elsewhere. Same calls, same results. Any thread.
#pragma once

#include <functional>
#include <memory>

#include "pif/component/storage.h"

namespace pif::component {

// The disk, which outlives the process that "crashed": make a new storage over the same disk to restart.
class MemoryDisk {
 public:
  // An empty one, of unlimited capacity, without faults.
  static std::shared_ptr<MemoryDisk> make();
  // Another disk, with what is durable on this one; of the same capacity, without faults.
  virtual std::shared_ptr<MemoryDisk> copy() const = 0;
  virtual ~MemoryDisk() = default;

  // Forgets everything not synced (contents and names). Open files of the old world then fail every call with kIo.
  virtual void crash() = 0;
  // pick(limit) gives a number below limit: decides what has been written back unasked.
  using Pick = std::function<std::uint64_t(std::uint64_t limit)>;
  // Forgets any part of what is not synced, as `pick` decides: each block of block_bytes is old, new, or (where the
  // file grew) zeros; each size and each change of names (create, remove, rename) is old or new.
  virtual void crash(std::size_t block_bytes, const Pick& pick) = 0;
  // Makes any part of it durable, as a kernel does at any time.
  virtual void write_back(std::size_t block_bytes, const Pick& pick) = 0;
  // Files with names take so many bytes at most: kNoSpace beyond it. Existing files stay.
  virtual void set_capacity(std::uint64_t bytes) = 0;
  virtual void set_inodes(std::uint64_t total,
                          std::uint64_t free) = 0;  // what space() says of them; nothing is refused
  // Changes what is stored, durable or not, behind everybody's back: rot, or a write that landed here by mistake.
  virtual void edit(const std::string& path, const std::function<void(std::vector<std::byte>& bytes)>& change) = 0;
  virtual std::uint64_t used() const = 0;                                       // bytes of files that have a name
  virtual std::vector<std::string> files(const std::string& folder) const = 0;  // paths of all in it and below, sorted
  // edit() of one bit (0: the lowest) of one byte; nothing happens past the file's end, or without such a file.
  virtual void flip_bit(const std::string& path, std::uint64_t byte, unsigned bit) = 0;
  // Asked before every call that touches the disk: ("write", path) -> an error to inject, or Code::kOk. The names of
  // the calls: read read_cached write sync check_written resize punch next_data size clone has_writers share; open
  // adopt make_nameless remove rename make_folder remove_tree list sync_folder sync_all space lock. sync_all also asks
  // "sync" for each file. A failed write has written its first half; after a failed sync what it was to write is never
  // written. A "read" that gets kEndOfFile is short: it returns the first half. A "read_cached" that gets any code
  // finds nothing in memory; else it asks as a "read", too. kUnsupported for "clone" or "punch" makes a file system
  // that cannot. May call the disk (crash() too).
  virtual void set_fault(std::function<Code(std::string_view call, std::string_view path)> fault) = 0;
};

// One process's view of the disk. After a crash() its calls fail with kIo, and another one is made. Locks that it holds
// end with it. Any thread.
std::unique_ptr<Storage> make_memory_storage(std::shared_ptr<MemoryDisk> disk);

}  // namespace pif::component
