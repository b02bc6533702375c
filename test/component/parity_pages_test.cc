// Pages of parity: made, read, and rows rebuilt from them.
#include <bit>

#include "component/parity_fixture.h"

namespace pif::component::test {
namespace {

// All pages are what the plain way makes, and give back every member's rows.
void check_pages(ParityFixture& fixture, std::uint64_t pages) {
  auto sources = fixture.sources();
  std::uint64_t end = 0;
  for (std::uint64_t page = 0; page < pages; ++page) {
    const Page found = must(read_page(fixture.shape, fixture.parity, page));
    CHECK(found.bytes == fixture.plain_page(page));
    const Range place = must(page_bytes(fixture.shape, fixture.parity, page));
    CHECK(place == Range{end, end + found.bytes.size()});
    end = place.end;
    for (std::size_t lost = 0; lost < sources.size(); ++lost) {
      const PackedRows expected = fixture.stretch(lost, page);
      CHECK(found.vector[lost].hash == stretch_hash(fixture.shape.format, expected));
      CHECK(found.vector[lost].number == 0);
      RowSource* const own = std::exchange(sources[lost], nullptr);
      const PackedRows rebuilt = must(rebuild_stretch(fixture.shape, fixture.parity, page, lost, sources));
      sources[lost] = own;
      CHECK(rebuilt.bytes == expected.bytes);
      CHECK(rebuilt.lengths == expected.lengths);
    }
  }
  CHECK(fixture.damages(pages, sources).empty());
  CHECK(fixture.damages(pages, {}).empty());
  CHECK(fixture.read_code(pages) == Code::kEndOfFile);
}

// Gives one row at a time.
class SlowSource final : public RowSource {
 public:
  explicit SlowSource(RowSource& source) : source_(source) {}
  Status read(Row first, std::uint64_t count, std::uint64_t, PackedRows& out) override {
    return source_.read(first, std::min<std::uint64_t>(count, 1), 1, out);
  }

