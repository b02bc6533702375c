#include "pif/tool/shared_memory.h"

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
#include "pif/base/assert.h"

namespace pif::tool {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

tl::unexpected<Error> failed(std::string_view what) {
  const int error = errno;
  return fail(code_from_errno(error), fmt::format("shared memory: cannot {}: {}", what, std::strerror(error)));
}

}  // namespace

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Status SharedMemory::map(std::size_t bytes) {
  PIF_ASSERT(bytes > 0 && bytes_.empty(), bytes, bytes_.size());
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (at == MAP_FAILED) return failed("map it");
  bytes_ = {static_cast<std::byte*>(at), bytes};
  return {};
}

Result<SharedMemory> SharedMemory::make(std::size_t bytes) {
  SharedMemory memory;
  if (bytes == 0) return memory;
  memory.fd_ = UniqueFd(::memfd_create("pif-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd_) return failed("make it");
  if (::ftruncate(memory.fd_.get(), static_cast<off_t>(bytes)) != 0) return failed("size it");
  if (::fcntl(memory.fd_.get(), F_ADD_SEALS, kSeals) != 0) return failed("seal it");
  PIF_TRY(memory.map(bytes));
  (void)::madvise(memory.bytes_.data(), bytes, MADV_POPULATE_WRITE);  // it is a hint
  return memory;
}

Result<SharedMemory> SharedMemory::adopt(Handle handle, std::size_t bytes) {
  SharedMemory memory;
  memory.fd_ = std::move(handle.fd);
  struct stat state = {};
  const int seals = ::fcntl(memory.fd_.get(), F_GET_SEALS);
  const bool fits = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(memory.fd_.get(), &state) == 0 && bytes > 0 &&
                    static_cast<std::uint64_t>(state.st_size) == bytes;
  if (!fits) return fail(Code::kInvalid, fmt::format("what was passed is not shared memory of {} bytes", bytes));
  PIF_TRY(memory.map(bytes));
  return memory;
}

void SharedMemory::populate(std::size_t offset, std::size_t bytes) const {
  const std::size_t end = std::min(offset + bytes, bytes_.size());
  if (offset < end) map_pages(bytes_.subspan(offset, end - offset));
}

Result<Handle> SharedMemory::share() const {
  PIF_ASSERT(!bytes_.empty() && fd_.get() >= 0, bytes_.size());
  Handle handle;
  handle.fd = UniqueFd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!handle.fd) return failed("share it");
  return handle;
}

}  // namespace pif::tool
