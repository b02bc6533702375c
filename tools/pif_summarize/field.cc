#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "summarize.h"

namespace pif::summarize {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_type(char type, std::uint32_t length) {
  if (type == 'f') return length == 4 || length == 8;
  return (type == 'u' || type == 'i') && length >= 1 && length <= 8;
}

}  // namespace

std::vector<std::string> words_of(std::string_view text, char end) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(end), text.size());
    words.emplace_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return words;
}

Result<FieldSpec> parse_field(const std::string& text) {
  const auto no_field = [&] {
    return fail(Code::kInvalid, fmt::format("'{}' is no field: a number from 1, a column's name of a CSV file, or "
                                            "OFFSET:LENGTH:u, i or f, and be",
                                            text));
  };
  FieldSpec field;
  field.name = text;
  const auto parts = words_of(text, ':');
  if (parts.size() == 1) {
    const auto index = number(text);
    if (!index || *index == 0) return no_field();
    field.index = *index - 1;
    return field;
  }
  if (parts.size() != 3) return no_field();
  const auto offset = number(parts[0]), length = number(parts[1]);
  const std::string_view type = parts[2];
  const bool has_order = type.size() == 3 && (type.ends_with("be") || type.ends_with("le"));
  if (!offset || !length || type.empty() || !(type.size() == 1 || has_order) || !is_type(type[0], *length))
    return no_field();
  field.offset = *offset;
  field.length = *length;
  field.type = type[0];
  field.big_endian = type.ends_with("be");
  return field;
}

}  // namespace pif::summarize
