// Memory that workers on one machine share: one makes it and passes a handle, others map it. The object is not
// thread-safe; who writes where, and when others may look, its users agree on.
#pragma once

#include <cstddef>
#include <span>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::tool {

class SharedMemory {
 public:
  // None: empty. Moving leaves the other one with what was here. Its end unmaps it; the others' mappings stay.
  SharedMemory() = default;
  // Zeroed, of exactly `bytes` bytes for as long as it lives: nobody can shrink it under the others. 0: none. kIo and
  // the like: the machine gives none.
  static Result<SharedMemory> make(std::size_t bytes);
  // Maps what share() of another process gave; kInvalid unless it is memory of `bytes` bytes that nobody can shrink.
  static Result<SharedMemory> adopt(Handle handle, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // For another process, as often as wanted; not of an empty one.
  Result<Handle> share() const;
  // Maps the pages of these bytes into this process, which will use them all: a third of what page faults would cost.
  // make() has done that; what is adopted counts as memory of this process only where it is used. Only a hint.
  void populate(std::size_t offset, std::size_t bytes) const;
  // Valid as long as this object; others read and write there at the same time.
  std::span<std::byte> bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  [[nodiscard]] Status map(std::size_t bytes);

  UniqueFd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace pif::tool
