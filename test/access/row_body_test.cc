// Rows as the body of a message.
#include "pif/access/row_body.h"

#include <catch2/catch.hpp>

namespace pif::access {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text.data(), text.size()));
  return {all.begin(), all.end()};
}

// Six LFSs, two bevies of three: distances between the records of an LFS vary.
FileParts uneven_parts() {
  FileParts parts;
  parts.format = Format::fixed(2);
  parts.layout = *parity::Layout::make(6, {3, 3});
  return parts;
}

// All rows of LFS 0, of records [0, records).
RowRange rows_of_first(const FileParts& parts, std::uint64_t records) {
  std::vector<RowRange> ranges;
  split(parts.layout, {0, records}, ranges);
  for (const RowRange& range : ranges)
    if (range.lfs == 0) return range;
  return {};
}

}  // namespace

TEST_CASE("a body has the lengths, then the rows") {
  const RowBody body{{1, 0x0102}, bytes_of("xyz")};
  const net::Buffer buffer = body.to_buffer();
  CHECK(body.size() == 11);
  CHECK(Bytes(buffer.span().begin(), buffer.span().end()) ==
        bytes_of(std::string_view("\x01\0\0\0\x02\x01\0\0xyz", 11)));
  CHECK(RowBody{}.to_buffer().empty());
  CHECK(RowBody{{}, bytes_of("ab")}.to_buffer().size() == 2);
}

TEST_CASE("records are packed as rows of their LFS, the last one as short as it is") {
  FileParts parts;
  parts.format = Format::fixed(2);
  parts.layout = *parity::Layout::make(2);
  CHECK(gather(parts, {0, 0, 2, 10, true}, 10, bytes_of("aabbc")) == bytes_of("aac"));
  CHECK(gather(parts, {1, 0, 1, 11, true}, 10, bytes_of("aabbc")) == bytes_of("bb"));
}

TEST_CASE("records at varying distances are packed row by row") {
  const FileParts parts = uneven_parts();
  const RowRange rows = rows_of_first(parts, 24);
  REQUIRE(!rows.even);
  std::string in;
  for (char c = 'a'; c < 'a' + 24; ++c) in += std::string(2, c);
  const Bytes packed = gather(parts, rows, 0, bytes_of(in));
  REQUIRE(packed.size() == rows.rows * 2);
  for (std::uint64_t i = 0; i < rows.rows; ++i) {
    const RecordNumber record = parts.layout.record_at({0, i});
    CHECK(packed[2 * i] == static_cast<std::byte>('a' + record));
  }
}

}  // namespace pif::access
