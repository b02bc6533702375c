#include "content/gathered.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::mount {

void Gathered::add(std::uint64_t offset, std::span<const std::byte> in, Time now) {
  PIF_ASSERT(takes(offset, in.size()), offset, in.size(), begin_);
  if (is_empty()) {
    begin_ = offset;
    since_ = now;
  }
  PIF_ASSERT(offset >= begin_ && offset - begin_ <= bytes_.size(), offset, begin_, bytes_.size());
  const std::size_t at = offset - begin_;
  const std::size_t inside = std::min(in.size(), bytes_.size() - at);
  std::copy_n(in.begin(), inside, bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  bytes_.insert(bytes_.end(), in.begin() + static_cast<std::ptrdiff_t>(inside), in.end());
}

void Gathered::clear() {
  if (bytes_.capacity() > 64u << 10)
    bytes_ = {};  // thousands of files may be open
  else
    bytes_.clear();
}

}  // namespace pif::mount
