#include "content/unsent.h"

#include <algorithm>
#include <utility>

#include "pif/base/assert.h"

namespace pif::mount {

bool UnsentBytes::take(std::uint64_t bytes) {
  if (used_.fetch_add(bytes) + bytes <= max_) return true;
  used_ -= bytes;
  return false;
}

Unsent::Unsent(Client::NewFile made, UnsentBytes& all, Known known)
    : made_(std::move(made)), all_(all), known_(std::move(known)) {}

bool Unsent::resize(std::uint64_t size) {
  if (size > kBytesMax) return false;
  if (size > bytes_.size() && !all_.take(size - bytes_.size())) return false;
  PIF_ASSERT(size <= kBytesMax, size);
  if (size < bytes_.size()) all_.give(bytes_.size() - size);
  bytes_.resize(size);
  return true;
}

void Unsent::write(std::span<const std::byte> in, std::uint64_t offset) {
  PIF_ASSERT(offset + in.size() <= bytes_.size(), offset, in.size());
  std::ranges::copy(in, bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::size_t Unsent::read(std::span<std::byte> out, std::uint64_t offset) const {
  if (offset >= bytes_.size()) return 0;
  const std::size_t size = std::min<std::size_t>(out.size(), bytes_.size() - offset);
  std::ranges::copy(std::span(bytes_).subspan(offset, size), out.begin());
  return size;
}

void Unsent::set_time(std::int64_t ns, bool by_program) {
  made_.options.modified_ns = ns;
  is_time_set_ = by_program;
}

void Unsent::set_attributes(const AttributeChange& change) {
  if (change.mode) made_.options.mode = *change.mode;
  if (change.owner) made_.options.owner = change.owner;
  if (change.group) made_.options.group = change.group;
  if (change.modified_ns) set_time(*change.modified_ns, true);
}

}  // namespace pif::mount
