#include "pif/tool/csv.h"

#include <algorithm>

namespace pif::tool {
namespace {

// Behind the field that begins at `at`: at its separator, or the end of the record.
std::size_t end_of_field(std::string_view record, std::size_t at, char separator) {
  bool is_quoted = false;
  for (; at < record.size() && (is_quoted || record[at] != separator); ++at)
    if (record[at] == '"') is_quoted = !is_quoted;
  return at;
}

}  // namespace

std::optional<std::size_t> CsvRecords::find_end(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t line = std::min(text.find('\n', at), text.size());
    const auto quotes = std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                   text.begin() + static_cast<std::ptrdiff_t>(line), '"');
    is_quoted_ = is_quoted_ != (quotes % 2 != 0);
    if (line < text.size() && !is_quoted_) return line + 1;
    at = line + 1;
  }
  return std::nullopt;
}

std::string_view without_line_break(std::string_view record) {
  if (record.ends_with('\n')) {
    record.remove_suffix(1);
    if (record.ends_with('\r')) record.remove_suffix(1);
  }
  return record;
}

std::string_view csv_field(std::string_view record, std::size_t index, char separator) {
  std::size_t at = 0;
  for (; index > 0; --index) {
    at = end_of_field(record, at, separator) + 1;
    if (at > record.size()) return {};
  }
  return record.substr(at, end_of_field(record, at, separator) - at);
}

std::string_view csv_text(std::string_view field, std::string& buffer) {
  if (!field.starts_with('"')) return field;
  field.remove_prefix(1);
  if (field.ends_with('"')) field.remove_suffix(1);
  if (field.find('"') == std::string_view::npos) return field;
  buffer.clear();
  for (std::size_t at = 0; at < field.size(); ++at) {
    buffer += field[at];
    if (field.substr(at, 2) == "\"\"") ++at;
  }
  return buffer;
}

std::optional<std::size_t> csv_column(std::string_view header, std::string_view name, char separator) {
  header = without_line_break(header);
  std::string buffer;
  std::size_t at = 0;
  for (std::size_t column = 0; at <= header.size(); ++column) {
    const std::size_t end = end_of_field(header, at, separator);
    if (csv_text(header.substr(at, end - at), buffer) == name) return column;
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace pif::tool
