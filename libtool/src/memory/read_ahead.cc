#include "pif/tool/read_ahead.h"

#include <algorithm>
#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace pif::tool {
namespace {

constexpr std::uintptr_t kCallBytes = 128u
                                      << 10;  // of a call: no device reads less at once, and of more it may do less
constexpr std::ptrdiff_t kGapMax = 16 << 10;  // a gap costs less than a read of its own

}  // namespace

void read_ahead(std::span<const std::byte> mapped) {
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data()), end = begin + mapped.size();
  for (std::uintptr_t at = begin / kPage * kPage; at < end; at += kCallBytes) {
    const std::uintptr_t size = std::min(kCallBytes, end - at);
    if (::madvise(reinterpret_cast<void*>(at), size, MADV_WILLNEED) != 0) return;
  }
}

void ReadAhead::add(std::span<const std::byte> mapped) {
  if (mapped.empty()) return;
  const std::byte* const end = mapped.data() + mapped.size();
  const bool is_close = begin_ != nullptr && mapped.data() >= begin_ && mapped.data() - end_ <= kGapMax;
  if (is_close) {
    end_ = std::max(end_, end);
    return;
  }
  flush();
  begin_ = mapped.data();
  end_ = end;
}

void ReadAhead::flush() {
  if (begin_ != nullptr) read_ahead({begin_, end_});
  begin_ = end_ = nullptr;
}

void ReadInOrder::reach(const std::byte* at) {
  while (!rest_.empty() && rest_.data() - at <= static_cast<std::ptrdiff_t>(kReadAheadBytes)) {
    const std::size_t some = std::min(kReadAheadBytes, rest_.size());
    read_ahead(rest_.first(some));
    rest_ = rest_.subspan(some);
  }
}

}  // namespace pif::tool
