#include "memory/map_pages.h"

#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace pif::tool {
namespace {

constexpr std::uintptr_t kAround = 64u << 10;  // bytes that the kernel maps at once, on a multiple of it

}  // namespace

void map_pages(std::span<const std::byte> bytes) {
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()), end = begin + bytes.size();
  for (std::uintptr_t at = begin / kPage * kPage; at < end; at = (at / kAround + 1) * kAround)
    if (::madvise(reinterpret_cast<void*>(at), kPage, MADV_POPULATE_READ) != 0) return;
}

}  // namespace pif::tool
