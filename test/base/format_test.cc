#include "pif/base/format.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

namespace pif {
namespace {

TEST_CASE("fixed records may have 1 byte to the longest record, and nothing else") {
  CHECK(Format::fixed(1).validate());
  CHECK(Format::fixed(kRecordLengthMax).validate());
  CHECK(Format::fixed(0).validate().error().text == "record length 0 is not between 1 and 16777216 bytes");
  CHECK(Format::fixed(kRecordLengthMax + 1).validate().error().code == Code::kInvalid);
}

TEST_CASE("variable and delimited records have no record length") {
  CHECK(Format::variable().validate());
  CHECK(Format::lines().validate());
  CHECK(Format{RecordKind::kVariable, 7, 0}.validate().error().code == Code::kInvalid);
  CHECK(Format{RecordKind::kDelimited, 7, '\n'}.validate().error().code == Code::kInvalid);
}

TEST_CASE("only delimited records have a delimiter") {
  CHECK(Format{RecordKind::kFixed, 100, '\n'}.validate().error().text ==
        "a delimiter is given for records that are not delimited");
  CHECK(Format{RecordKind::kVariable, 0, '\n'}.validate().error().code == Code::kInvalid);
  CHECK(Format::delimited(0).validate());
}

TEST_CASE("an unknown record kind is refused") {
  CHECK(Format{static_cast<RecordKind>(9), 0, 0}.validate().error().text == "unknown record kind 9");
}

TEST_CASE("an empty file has no records") {
  CHECK(fixed_file_length(100, 0) == FileLength{0, 0});
  CHECK(fixed_record_bytes(100, {0, 0}, 0) == 0);
}

TEST_CASE("the last fixed record may be short, and all add up to the file") {
  CHECK(fixed_file_length(100, 250) == FileLength{3, 250});
  CHECK(fixed_record_bytes(100, {3, 250}, 1) == 100);
  CHECK(fixed_record_bytes(100, {3, 250}, 2) == 50);
  CHECK(fixed_record_bytes(100, {3, 250}, 3) == 0);
  REQUIRE(rc::check([] {
    const auto length = *rc::gen::inRange<std::uint32_t>(1, 3000);
    const auto bytes = *rc::gen::inRange<std::uint64_t>(0, 100000);
    const FileLength file_length = fixed_file_length(length, bytes);
    std::uint64_t sum = 0;
    for (RecordNumber n = 0; n < file_length.records; ++n) {
      const std::uint32_t one = fixed_record_bytes(length, file_length, n);
      RC_ASSERT(one >= 1u);
      RC_ASSERT(one <= length);
      sum += one;
    }
    RC_ASSERT(sum == bytes);
    RC_ASSERT(fixed_record_bytes(length, file_length, file_length.records) == 0u);
  }));
}

TEST_CASE("lengths do not overflow at the largest lengths") {
  const std::uint64_t bytes = ~std::uint64_t{0};
  CHECK(fixed_file_length(1, bytes).records == bytes);
  CHECK(fixed_file_length(2, bytes).records == bytes / 2 + 1);
  CHECK(fixed_record_bytes(2, fixed_file_length(2, bytes), bytes / 2) == 1);
}

}  // namespace
}  // namespace pif
