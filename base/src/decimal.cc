#include "pif/base/decimal.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pif {
namespace {

std::optional<std::uint64_t> number_in(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || rest != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// How many times 1024; nothing: it is no unit.
std::optional<unsigned> power_of(std::string unit) {
  constexpr std::string_view kUnits = "bkmgtpe";
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (unit.empty()) return 0;
  const std::size_t power = kUnits.find(unit[0]);
  const std::string_view rest = std::string_view(unit).substr(1);
  const bool is_unit = power == 0 ? rest.empty() : rest.empty() || rest == "b" || rest == "i" || rest == "ib";
  if (power == std::string_view::npos || !is_unit) return std::nullopt;
  return static_cast<unsigned>(power);
}

}  // namespace

std::string whole_number(std::string text) {
  if (const auto number = number_in(text)) return std::to_string(*number);
  return "'" + text + "', which is no whole number below 2^64";
}

std::string byte_count(std::string text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = number_in(std::string_view(text).substr(0, digits));
  const auto power = power_of(text.substr(digits));
  if (number && power && *number <= UINT64_MAX >> (10 * *power)) return std::to_string(*number << (10 * *power));
  return "'" + text + "', which is no number of bytes below 2^64, such as 50MiB";
}

}  // namespace pif
