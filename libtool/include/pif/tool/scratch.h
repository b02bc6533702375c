// A file without a name on the disk of the worker's LFS, for what does not fit into memory: written from its front,
// then mapped, perhaps by all workers of the machine (Team::share). It is gone with the last process that has it,
// however that ends. Bytes read through its mapping are in the page cache, not in the worker's own memory; they come
// page by page, unless they were asked for (read_ahead.h).
//
// Const calls from several threads are fine. Where the disk cannot give a page of its mapping, the worker that touches
// it ends, and its user reads which file it was and why. A job fails if the disk did not take what one of its workers
// wrote to a scratch file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::tool {

class Mapping;

class Scratch {
 public:
  // Empty, until another one is moved into it. Moving exchanges two of them; the one that goes takes its mapping with
  // it, not the file that others have.
  Scratch();
  // Worker::scratch() makes them. handle: a new file's descriptor. node: named in errors. lost: gets the error, when
  // this object goes, if some of what was written did not reach the disk and may have been read back as something else.
  Scratch(Handle handle, std::string node, std::shared_ptr<std::atomic<int>> lost = {});
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;
  ~Scratch();

  // In bytes, with what has been appended or allocated so far.
  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // A place for the next `bytes` bytes, to be filled before the next call. append(): the same, filled with these.
  // kNoSpace, kIo: what was written before cannot go to the disk. Until map().
  [[nodiscard]] Result<std::byte*> room(std::size_t bytes);
  [[nodiscard]] Status append(std::span<const std::byte> bytes);

  // The next `bytes` bytes, and where they begin: to be written by write_at(), before map().
  [[nodiscard]] Result<std::uint64_t> reserve(std::uint64_t bytes);
  // kNoSpace, kIo. From several threads at once, each its own bytes.
  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;

  // Nothing is written any more: all of it is at bytes() now, until this object goes. Once.
  [[nodiscard]] Status map();
  std::span<const std::byte> bytes() const { return mapped_; }
  // Reads these of them into memory, if they are not there yet; false if the disk cannot be read. They are inside
  // bytes(). As many behind them are read meanwhile.
  bool load(std::uint64_t offset, std::uint64_t size) const;
  // Maps all that is in memory already, which will be looked at here and there: much cheaper than page faults. A hint.
  void populate() const;
  // Instead of append() and map(): so many bytes, zero, to be written in place. kNoSpace if the disk has not got them.
  // space(): all of them; empty if they may not be written here.
  [[nodiscard]] Status allocate(std::uint64_t bytes);
  std::span<std::byte> space() { return is_writable_ ? mapped_ : std::span<std::byte>(); }
  // To a worker on this machine, once it is mapped.
  [[nodiscard]] Result<Handle> share() const;
  // Opens what share() gave; kInvalid if it has not `size` bytes. Others' allocated ones are writable here too.
  static Result<Scratch> adopt(Handle handle, std::uint64_t size, bool writable = false);

 private:
  [[nodiscard]] Status flush();
  [[nodiscard]] Status write(std::span<const std::byte> bytes);
  [[nodiscard]] tl::unexpected<Error> cannot_write(int error) const;
  [[nodiscard]] Status make_mapping();
  void note_lost() const;

  UniqueFd fd_;
  std::string node_;
  std::uint64_t size_ = 0;  // with what is in the buffer
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;  // of it
  std::unique_ptr<Mapping> mapping_;
  std::span<std::byte> mapped_;  // by it
  bool is_writable_ = false;     // by its mapping
  std::shared_ptr<std::atomic<int>> lost_;
};

}  // namespace pif::tool