 private:
  RowSource& source_;
};

}  // namespace

TEST_CASE("parity pages: the hash is CRC-64 without inversions, and linear") {
  const Bytes digits = [] {
    const std::string text = "123456789";
    const auto bytes = std::as_bytes(std::span(text));
    return Bytes(bytes.begin(), bytes.end());
  }();
  CHECK(linear_hash(0, digits) == 0x2b9c7ee4e2780c8a);
  CHECK(linear_hash(linear_hash(0, std::span(digits).first(4)), std::span(digits).subspan(4)) == 0x2b9c7ee4e2780c8a);
  CHECK(linear_hash(0, {}) == 0);
  CHECK(linear_hash(0, Bytes(100)) == 0);
  for (const std::size_t size : {1u, 7u, 8u, 64u, 1000u, 5000u}) {
    const Bytes a = pattern(size, 1), b = pattern(size, 2);
    Bytes both = a;
    for (std::size_t i = 0; i < size; ++i) both[i] ^= b[i];
    CHECK(linear_hash(0, both) == (linear_hash(0, a) ^ linear_hash(0, b)));
  }
}

TEST_CASE("parity pages: a variable stretch's hash knows lengths and the order of its rows") {
  const auto hash = [](const PackedRows& rows) { return stretch_hash(Format::variable(), rows); };
  const Bytes bytes = pattern(10, 1);
  CHECK(hash({bytes, {4, 6}}) != hash({bytes, {6, 4}}));
  CHECK(hash({bytes, {10, 0}}) != hash({bytes, {0, 10}}));
  Bytes first = {std::byte{4}, {}, {}, {}}, second = {std::byte{6}, {}, {}, {}};
  first.insert(first.end(), bytes.begin(), bytes.begin() + 4);
  second.insert(second.end(), bytes.begin() + 4, bytes.end());
  CHECK(hash({bytes, {4, 6}}) == (linear_hash(0, first) ^ std::rotl(linear_hash(0, second), 1)));
  CHECK(stretch_hash(Format::fixed(5), {bytes, {5, 5}}) == linear_hash(0, bytes));
}

TEST_CASE("parity pages: a group is full when all its members have their row") {
  ParityShape shape{FileId(1), Format::fixed(8), {2, 0, 1}};
  const auto groups = [&](std::vector<std::uint64_t> rows) { return shape.full_groups(rows); };
  CHECK(groups({0, 0, 0}) == 0);
  CHECK(groups({2, 1, 2}) == 0);
  CHECK(groups({3, 1, 2}) == 1);
  CHECK(groups({6, 4, 4}) == 1);
  CHECK(groups({6, 4, 5}) == 2);
  CHECK(groups({UINT64_MAX, UINT64_MAX, 5}) == 2);
  CHECK(shape.page_rows() == 512);
  shape.format = Format::fixed(4097);
  CHECK(shape.page_rows() == 1);
  shape.format = Format::lines();
  CHECK(shape.page_rows() == 32);
}

TEST_CASE("parity pages: fixed records of all lengths come back") {
  for (const std::uint32_t length : {1u, 7u, 100u, 4096u, 65536u})
    for (const std::size_t members : {1u, 2u, 3u, 10u}) {
      INFO("records of " << length << " bytes, " << members << " members");
      ParityFixture fixture(Format::fixed(length), members);
      const std::uint64_t pages = length < 10 ? 2 : 5;
      fixture.fill_fixed(pages);
      fixture.write(0, pages);
      check_pages(fixture, pages);
    }
}

TEST_CASE("parity pages: long fixed records come back") {
  ParityFixture fixture(Format::fixed(1u << 20), 3);
  fixture.fill_fixed(2);
  fixture.write(0, 2);
  check_pages(fixture, 2);
}

TEST_CASE("parity pages: variable records come back, short, empty and long ones") {
  const auto lengths = GENERATE(0, 1, 2, 3, 4);
  for (std::size_t members : {1u, 2u, 3u, 5u, 10u}) {
    INFO("lengths of kind " << lengths << ", " << members << " members");
    ParityFixture fixture(lengths == 1 ? Format::lines() : Format::variable(), members);
    fixture.fill(3, [&](std::size_t member, Row row) -> std::size_t {
      const std::size_t random = (member * 7919 + row * 104729 + 13) % 10007;
      switch (lengths) {
        case 0: return random % 5001;
        case 1: return random % 100;
        case 2: return 0;
        case 3: return random % 50 == 0 ? 70000 : 0;
        default: return row < 40 ? 40000 + random : random % 10;  // a long page, then short ones
      }
    });
    fixture.write(0, 3);
    check_pages(fixture, 3);
  }
}

TEST_CASE("parity pages: a record of 16 MiB among short ones comes back") {
  ParityFixture fixture(Format::variable(), 2);
  fixture.fill(
      2, [](std::size_t member, Row row) -> std::size_t { return member == 1 && row == 5 ? kRecordLengthMax : 10; });
  fixture.write(0, 2);
  CHECK(must(rebuild_stretch(fixture.shape, fixture.parity, 0, 1, fixture.sources())).bytes ==
        fixture.stretch(1, 0).bytes);
  CHECK(fixture.damages(2, fixture.sources()).empty());
}

TEST_CASE("parity pages: how many are written at once, and what the sources give at once, makes no difference") {
  const auto format = GENERATE(Format::fixed(100), Format::fixed(5000), Format::lines());
  ParityFixture fixture(format, 3);
  fixture.fill(6, [&](std::size_t member, Row row) { return format.is_fixed() ? format.record_length : member + row; });
  fixture.write(0, 6);
  const Bytes pages = fixture.stored(".par"), sums = fixture.stored(".psum");

  must(fixture.parity.pages->resize(0));
  must(fixture.parity.sums->resize(0));
  for (std::uint64_t page = 0; page < 6; page += 2) fixture.write(page, 2);
  fixture.write(0, 1);
  CHECK(fixture.stored(".par") == pages);
  CHECK(fixture.stored(".psum") == sums);

  must(fixture.parity.pages->resize(0));
  must(fixture.parity.sums->resize(0));
  std::vector<std::unique_ptr<SlowSource>> slow;
  std::vector<RowSource*> sources;
  for (RowSource* source : fixture.sources()) {
    slow.push_back(std::make_unique<SlowSource>(*source));
    sources.push_back(slow.back().get());
  }
  must(write_pages(fixture.shape, fixture.parity, 0, 6, sources));
  CHECK(fixture.stored(".par") == pages);
  CHECK(fixture.stored(".psum") == sums);
  CHECK(must(rebuild_stretch(fixture.shape, fixture.parity, 5, 1, sources)).bytes == fixture.stretch(1, 5).bytes);
}

TEST_CASE("parity pages: rows that are not all there, or short, or damaged, make no page") {
  ParityFixture fixture(Format::fixed(5000), 2);
  fixture.fill_fixed(2);
  CHECK(code_of(write_pages(fixture.shape, fixture.parity, 0, 3, fixture.sources())) == Code::kEndOfFile);
  fixture.disk->flip_bit(ParityFixture::member_path(1) + ".dat", 5000 * 2 + 17, 3);
  CHECK(code_of(write_pages(fixture.shape, fixture.parity, 0, 2, fixture.sources())) == Code::kCorrupt);
  CHECK(code_of(write_pages(fixture.shape, fixture.parity, UINT64_MAX / 2, 1, fixture.sources())) == Code::kInvalid);

  ParityFixture with_short(Format::fixed(5000), 1);
  with_short.add({pattern(5000, 1), pattern(10, 2)});
  with_short.write(0, 1);
  CHECK(code_of(write_pages(with_short.shape, with_short.parity, 1, 1, with_short.sources())) == Code::kCorrupt);
}

TEST_CASE("parity pages: a full disk is told, and the same call again mends it") {
  for (const Format& format : {Format::fixed(1000), Format::lines()}) {
    ParityFixture fixture(format, 3);
    fixture.fill(8, [](std::size_t, Row) { return 1000; });
    fixture.disk->set_capacity(fixture.disk->used() + 9000);
    CHECK(code_of(write_pages(fixture.shape, fixture.parity, 0, 8, fixture.sources())) == Code::kNoSpace);
    fixture.disk->set_capacity(UINT64_MAX);
    fixture.write(0, 8);
    check_pages(fixture, 8);
  }
}

TEST_CASE("row source: gives rows at a distance, and the short last one") {
  ParityFixture fixture(Format::fixed(100), 1);
  std::vector<Bytes> rows;
  for (Row row = 0; row < 300; ++row) rows.push_back(pattern(row == 299 ? 30 : 100, row));
  fixture.add(rows);
  RowSource& source = *fixture.sources()[0];
  PackedRows out;
  for (const std::uint64_t step : {1u, 2u, 7u, 149u}) {
    const std::uint64_t count = 299 / step + 1, first = 299 - (count - 1) * step;
    must(source.read(first, count, step, out));
    REQUIRE(out.lengths.size() == count);
    Bytes expected;
    for (std::uint64_t i = 0; i < count; ++i) expected = joined(expected, rows[first + i * step]);
    CHECK(out.bytes == expected);
    CHECK(out.lengths.back() == 30);
    CHECK(code_of(source.read(first + 1, count, step, out)) == Code::kEndOfFile);
  }
  must(source.read(0, 0, 1, out));
  CHECK(out.lengths.empty());
  CHECK(out.bytes.empty());
  CHECK(code_of(source.read(300, 1, 1, out)) == Code::kEndOfFile);
  CHECK(code_of(source.read(UINT64_MAX, 2, UINT64_MAX, out)) == Code::kEndOfFile);
}

TEST_CASE("row source: gives no more than fits, but at least one row") {
  ParityFixture fixture(Format::variable(), 1);
  fixture.add({pattern(600000, 1), pattern(600000, 2), pattern(3u << 20, 3), pattern(1, 4), {}, pattern(5, 5)});
  RowSource& source = *fixture.sources()[0];
  PackedRows out;
  std::vector<std::size_t> counts;
  for (Row row = 0; row < 6; row += out.lengths.size()) {
    must(source.read(row, 6 - row, 1, out));
    counts.push_back(out.lengths.size());
  }
  CHECK(counts == std::vector<std::size_t>{1, 1, 1, 3});
  CHECK(out.lengths == std::vector<std::uint32_t>{1, 0, 5});
  must(source.read(0, 2, 5, out));
  CHECK(out.bytes == joined(pattern(600000, 1), pattern(5, 5)));
}

}  // namespace pif::component::test
