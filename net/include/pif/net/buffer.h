// Bytes of one raw frame, owned once. Received frames are not copied out of the transport; sent ones are handed to it.
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
  explicit Buffer(std::size_t size);  // uninitialised
  static Buffer copy_of(std::span<const std::byte> bytes);
  // Takes over memory of somebody else's; `release(owner)` gives it back, on any thread.
  Buffer(std::byte* data, std::size_t size, void* owner, void (*release)(void* owner));
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<std::byte> span() { return {data_, size_}; }
  std::span<const std::byte> span() const { return {data_, size_}; }
  void shrink(std::size_t size);  // size <= size(); the memory stays

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  void* owner_ = nullptr;
  void (*release_)(void*) = nullptr;
};

}  // namespace pif::net
