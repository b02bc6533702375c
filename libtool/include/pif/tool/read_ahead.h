// Reading a mapped file from its disk in the pieces that will be looked at. Mappings of libtool (Scratch, Input::map)
// have the kernel's own read-ahead switched off: that of a RAID, 8 MiB at each page fault, is many times what a stream
// of a merge has room for, and most of it would be dropped before it is used. Whoever goes through a mapping in order
// says so here; a page that nobody asked for is read alone when it is touched.
#pragma once

#include <cstddef>
#include <span>

namespace pif::tool {

// A file's bytes that are in order are asked for in pieces of this, the next one while this one is worked on.
inline constexpr std::size_t kReadAheadBytes = 1u << 20;

// Starts reading these bytes of a mapping, unless they are in memory. A hint: it does not wait, and has no error.
void read_ahead(std::span<const std::byte> mapped);

// The same for many pieces in rising order: those that lie close together are asked for at once.
class ReadAhead {
 public:
  // Nothing is asked for yet; its end asks for what was added.
  ReadAhead() = default;
  ~ReadAhead() { flush(); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Asks for what was added before, unless this lies close behind it.
  void add(std::span<const std::byte> mapped);
  void flush();  // asks for what was added

 private:
  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;
};

// And for one that is gone through from its front.
class ReadInOrder {
 public:
  ReadInOrder() = default;  // of nothing
  // The mapping outlives it.
  explicit ReadInOrder(std::span<const std::byte> mapped) : rest_(mapped) {}
  // All before `at` was looked at.
  void reach(const std::byte* at);

 private:
  std::span<const std::byte> rest_;  // not asked for yet
};

}  // namespace pif::tool
