// Between messages and types: what cannot be is refused, the rest comes back as it was.
#include "pif/wire/convert.h"

#include <catch2/catch.hpp>

using namespace pif;
using namespace pif::wire;

namespace {

Code code_of_format(std::uint32_t kind, std::uint32_t record_length, std::uint32_t delimiter) {
  proto::Format format;
  format.set_kind(kind);
  format.set_record_length(record_length);
  format.set_delimiter(delimiter);
  const auto converted = format_of(format);
  return converted ? Code::kOk : converted.error().code;
}

}  // namespace

TEST_CASE("formats and lengths come back from a message as they were") {
  for (const Format& format : {Format::fixed(1), Format::fixed(4096), Format::variable(), Format::lines()})
    CHECK(format_of(proto_of(format)).value() == format);
  for (const FileLength& file_length : {FileLength{}, FileLength{3, 250}})
    CHECK(file_length_of(proto_of(file_length)) == file_length);
}

TEST_CASE("a format that cannot be is refused") {
  CHECK(code_of_format(1, 100, 0) == Code::kOk);
  CHECK(code_of_format(0, 100, 0) == Code::kInvalid);
  CHECK(code_of_format(4, 0, 0) == Code::kInvalid);
  CHECK(code_of_format(257, 100, 0) == Code::kInvalid);  // not taken for kind 1
  CHECK(code_of_format(1, 0, 0) == Code::kInvalid);
  CHECK(code_of_format(3, 0, 256) == Code::kInvalid);
  CHECK(code_of_format(3, 0, 10) == Code::kOk);
}

TEST_CASE("a layout without LFSs, or with bevies that do not fit them, is refused") {
  proto::FileLayout layout;
  CHECK_FALSE(layout_of(layout).has_value());
  for (const std::uint32_t node : {4, 2, 7, 1}) layout.add_nodes(node);
  CHECK(layout_of(layout).value().width() == 4);
  layout.add_bevies(2);
  CHECK_FALSE(layout_of(layout).has_value());
  layout.add_bevies(2);
  CHECK(layout_of(layout).value().has_parity());
  CHECK(form_of(layout) == 0u);  // an older one
  layout.set_form(1);
  CHECK(layout_of(layout).has_value());
  CHECK(form_of(layout) == 1u);
  layout.set_form(2);
  CHECK(layout_of(layout).error().code == Code::kVersion);
  layout.set_form(1);
  layout.clear_bevies();
  CHECK(layout_of(layout).error().code == Code::kInvalid);
}

TEST_CASE("an error travels with its code, its text and who said so; an unknown code is internal") {
  const Error error{Code::kBusy, "held by pif-copy[4711]", "lfs2"};
  const Error back = error_of(proto_of(error, "server"));
  CHECK(back.code == error.code);
  CHECK(back.text == error.text);
  CHECK(back.node == "lfs2");
  CHECK(proto_of(Error{Code::kBusy, "x", {}}, "server").node() == "server");
  CHECK(proto_of(Error{Code::kBusy, "x\xff", {}}).text().find('\xff') == std::string::npos);  // UTF-8
  proto::Error newer;
  newer.set_code(60'000);
  CHECK(error_of(newer).code == Code::kInternal);
}
