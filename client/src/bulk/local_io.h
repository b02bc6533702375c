// The local end of a bulk transfer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "pif/base/result.h"
#include "pif/client/bulk.h"

namespace pif::client {

class LocalFile {
 public:
  // `fd` stays the caller's. Positions count from where the descriptor stands, plus options.local_offset. A signal that
  // sets options.cancel ends a wait for a silent pipe, too.
  [[nodiscard]] static Result<LocalFile> of(int fd, const BulkOptions& options, bool writing);

  bool seekable() const { return seekable_; }   // positioned calls work, from several threads
  std::uint64_t size() const { return size_; }  // bytes from position 0 of a regular file; 0 if not known
  // Called a few times a second while read() waits for a silent pipe.
  void set_idle(std::function<void()> idle) { idle_ = std::move(idle); }
  // Fills `out` unless the file ends: bytes read.
  [[nodiscard]] Result<std::size_t> read(std::uint64_t position, std::span<std::byte> out) const;
  [[nodiscard]] Status write(std::uint64_t position, std::span<const std::byte> in) const;
  // Leaves the descriptor behind what was moved, as read and write would.
  void set_position(std::uint64_t position) const;

 private:
  // After a call that ended with an error of errno: whether to make it again.
  [[nodiscard]] Status again_or(std::string_view what) const;
  [[nodiscard]] Status check_cancel() const;
  // Until there is something to read, or the end.
  [[nodiscard]] Status await_input() const;

  int fd_ = -1;
  const std::atomic<bool>* cancel_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
  bool seekable_ = false;
  std::function<void()> idle_;
};

// Progress of a transfer, and whether it shall go on.
class Progress {
 public:
  Progress(const BulkOptions& options, std::uint64_t bytes_total) : options_(options), bytes_total_(bytes_total) {}
  [[nodiscard]] Status report(const BulkCounts& done) const;
  bool cancelled() const { return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed); }
  [[nodiscard]] Status check() const;

 private:
  const BulkOptions& options_;
  std::uint64_t bytes_total_;
};

}  // namespace pif::client
