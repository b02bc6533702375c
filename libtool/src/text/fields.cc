#include "pif/tool/fields.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "pif/tool/csv.h"

namespace pif::tool {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view behind_blanks(std::string_view record, std::size_t index, bool& is_there) {
  const char* at = record.data();
  const char* const end = at + record.size();
  for (;; --index) {
    while (at != end && is_blank(*at)) ++at;
    const char* const begin = at;
    while (at != end && !is_blank(*at)) ++at;
    is_there = at != begin;
    if (index == 0 || !is_there) return {begin, static_cast<std::size_t>(at - begin)};
  }
}

std::string_view between(std::string_view record, std::size_t index, char separator, bool& is_there) {
  for (; index > 0; --index) {
    const std::size_t at = record.find(separator);
    is_there = at != std::string_view::npos;
    if (!is_there) return {};
    record.remove_prefix(at + 1);
  }
  is_there = true;
  return record.substr(0, record.find(separator));
}

}  // namespace

FieldSyntax FieldOptions::syntax() const {
  if (csv) return {FieldSyntax::Kind::kCsv, separator.empty() ? ',' : separator.front()};
  if (separator.empty()) return {};
  return {FieldSyntax::Kind::kCharacter, separator.front()};
}

void add_field_options(CLI::App& app, FieldOptions& options) {
  app.add_option("-t", options.separator, "character between fields (default: blanks)")
      ->type_name("C")
      ->check([](const std::string& text) { return text.size() == 1 ? "" : "must be one character"; });
  app.add_flag("--csv", options.csv, "fields are those of CSV (pif put --csv)");
}

std::string_view field_of(std::string_view record, std::size_t index, const FieldSyntax& syntax, std::string& buffer,
                          bool* is_there) {
  bool ignored = false;
  bool& found = is_there != nullptr ? *is_there : ignored;
  record = without_line_break(record);
  switch (syntax.kind) {
    case FieldSyntax::Kind::kBlanks: return behind_blanks(record, index, found);
    case FieldSyntax::Kind::kCharacter: return between(record, index, syntax.separator, found);
    case FieldSyntax::Kind::kCsv: break;
  }
  const std::string_view field = csv_field(record, index, syntax.separator);
  found = field.data() != nullptr;  // one that is there begins somewhere in the record
  return csv_text(field, buffer);
}

}  // namespace pif::tool
