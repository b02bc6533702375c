// A file that is mapped, and what becomes of a worker that touches a page of it which cannot be had: its disk fails, or
// the file was cut off meanwhile, or there is no room for the page. The kernel sends SIGBUS then. No kernel of a tool
// can go on without the bytes, on whatever thread it runs, so the process ends; but first it says which file it was and
// what is wrong, where the LFS keeps it for the user. Mapped bytes cost nothing by that.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "pif/base/result.h"

namespace pif::tool {

class Mapping {
 public:
  // All of a file of `size` bytes, 1 at least. file: its descriptor, which outlives the mapping. The kernel reads
  // nothing ahead of what is touched (read_ahead.h).
  static Result<std::unique_ptr<Mapping>> make(int file, std::size_t size, bool writable);
  ~Mapping();  // unmaps it
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  friend class LostPages;
  Mapping(int file, std::span<std::byte> bytes);

  int file_;
  std::span<std::byte> bytes_;
  Mapping* next_ = nullptr;  // of all that the process has
  Mapping* before_ = nullptr;
};

// From now on a fault in any Mapping ends the process with ExitCode::kFailed, and a line on stderr that begins with
// `program`; all others end it as they did. Once, by a worker's process, before it has threads.
void end_process_at_lost_pages(const std::string& program);

}  // namespace pif::tool
