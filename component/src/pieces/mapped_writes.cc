#include "pif/component/mapped_writes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "pieces/guarded_copy.h"
#include "pif/base/assert.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace pif::component {
namespace {

// Measured in the page cache of ext4: a page that is reserved and mapped costs as much as writing so many pieces one by
// one, and a mapping as much as so many more.
constexpr std::size_t kPiecesPerPage = 2;
constexpr std::size_t kPiecesMin = 32;
constexpr std::size_t kPieceBytesMax = 1024;
constexpr std::uint64_t kStretchBytes = 1u << 20;  // mapped at once

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// The first pieces of some: in pages of which each follows the one before.
struct Run {
  std::size_t count = 0;
  std::uint64_t begin = 0;  // of the first page
  std::uint64_t end = 0;    // of the last piece
  bool is_dense() const { return count >= kPiecesMin && count * page_bytes() >= (end - begin) * kPiecesPerPage; }
};

Run next_run(std::span<const ConstExtent> extents) {
  const std::uint64_t page = page_bytes(), mask = page - 1;
  PIF_ASSERT((page & mask) == 0, page);  // dividing by it would take as long as copying a piece
  Run run{0, extents[0].offset & ~mask, extents[0].offset};
  for (const ConstExtent& next : extents) {
    const std::uint64_t end = next.offset + next.size;
    const std::uint64_t next_page = (run.end + mask) & ~mask;  // behind those that pieces are in
    const bool fits = next.size <= kPieceBytesMax && end - run.begin <= kStretchBytes && next.offset < next_page + page;
    if (!fits && run.count > 0) break;
    run.end = end;
    ++run.count;
    if (!fits) break;
  }
  PIF_ASSERT(run.count > 0 && run.begin <= run.end, run.count, run.begin, run.end);
  return run;
}

class Mapping {
 public:
  Mapping(int fd, std::uint64_t begin, std::size_t size)
      : at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(begin))), size_(size) {
    // What is around them is not read: a page that a part of is written to is read alone, if the file has it.
    if (at_ != MAP_FAILED) (void)::madvise(at_, size_, MADV_RANDOM);
  }
  ~Mapping() {
    if (at_ != MAP_FAILED) (void)::munmap(at_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Whether all pages may be written now. A kernel that cannot tell says so: then a fault does.
  bool populate() { return at_ != MAP_FAILED && (::madvise(at_, size_, MADV_POPULATE_WRITE) == 0 || errno == EINVAL); }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), size_}; }

 private:
  void* const at_;
  const std::size_t size_;
};

class MappedWriter {
 public:
  explicit MappedWriter(File& data) : data_(data) {}

  Status write(std::span<const ConstExtent> extents) {
    std::size_t left_out = 0;  // pieces in front for which a mapping does not pay, or cannot be
    while (left_out < extents.size()) {
      const Run run = next_run(extents.subspan(left_out));
      PIF_ASSERT(run.count <= extents.size() - left_out, run.count, left_out, extents.size());
      bool is_copied = false;
      if (is_usable_ && run.is_dense()) {
        PIF_TRY_VALUE(is_copied, copy(run, extents.subspan(left_out, run.count)));
      }
      if (!is_copied) {
        left_out += run.count;
        continue;
      }
      PIF_TRY(write_extents(data_, extents.first(left_out), false));
      extents = extents.subspan(left_out + run.count);
      left_out = 0;
    }
    // Where a copy could not be, this succeeds or says why.
    return write_extents(data_, extents, false);
  }

 private:
  // False: it cannot be done here.
  Result<bool> copy(const Run& run, std::span<const ConstExtent> pieces) {
    is_usable_ = false;
    if (!open() || !can_guard()) return false;
    const std::uint64_t size = run.end - run.begin;
    if (!reserve(run.begin, size)) return false;
    Mapping mapping(handle_.fd.get(), run.begin, size);
    if (!mapping.populate()) return false;
    if (!copy_guarded(pieces, run.begin, mapping.bytes()))
      return fail(Code::kIo, fmt::format("cannot write bytes {} to {}: the file was cut off, or its disk failed",
                                         run.begin, run.end - 1));
    is_usable_ = true;
    return true;
  }

  // Files in memory have no descriptor.
  bool open() {
    if (handle_.fd) return true;
    if (auto shared = data_.share()) handle_ = std::move(*shared);
    return static_cast<bool>(handle_.fd);
  }

  // Blocks, and the file's size if it is shorter: a mapping behind the end cannot be written.
  bool reserve(std::uint64_t begin, std::uint64_t size) {
    int result = 0;
    do {
      result = ::fallocate(handle_.fd.get(), 0, static_cast<off_t>(begin), static_cast<off_t>(size));
    } while (result != 0 && errno == EINTR);
    return result == 0;
  }

  File& data_;
  Handle handle_;  // gone with the call: the seal asks whether anybody can still write
  bool is_usable_ = true;
};

}  // namespace

Status write_extents_mapped(File& data, std::span<const ConstExtent> extents) {
  return MappedWriter(data).write(extents);
}

}  // namespace pif::component
