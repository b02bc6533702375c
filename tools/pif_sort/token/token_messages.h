// What the workers of a merge by token tell each other (the sorter's own words, pif/tool/team.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keys/lengths.h"
#include "pif/net/buffer.h"

namespace pif::sort {

enum class MessageKind : char {
  kToken =
      't',  // {block of the receiver, rank of the holder, its block, from which record of it on, next number} + keys
  kPlace = 'p',   // {first record of the receiver's sub-file, how many, first number} + 32-bit distances of the numbers
  kRest = 'r',    // {first record of the receiver's sub-file, its number}: that and all after it follow one another
  kStep = 's',    // figure 5.4's token: {0 or 1: write all, rank of the holder, next number} + its key
  kEnd = 'e',     // figure 5.4: the merge is over; to all its readers
  kRows = 'R',    // {first, last, count} of a message for the receiver's part of a sub-file
  kPlaced = 'P',  // the same, and they are in the part's memory already
  kPiece = 'm',   // split: {count, 1: the last} + records of the receiver's share, in order
  kMore = 'g',    // split: room for one more of these
  kRowBlock = 'w',  // split: {first row, count} + rows of the output's component at the receiver
  kWritten = 'a',   // split: {bytes} of these
  kSettled =
      'S',  // {row, index of the sender in its sub-file}: rows from there on have room there, as far as a window goes
};

using Values = std::array<std::uint64_t, 5>;

struct Head {
  MessageKind say = MessageKind::kToken;
  std::uint32_t node = 0;  // of the merge tree
  Values values = {};

  std::string pack() const;
  static std::optional<Head> unpack(std::string_view text);
};

// Byte strings, packed.
class KeyList {
 public:
  std::size_t size() const { return ends_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return std::string_view(bytes_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }
  void add(std::string_view key);
  // The number after the key's bytes, the most significant first.
  void add(std::string_view key, std::uint64_t number);
  void clear();
  // Those from `from` on. Unpacking fails if they do not fill the body.
  net::Buffer pack(std::size_t from) const;
  static std::optional<KeyList> unpack(std::span<const std::byte> body);
  // How many keys of these lengths fit into a body of so many bytes, whichever they are.
  static std::uint64_t fit(const Lengths& lengths, std::size_t body_bytes);

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_ = {0};
};

// Whether key a comes before key b. Most differ in their first bytes.
inline bool before(std::string_view a, std::string_view b) {
  std::uint64_t x = 0, y = 0;
  if (a.size() >= sizeof x && b.size() >= sizeof y) {
    std::memcpy(&x, a.data(), sizeof x);
    std::memcpy(&y, b.data(), sizeof y);
    if (x != y) return __builtin_bswap64(x) < __builtin_bswap64(y);
  }
  return a < b;
}

}  // namespace pif::sort
