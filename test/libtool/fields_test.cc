// Fields of a record, beside what cut(1) and awk(1) say of them.
#include <catch2/catch.hpp>

#include "pif/tool/fields.h"

namespace pif::tool {
namespace {

using Kind = FieldSyntax::Kind;

// The field, or "-" if there is none.
std::string field(std::string_view record, std::size_t index, FieldSyntax syntax = {}) {
  std::string buffer;
  bool is_there = false;
  const std::string text(field_of(record, index, syntax, buffer, &is_there));
  CHECK((is_there || text.empty()));
  return is_there ? text : "-";
}

}  // namespace

TEST_CASE("fields between blanks are words") {
  for (const auto& [index, word] : {std::pair(0, "one"), std::pair(1, "two"), std::pair(2, "-"), std::pair(9, "-")})
    CHECK(field(" one \t two\r\n", static_cast<std::size_t>(index)) == word);
  CHECK(field("", 0) == "-");
  CHECK(field(" \n", 0) == "-");
}

TEST_CASE("fields between single characters may be empty") {
  const FieldSyntax colons{Kind::kCharacter, ':'};
  for (const auto& [index, text] : {std::pair(0, "a b"), std::pair(1, ""), std::pair(2, "c"), std::pair(3, "-")})
    CHECK(field("a b::c\n", static_cast<std::size_t>(index), colons) == text);
  CHECK(field("", 0, colons).empty());
  CHECK(field("", 1, colons) == "-");
  CHECK(field("a:\n", 1, colons).empty());
}

TEST_CASE("fields of CSV have no quotes") {
  const FieldSyntax csv{Kind::kCsv, ','};
  CHECK(field("1,\"a,b\",\"say \"\"hi\"\"\"\r\n", 1, csv) == "a,b");
  CHECK(field("1,\"a,b\",\"say \"\"hi\"\"\"\r\n", 2, csv) == "say \"hi\"");
  CHECK(field("1,\"a,b\"\n", 2, csv) == "-");
  CHECK(field("1,\n", 1, csv).empty());
}

}  // namespace pif::tool
