// Bytes that a program has written and the file system has not got yet. They are consecutive: programs write some
// kilobytes at a time, and a request for each would be slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pif/base/clock.h"

namespace pif::mount {

class Gathered {
 public:
  static constexpr std::size_t kBytesMax = 1u << 20;

  bool is_empty() const { return bytes_.empty(); }
  bool is_full() const { return bytes_.size() >= kBytesMax; }
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_before(Time time) const { return !is_empty() && since_ < time; }
  // Whether these bytes can be added: they lie inside, or go on from the end.
  bool takes(std::uint64_t offset, std::size_t size) const {
    return is_empty() || (offset >= begin_ && offset <= end() && offset + size <= begin_ + kBytesMax);
  }
  void add(std::uint64_t offset, std::span<const std::byte> in, Time now);
  void clear();

 private:
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
  Time since_{};
};

}  // namespace pif::mount
