// Characters and digits of texts, for the encoders of sort keys. Letters are ASCII's. Private to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pif::sort {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
// A blank as sort(1) has it: a blank, a tab, or a line end inside of a record.
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Appends digits, two in a byte of 1 to 100. Those of `fraction` follow the whole ones without a mark; if their number
// is odd, a zero follows.
void add_digits(std::string_view whole, std::string_view fraction, std::string& out);
// Appends the lowest bytes of a number that has no others, the highest first.
void add_big_endian(std::uint64_t value, std::size_t bytes, std::string& out);
// How many digits there are, where a byte cannot say it.
inline constexpr std::size_t kManyBytes = 4;

}  // namespace pif::sort
