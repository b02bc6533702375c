// The one way by which rows get into a component.
#include "pif/access/row_sink.h"

#include <catch2/catch.hpp>

#include "pif/component/memory_storage.h"

namespace pif::access {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text.data(), text.size()));
  return {all.begin(), all.end()};
}

// The component of LFS `lfs` of a file over four LFSs, two bevies of two.
struct Place {
  explicit Place(const Format& format, LfsIndex of) : lfs(of) {
    parts.file = FileId(7);
    parts.path = "/f";
    parts.format = format;
    parts.layout = *parity::Layout::make(4, {2, 2});
    parts.nodes.resize(4);
    parts.nodes[lfs].set_name("lfs" + std::to_string(lfs));
    files = *component::open_files(*storage, "/7", format, component::OpenMode::kCreate);
  }
  component::Reader reader(const component::Tail& tail) { return component::Reader(parts.stored_shape(), tail, files); }

  std::shared_ptr<component::MemoryDisk> disk = component::MemoryDisk::make();
  std::unique_ptr<component::Storage> storage = component::make_memory_storage(disk);
  FileParts parts;
  LfsIndex lfs;
  component::Files files;
};

}  // namespace

TEST_CASE("variable rows follow one another, in batches and one by one") {
  Place place(Format::lines(), 0);
  RowSink sink(place.parts, 0, place.files);
  const std::vector<std::uint32_t> lengths = {3};
  REQUIRE(sink.append_rows(0, lengths, bytes_of("ab\n")).has_value());
  REQUIRE(sink.append_row(1, bytes_of("c\n")).has_value());
  CHECK(sink.rows() == 2);
  CHECK(sink.bytes() == 5);
  const auto end = sink.finish();
  REQUIRE(end);
  CHECK(end->by_descriptor);
  CHECK(end->tail.rows == 2);
  std::vector<std::uint64_t> ends(3);
  REQUIRE(place.reader(end->tail).read_ends(0, 2, ends).has_value());
  CHECK(ends == std::vector<std::uint64_t>{0, 3, 5});
}

TEST_CASE("a row that is left out is told, with the LFS") {
  Place place(Format::lines(), 1);
  RowSink sink(place.parts, 1, place.files);
  const std::vector<std::uint32_t> lengths = {1};
  const auto gap = sink.append_rows(1, lengths, bytes_of("\n"));  // row 0 comes first
  REQUIRE(!gap);
  CHECK(gap.error().code == Code::kInvalid);
  CHECK(gap.error().node == "lfs1");
  CHECK(sink.rows() == 0);
}

TEST_CASE("a finished component takes no more rows, and ends as it was said to end") {
  Place place(Format::fixed(4), 1);
  RowSink sink(place.parts, 1, place.files);
  const Bytes rows = bytes_of("aaaabbbb");
  REQUIRE(sink.write_rows(0, 2, {rows.data(), 4}).has_value());
  const auto end = sink.finish();
  REQUIRE(end);
  CHECK(end->tail.rows == 2);
  const auto late = sink.write_rows(2, 1, {rows.data(), 4});
  REQUIRE(!late);
  CHECK(late.error().code == Code::kInvalid);
  CHECK(sink.finish()->tail == end->tail);
  CHECK(sink.rows() == 2);
}

TEST_CASE("records of a batch get into their rows, whatever the distances between them") {
  Place place(Format::fixed(2), 0);
  RowSink sink(place.parts, 0, place.files);
  Bytes in(2 * 16);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i / 2 + 1);  // record n is n + 1, twice
  std::vector<RowRange> ranges;
  split(place.parts.layout, {0, 16}, ranges);
  for (const RowRange& rows : ranges) {
    if (rows.lfs == 0) REQUIRE(sink.write_records(rows, {0, 16}, in).has_value());
  }
  const auto end = sink.finish();
  REQUIRE(end);
  const std::uint64_t count = place.parts.layout.rows(0, 16);
  REQUIRE(end->tail.rows == count);
  Bytes got(2 * count);
  REQUIRE(place.reader(end->tail).read_rows(0, count, {got.data(), 2}).has_value());
  for (Row row = 0; row < count; ++row) {
    const RecordNumber record = place.parts.layout.record_at({0, row});
    CHECK(got[2 * row] == static_cast<std::byte>(record + 1));
  }
}

}  // namespace pif::access
