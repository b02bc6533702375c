// A new file that the file system does not know yet (-o lazy): its bytes, and what it is to be made with.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pif/client/client.h"

namespace pif::mount {

// How many bytes all unsent files of a mount have, and may have. Thread-safe.
class UnsentBytes {
 public:
  explicit UnsentBytes(std::uint64_t max) : max_(max) {}
  // False: there is no room.
  bool take(std::uint64_t bytes);
  void give(std::uint64_t bytes) { used_ -= bytes; }
  bool is_half_full() const { return used_ > max_ / 2; }

 private:
  const std::uint64_t max_;
  std::atomic<std::uint64_t> used_{0};
};

class Unsent {
 public:
  static constexpr std::uint64_t kBytesMax = 1u << 20;
  // Called once, when the file system knows it: the file's inode there.
  using Known = std::function<void(std::uint64_t inode)>;

  Unsent(Client::NewFile made, UnsentBytes& all, Known known);
  ~Unsent() { all_.give(bytes_.size()); }
  Unsent(const Unsent&) = delete;
  Unsent& operator=(const Unsent&) = delete;

  const Client::NewFile& made() const { return made_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::uint64_t size() const { return bytes_.size(); }
  bool is_time_set() const { return is_time_set_; }

  // New bytes are zeros. False: it does not fit, and nothing was changed.
  bool resize(std::uint64_t size);
  // offset + in.size() <= size().
  void write(std::span<const std::byte> in, std::uint64_t offset);
  std::size_t read(std::span<std::byte> out, std::uint64_t offset) const;
  // by_program: it was set. Otherwise it is that of the last write.
  void set_time(std::int64_t ns, bool by_program);
  void set_attributes(const AttributeChange& change);
  void become_known(std::uint64_t inode) const { known_(inode); }

 private:
  Client::NewFile made_;
  UnsentBytes& all_;
  const Known known_;
  bool is_time_set_ = false;
  std::vector<std::byte> bytes_;
};

}  // namespace pif::mount
