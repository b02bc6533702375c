// A local file system in memory, for tests and simulation. Faults it injects: loss of unsynced data and names at a
// crash, a full disk, failed calls, short reads, flipped bits. Same calls, same results.
#pragma once

#include <functional>
#include <memory>

#include "pif/component/storage.h"

namespace pif::component {

// The disk, which outlives the process that "crashed": make a new storage over the same disk to restart.
class MemoryDisk {
 public:
  static std::shared_ptr<MemoryDisk> make();
  virtual ~MemoryDisk() = default;

  // Forgets everything not synced (contents and names). Open files of the old world then fail every call with kIo.
  virtual void crash() = 0;
  virtual void set_capacity(std::uint64_t bytes) = 0;
  virtual void flip_bit(const std::string& path, std::uint64_t byte, unsigned bit) = 0;
  // Asked before every call that touches the disk: ("write", path) -> an error to inject, or Code::kOk. The names of the
  // calls: read write sync resize size clone has_writers share; open adopt remove rename make_folder remove_tree list
  // sync_folder space lock. A failed write has written its first half. A "read" that gets kEndOfFile is short: it returns
  // the first half. kUnsupported for "clone" makes a file system without reflinks. May call the disk (crash() too).
  virtual void set_fault(std::function<Code(std::string_view call, std::string_view path)> fault) = 0;
};

std::unique_ptr<Storage> make_memory_storage(std::shared_ptr<MemoryDisk> disk);

}  // namespace pif::component
