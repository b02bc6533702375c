// Fields of text records, as sort(1), cut(1) and CSV have them. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace pif::tool {

// Fields are separated by blanks (any number of spaces and tabs), by one character, or by commas of CSV with its
// quotes.
struct FieldSyntax {
  enum class Kind : std::uint8_t { kBlanks, kCharacter, kCsv };
  Kind kind = Kind::kBlanks;
  char separator = ',';  // not of blanks
};

// A user's choice of fields. The separator has one character, or none: blanks, and a comma of CSV.
struct FieldOptions {
  std::string separator;
  bool csv = false;
  // The fields it stands for.
  FieldSyntax syntax() const;
};
// -t and --csv. Parsing writes to `options`, which outlives that.
void add_field_options(CLI::App& app, FieldOptions& options);

// The text of field `index` (from 0) of a record, whose line break is no part of it; empty: there is none, which
// *is_there says. It is in the record, or in `buffer`.
std::string_view field_of(std::string_view record, std::size_t index, const FieldSyntax& syntax, std::string& buffer,
                          bool* is_there = nullptr);

}  // namespace pif::tool
