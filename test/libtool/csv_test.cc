// CSV text: records that come in pieces, fields, quotes.
#include "pif/tool/csv.h"

#include <vector>

#include <catch2/catch.hpp>

namespace pif::tool {
namespace {

// The records of a text that comes in pieces of so many bytes.
std::vector<std::string> records_of(const std::string& text, std::size_t piece) {
  CsvRecords records;
  std::vector<std::string> all(1);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    std::string_view rest = std::string_view(text).substr(at, piece);
    while (const auto end = records.find_end(rest)) {
      all.back() += rest.substr(0, *end);
      rest.remove_prefix(*end);
      all.emplace_back();
    }
    all.back() += rest;
  }
  return all;
}
std::string text_of(std::string_view field) {
  std::string buffer;
  return std::string(csv_text(field, buffer));
}

}  // namespace

TEST_CASE("a record ends at the first line break outside of quotes, whatever pieces it comes in") {
  const std::string text = "a,b\r\n\"x\ny\",\"say \"\"\n\"\"\"\n\n\"\"\nlast";
  const std::vector<std::string> expected = {"a,b\r\n", "\"x\ny\",\"say \"\"\n\"\"\"\n", "\n", "\"\"\n", "last"};
  for (std::size_t piece = 1; piece <= text.size(); ++piece) CHECK(records_of(text, piece) == expected);
}

TEST_CASE("a quote that is not closed is known at the end") {
  CsvRecords records;
  CHECK(!records.find_end("a,\"b\nc\n"));
  CHECK(records.is_quoted());
}

TEST_CASE("fields are what separators outside of quotes divide") {
  const std::string_view record = "1,\"a,b\",,\"\"";
  CHECK(csv_field(record, 0, ',') == "1");
  CHECK(csv_field(record, 1, ',') == "\"a,b\"");
  CHECK(csv_field(record, 2, ',').empty());
  CHECK(csv_field(record, 3, ',') == "\"\"");
  CHECK(csv_field(record, 4, ',').empty());
  CHECK(csv_field("1;2", 1, ';') == "2");
  CHECK(csv_field("", 0, ',').empty());
}

TEST_CASE("the text of a field is without its quotes, and two quotes are one") {
  CHECK(text_of("plain") == "plain");
  CHECK(text_of("\"a,b\"") == "a,b");
  CHECK(text_of("\"say \"\"hi\"\"\"") == "say \"hi\"");
  CHECK(text_of("\"\"") == "");
  CHECK(text_of("\"\"\"\"") == "\"");
  CHECK(text_of("\"") == "");
}

TEST_CASE("columns are found by the text of the header's fields") {
  CHECK(csv_column("id,\"full name\",x\r\n", "full name", ',') == 1);
  CHECK(csv_column("id,\"full name\",x\r\n", "x", ',') == 2);
  CHECK(!csv_column("id,x\n", "y", ','));
}

}  // namespace pif::tool
