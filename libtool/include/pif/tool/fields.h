// Fields of text records, as sort(1), cut(1) and CSV have them. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pif::tool {

// What stands between fields: blanks (any number of spaces and tabs), one character, or commas of CSV with its quotes.
struct FieldSyntax {
  enum class Kind : std::uint8_t { kBlanks, kCharacter, kCsv };
  Kind kind = Kind::kBlanks;
  char separator = ',';  // not of blanks
};

// The text of field `index` (from 0) of a record, whose line break is no part of it; empty: there is none, which
// *is_there says. It is in the record, or in `buffer`.
std::string_view field_of(std::string_view record, std::size_t index, const FieldSyntax& syntax, std::string& buffer,
                          bool* is_there = nullptr);

}  // namespace pif::tool
