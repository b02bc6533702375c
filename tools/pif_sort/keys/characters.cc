#include "keys/characters.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::sort {
namespace {

char two_digits(char first, char second) { return static_cast<char>((first - '0') * 10 + (second - '0') + 1); }

}  // namespace

void add_digits(std::string_view whole, std::string_view fraction, std::string& out) {
  const std::size_t from = out.size();
  out.resize(from + (whole.size() + fraction.size() + 1) / 2);
  char* to = out.data() + from;
  for (; whole.size() >= 2; whole.remove_prefix(2)) *to++ = two_digits(whole[0], whole[1]);
  if (!whole.empty()) {
    *to++ = two_digits(whole[0], fraction.empty() ? '0' : fraction[0]);
    fraction.remove_prefix(std::min<std::size_t>(fraction.size(), 1));
  }
  for (; fraction.size() >= 2; fraction.remove_prefix(2)) *to++ = two_digits(fraction[0], fraction[1]);
  if (!fraction.empty()) *to++ = two_digits(fraction[0], '0');
  PIF_ASSERT(to == out.data() + out.size(), out.data() + out.size() - to);
}

void add_big_endian(std::uint64_t value, std::size_t bytes, std::string& out) {
  PIF_ASSERT(bytes == sizeof value || value >> (8 * bytes) == 0, value, bytes);
  while (bytes > 0) out += static_cast<char>(value >> (8 * --bytes) & 0xff);
}

}  // namespace pif::sort
