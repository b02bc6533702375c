#include "pif/net/buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace pif::net {

Buffer::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  owner_ = std::malloc(size);  // not new[]: left uninitialised, and tune_allocator() keeps big ones
  if (owner_ == nullptr) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(owner_);
  release_ = std::free;
}

Buffer Buffer::copy_of(std::span<const std::byte> bytes) {
  Buffer out(bytes.size());
  if (!bytes.empty()) std::memcpy(out.data_, bytes.data(), bytes.size());
  return out;
}

Buffer::Buffer(std::byte* data, std::size_t size, void* owner, void (*release)(void* owner))
    : data_(data), size_(size), owner_(owner), release_(release) {}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      owner_(std::exchange(other.owner_, nullptr)),
      release_(std::exchange(other.release_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  if (release_ != nullptr) release_(owner_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  owner_ = std::exchange(other.owner_, nullptr);
  release_ = std::exchange(other.release_, nullptr);
  return *this;
}

Buffer::~Buffer() {
  if (release_ != nullptr) release_(owner_);
}

void Buffer::shrink(std::size_t size) {
  if (size < size_) size_ = size;
}

}  // namespace pif::net
