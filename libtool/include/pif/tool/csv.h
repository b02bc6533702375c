// CSV text (RFC 4180): where records end, and their fields. A quote opens a stretch in which line breaks and separators
// are text; the next one closes it, and two together stand for one. Lines end in \n or \r\n.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pif::tool {

// Finds the ends of records in a text that comes in pieces.
class CsvRecords {
 public:
  // Behind the line break of the record that `text` begins or goes on with; nothing: it ends in text that comes later,
  // with which the next call goes on.
  std::optional<std::size_t> find_end(std::string_view text);
  // Whether a quote is open.
  bool is_quoted() const { return is_quoted_; }

 private:
  bool is_quoted_ = false;
};

// The record without its line break.
std::string_view without_line_break(std::string_view record);
// Field `index` (from 0) of a record without its line break, as it is there; empty: there is none.
std::string_view csv_field(std::string_view record, std::size_t index, char separator);
// The text of a field: of one in quotes what is between them. It is in the field, or in `buffer`.
std::string_view csv_text(std::string_view field, std::string& buffer);
// Which field of the header record has this text.
std::optional<std::size_t> csv_column(std::string_view header, std::string_view name, char separator);

}  // namespace pif::tool
