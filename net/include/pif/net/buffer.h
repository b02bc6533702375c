// Bytes of one raw frame, owned once. Received frames are not copied out of the transport; sent ones are handed to it.
// Move-only; moved from, it is empty. Thread-safety: none; it may be given to another thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace pif::net {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);                        // uninitialised; std::bad_alloc if memory is out
  static Buffer copy_of(std::span<const std::byte> bytes);  // of its own memory; likewise
  // Takes over memory of somebody else's, `size` bytes from `data` on; `release(owner)` gives it back, once, on any
  // thread.
  Buffer(std::byte* data, std::size_t size, void* owner, void (*release)(void* owner));
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // The bytes, aligned as the transport or whoever gave them had them: perhaps not at all. Valid until this is moved
  // from, assigned or destroyed; null and 0 if it is empty.
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<std::byte> span() { return {data_, size_}; }
  std::span<const std::byte> span() const { return {data_, size_}; }
  void shrink(std::size_t size);  // to the first `size` bytes; more than size() changes nothing; the memory stays

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  void* owner_ = nullptr;
  void (*release_)(void*) = nullptr;
};

}  // namespace pif::net
