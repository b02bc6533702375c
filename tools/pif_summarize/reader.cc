#include "reader.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace pif::summarize {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

std::uint64_t bytes_in_order(std::string_view bytes, bool big_endian) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  return value;
}

double binary_number(std::string_view bytes, char type, bool big_endian) {
  const std::uint64_t value = bytes_in_order(bytes, big_endian);
  if (type == 'f' && bytes.size() == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(value));
  if (type == 'f') return std::bit_cast<double>(value);
  if (type == 'u') return static_cast<double>(value);
  const auto unused = static_cast<unsigned>(64 - 8 * bytes.size());
  return static_cast<double>(static_cast<std::int64_t>(value << unused) >> unused);
}

}  // namespace

std::optional<std::string_view> FieldReader::text(std::span<const std::byte> record) {
  const std::string_view bytes(reinterpret_cast<const char*>(record.data()), record.size());
  if (spec_.length > 0) {
    if (bytes.size() < std::size_t{spec_.offset} + spec_.length) return std::nullopt;
    return bytes.substr(spec_.offset, spec_.length);
  }
  bool is_there = false;
  const std::string_view text = tool::field_of(bytes, spec_.index, syntax_, buffer_, &is_there);
  return is_there ? std::optional(text) : std::nullopt;
}

std::optional<double> FieldReader::number(std::string_view text) const {
  double value = 0;
  if (spec_.length > 0) {
    value = binary_number(text, spec_.type, spec_.big_endian);
  } else {
    text = without_blanks(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace pif::summarize
