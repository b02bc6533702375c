// The header of a binary bitmap, as netpbm's pbm(5) has it: "P4", width, height, with white space before each number
// and one such character behind the last. A '#' begins a comment wherever a character may stand; it goes to the end of
// its line, which is white space. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pif::cli {

// Takes the header character by character, because the image follows at once.
class PbmHeader {
 public:
  enum class State : std::uint8_t { kMore, kWhole, kWrong };
  // Not after kWhole or kWrong. kWrong: no header goes on like that, or a number is larger than 4294967295.
  State take(char c);
  std::uint64_t width() const { return numbers_[0]; }
  std::uint64_t height() const { return numbers_[1]; }
  std::uint64_t row_bytes() const { return (width() + 7) / 8; }

 private:
  State take_blank();
  State take_digit(char c);

  std::size_t magic_ = 0;  // characters of it that have come
  bool in_comment_ = false;
  bool has_blank_ = false;   // in front of the number
  bool has_digits_ = false;  // of the number
  std::size_t number_ = 0;   // which one comes
  std::array<std::uint64_t, 2> numbers_{};
};

// Nothing: the text is no such header, or has anything behind it.
std::optional<PbmHeader> parse_pbm(std::string_view text);

}  // namespace pif::cli
