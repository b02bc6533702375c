#include "pif/tool/scratch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "memory/map_pages.h"
#include "memory/mapping.h"
#include "pif/base/assert.h"
#include "pif/tool/read_ahead.h"

namespace pif::tool {
namespace {

constexpr std::size_t kBufferBytes = 1u << 20;

}  // namespace

Scratch::Scratch() = default;
Scratch::Scratch(Handle handle, std::string node, std::shared_ptr<std::atomic<int>> lost)
    : fd_(std::move(handle.fd)), node_(std::move(node)), lost_(std::move(lost)) {}

Scratch::Scratch(Scratch&& other) noexcept { *this = std::move(other); }

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(node_, other.node_);
  std::swap(size_, other.size_);
  std::swap(buffer_, other.buffer_);
  std::swap(used_, other.used_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(is_writable_, other.is_writable_);
  std::swap(lost_, other.lost_);
  return *this;
}

Scratch::~Scratch() { note_lost(); }

// The kernel keeps a page that it could not write only as long as it likes; then the disk's old bytes are read. It
// tells once that there was such a page, and starts no writing to find out.
void Scratch::note_lost() const {
  if (!lost_ || size_ == 0) return;
  if (::sync_file_range(fd_.get(), 0, 1, SYNC_FILE_RANGE_WAIT_BEFORE) == 0) return;
  const bool is_lost = errno == EIO || errno == ENOSPC || errno == EDQUOT;  // others: it cannot tell
  if (is_lost) lost_->store(errno);
}

Status Scratch::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return cannot_write(n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status Scratch::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  PIF_ASSERT(offset + bytes.size() <= size_, offset, bytes.size(), size_);
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return cannot_write(n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

tl::unexpected<Error> Scratch::cannot_write(int error) const {
  return fail(code_from_errno(error), fmt::format("cannot write a scratch file: {}", std::strerror(error)), node_);
}

Result<std::uint64_t> Scratch::reserve(std::uint64_t bytes) {
  PIF_ASSERT(!mapping_, size_, bytes);
  PIF_TRY(flush());
  const std::uint64_t begin = std::exchange(size_, size_ + bytes);
  if (::lseek(fd_.get(), static_cast<off_t>(size_), SEEK_SET) < 0) return cannot_write(errno);
  return begin;
}

Status Scratch::flush() {
  PIF_ASSERT(used_ <= buffer_.size() && used_ <= size_, used_, buffer_.size(), size_);
  const std::size_t used = std::exchange(used_, 0);
  return write(std::span(buffer_).first(used));
}

Result<std::byte*> Scratch::room(std::size_t bytes) {
  if (used_ + bytes > buffer_.size()) {
    PIF_TRY(flush());
    if (bytes > buffer_.size()) buffer_.resize(std::max(bytes, kBufferBytes));
  }
  PIF_ASSERT(used_ + bytes <= buffer_.size() && !mapping_, used_, bytes, buffer_.size());
  std::byte* const at = buffer_.data() + used_;
  used_ += bytes;
  size_ += bytes;
  return at;
}

Status Scratch::append(std::span<const std::byte> bytes) {
  if (bytes.size() < kBufferBytes) {
    PIF_TRY_VALUE(std::byte* const at, room(bytes.size()));
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    return {};
  }
  PIF_ASSERT(!mapping_, size_, bytes.size());
  PIF_TRY(flush());
  size_ += bytes.size();
  return write(bytes);
}

Status Scratch::map() {
  PIF_TRY(flush());
  buffer_ = {};
  return make_mapping();
}

Status Scratch::allocate(std::uint64_t bytes) {
  PIF_ASSERT(size_ == 0 && !mapping_, size_, bytes);
  if (bytes == 0) return {};
  if (const int error = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    return fail(code_from_errno(error),
                fmt::format("cannot make a scratch file of {} bytes: {}", bytes, std::strerror(error)), node_);
  }
  size_ = bytes;
  is_writable_ = true;
  return make_mapping();
}

bool Scratch::load(std::uint64_t offset, std::uint64_t size) const {
  PIF_ASSERT(offset <= mapped_.size() && size <= mapped_.size() - offset, offset, size, mapped_.size());
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t from = offset / page * page;
  void* const at = mapped_.data() + from;
  read_ahead(mapped_.subspan(offset, std::min<std::uint64_t>(2 * size, mapped_.size() - offset)));
  // A kernel that does not know the call loads pages when they are touched.
  return size == 0 || ::madvise(at, offset + size - from, MADV_POPULATE_READ) == 0 || errno != EFAULT;
}

void Scratch::populate() const { map_pages(mapped_); }

Status Scratch::make_mapping() {
  PIF_ASSERT(!mapping_ && used_ == 0, size_, used_);
  if (size_ == 0) return {};
  PIF_TRY_VALUE(mapping_, Mapping::make(fd_.get(), size_, is_writable_));
  mapped_ = mapping_->bytes();
  return {};
}

Result<Handle> Scratch::share() const {
  PIF_ASSERT(used_ == 0, used_, size_);  // others would not see what is in the buffer
  Handle handle;
  handle.fd = UniqueFd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!handle.fd) return fail_errno(errno, "cannot pass a scratch file on");
  return handle;
}

Result<Scratch> Scratch::adopt(Handle handle, std::uint64_t size, bool writable) {
  Scratch scratch(std::move(handle), {});
  struct stat state = {};
  const bool fits = ::fstat(scratch.fd_.get(), &state) == 0 && static_cast<std::uint64_t>(state.st_size) == size;
  if (!fits) return fail(Code::kInvalid, fmt::format("what was passed is not a scratch file of {} bytes", size));
  scratch.size_ = size;
  scratch.is_writable_ = writable;
  PIF_TRY(scratch.make_mapping());
  return scratch;
}

}  // namespace pif::tool
