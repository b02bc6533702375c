#include "keys/encode.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "keys/characters.h"
#include "pif/base/assert.h"

namespace pif::sort {
namespace {

// ---- decimal numbers ------------------------------------------------------------------------------------------------

constexpr char kEnd = '\0';             // of digits: less than any two
constexpr unsigned kZero = 0x80;        // the class of 0; that of a number with n whole digits is kZero + 1 + n,
constexpr std::size_t kCountMax = 125;  // with up to so many;
constexpr unsigned kMany = 0xff;        // of more digits the number follows, in kManyBytes

std::size_t skip_blanks(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// The number at the start of a text.
struct Decimal {
  bool negative = false;
  std::string_view whole;     // without zeros in front
  std::string_view fraction;  // without zeros at the end
  char next = '\0';           // what comes behind the number

  bool is_zero() const { return whole.empty() && fraction.empty(); }
};

Decimal decimal_in(std::string_view text) {
  Decimal number;
  std::size_t at = skip_blanks(text);
  number.negative = at < text.size() && text[at] == '-';
  at += number.negative ? 1 : 0;
  while (at < text.size() && text[at] == '0') ++at;
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  number.whole = text.substr(at, end - at);
  if (end < text.size() && text[end] == '.') {
    at = ++end;
    while (end < text.size() && is_digit(text[end])) ++end;
    number.fraction = text.substr(at, end - at);
    while (!number.fraction.empty() && number.fraction.back() == '0') number.fraction.remove_suffix(1);
  }
  if (end < text.size()) number.next = text[end];
  return number;
}

void add_decimal(const Decimal& number, std::string& out) {
  if (number.is_zero()) {
    out += static_cast<char>(kZero);  // with any sign
    return;
  }
  const std::size_t from = out.size();
  if (number.whole.size() <= kCountMax) {
    out += static_cast<char>(kZero + 1 + number.whole.size());
  } else {
    out += static_cast<char>(kMany);
    add_big_endian(number.whole.size(), kManyBytes, out);
  }
  std::string_view whole = number.whole;
  while (number.fraction.empty() && whole.back() == '0') whole.remove_suffix(1);
  add_digits(whole, number.fraction, out);
  out += kEnd;
  if (number.negative) complement(out, from);
}

int order_of_unit(char c) {
  constexpr std::string_view kUnits = "KMGTPEZY";
  if (c == 'k') return 1;
  const std::size_t at = kUnits.find(c);
  return at == std::string_view::npos ? 0 : static_cast<int>(at) + 1;
}

// ---- floating-point numbers -----------------------------------------------------------------------------------------

using Float = std::numeric_limits<long double>;
constexpr std::size_t kMantissaWords = (Float::digits + 31) / 32;  // of 32 bits
constexpr std::size_t kExponentBytes = 2, kMantissaBytes = 4 * kMantissaWords;
constexpr unsigned kPositive = 0x8000;  // with the exponent, from 0; negative numbers are the complement
static_assert(Float::is_iec559 && Float::max_exponent - Float::min_exponent + 1 < 0x7fff);  // that is infinity's

// Texts without a number, and NaNs: as if they were less than -inf.
void add_unordered(std::uint64_t place, std::string& out) {
  out.append(kExponentBytes, '\0');
  add_big_endian(place, sizeof place, out);
  out.append(kMantissaBytes - sizeof place, '\0');
}

// sort(1) compares NaNs as bytes in memory, the lowest first: 62 bits that are not always the same, and the sign.
std::uint64_t place_of_nan(long double value) {
  std::uint64_t payload = 0;
  std::memcpy(&payload, &value, sizeof payload);
  const std::uint64_t in_memory = __builtin_bswap64(payload);
  const std::uint64_t low = in_memory >> 8, top = in_memory & 0x3f;
  return 1 + (low << 7 | top << 1 | (std::signbit(value) ? 1 : 0));  // at most 1 << 63
}

// A number that is not negative: its exponent, then its mantissa as a whole number.
void add_magnitude(long double value, std::string& out) {
  int exponent = Float::min_exponent;
  long double rest = value == 0 ? value : std::frexp(value, &exponent);                         // in [0.5, 1)
  if (exponent < Float::min_exponent) rest = std::ldexp(rest, exponent - Float::min_exponent);  // subnormal
  const int biased = std::max(exponent, Float::min_exponent) - Float::min_exponent;
  add_big_endian(kPositive + static_cast<unsigned>(biased), kExponentBytes, out);
  for (std::size_t i = 0; i < kMantissaWords; ++i) {
    rest *= 0x1p32L;
    const auto word = static_cast<std::uint32_t>(rest);
    add_big_endian(word, sizeof word, out);
    rest -= word;
  }
  PIF_ASSERT(rest == 0, exponent);
}

void add_float(long double value, std::string& out) {
  if (std::isnan(value)) return add_unordered(place_of_nan(value), out);
  const std::size_t from = out.size();
  if (std::isinf(value)) {
    out.append(kExponentBytes, '\xff');
    out.append(kMantissaBytes, '\0');  // so that -inf comes after all that is unordered
  } else {
    add_magnitude(std::fabs(value), out);
  }
  if (value < 0) complement(out, from);
}

// The value of digits with a point, and nothing else, where it is a quotient of two numbers that a long double has: one
// division rounds as strtold(3) does, in a fraction of its time.
std::optional<long double> plain_value(std::string_view text) {
  constexpr std::size_t kDigitsMax = 19;  // less than 2^64
  static_assert(Float::digits >= 64);
  std::uint64_t digits = 0, divisor = 1;
  std::size_t count = 0;
  bool in_fraction = false;
  for (const char c : text) {
    if (c == '.' && !in_fraction) {
      in_fraction = true;
    } else if (!is_digit(c) || ++count > kDigitsMax) {
      return std::nullopt;
    } else {
      digits = 10 * digits + static_cast<std::uint64_t>(c - '0');
      divisor *= in_fraction ? 10 : 1;
    }
  }
  if (count == 0) return std::nullopt;
  return static_cast<long double>(digits) / static_cast<long double>(divisor);
}

// What can begin a number, after its sign, and what can be in one.
bool begins_float(char c) { return is_digit(c) || std::string_view(".iInN").find(c) != std::string_view::npos; }
bool is_of_float(char c) {
  return is_digit(c) || is_letter(c) || std::string_view("+-.()_").find(c) != std::string_view::npos;
}

}  // namespace

void complement(std::string& out, std::size_t from) {
  for (std::size_t i = from; i < out.size(); ++i) out[i] = static_cast<char>(~out[i]);
}

void add_number(std::string_view text, std::string& out) { add_decimal(decimal_in(text), out); }

void add_human_number(std::string_view text, std::string& out) {
  const Decimal number = decimal_in(text);
  const int order = number.is_zero() ? 0 : order_of_unit(number.next);
  out += static_cast<char>(static_cast<int>(kZero) + (number.negative ? -order : order));
  add_decimal(number, out);
}

void add_general_number(std::string_view text, std::string& out) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\v\f\r"), text.size()));
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (text.size() == sign || !begins_float(text[sign])) return add_unordered(0, out);
  const auto* const end = std::find_if_not(text.begin(), text.end(), is_of_float);
  const std::string number(text.begin(), end);  // strtold wants a zero behind it
  if (const auto value = plain_value(std::string_view(number).substr(sign)))
    return add_float(text[0] == '-' ? -*value : *value, out);
  char* rest = nullptr;
  const long double value = std::strtold(number.c_str(), &rest);
  if (rest == number.c_str()) return add_unordered(0, out);
  add_float(value, out);
}

void add_month(std::string_view text, std::string& out) {
  constexpr std::string_view kMonths = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
  constexpr std::size_t kLetters = 3;
  std::string name(text.substr(skip_blanks(text), kLetters));
  for (char& c : name) c = upper(c);
  std::size_t month = 0;
  for (std::size_t i = 0; i < kMonths.size() / kLetters; ++i)
    if (name == kMonths.substr(i * kLetters, kLetters)) month = i + 1;
  out += static_cast<char>(month);
}

}  // namespace pif::sort
