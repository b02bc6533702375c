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

// Four LFSs, two bevies of two: rows 0, 2, ... of LFS 0 hold parity.
FileParts parts_with_parity() {
  FileParts parts;
  parts.format = Format::fixed(2);
  parts.layout = *parity::Layout::make(4, {2, 2});
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

TEST_CASE("cells that hold parity are packed as zeros") {
  const FileParts parts = parts_with_parity();
  const RowRange rows = rows_of_first(parts, 12);
  std::string in;
  for (char c = 'a'; c < 'a' + 12; ++c) in += std::string(2, c);
  const Bytes packed = gather(parts, rows, 0, bytes_of(in));
  REQUIRE(packed.size() == rows.rows * 2);
  for (std::uint64_t i = 0; i < rows.rows; ++i) {
    const auto record = record_of(parts.layout, rows, i);
    CHECK(packed[2 * i] == (record ? static_cast<std::byte>('a' + *record) : std::byte{0}));
  }
}

}  // namespace pif::access
