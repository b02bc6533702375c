// Damage to pages of parity, their sums, and the rows they were made of: all of it is found, and nobody gets wrong
// rows.
#include <cstring>

#include "component/parity_fixture.h"

namespace pif::component::test {
namespace {

Code rebuild_code(ParityFixture& fixture, std::uint64_t page, std::size_t lost) {
  return code_of(rebuild_stretch(fixture.shape, fixture.parity, page, lost, fixture.sources()));
}

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

// Three members, four pages.
ParityFixture written(const Format& format) {
  ParityFixture fixture(format, 3);
  fixture.fill(4, [&](std::size_t member, Row row) {
    return format.is_fixed() ? format.record_length : (member + row * 31) % 200;
  });
  fixture.write(0, 4);
  must(sync(fixture.parity));  // edits change what is durable, too
  return fixture;
}

// The same rows, but this one has other bytes, with right sums.
void overwrite(ParityFixture& fixture, std::size_t member, Row row) {
  auto rows = fixture.members[member]->rows;
  rows[row] = pattern(rows[row].size(), 4711);
  const Shape shape = Shape::of(fixture.shape.file, fixture.shape.format, 1);
  Files& files = fixture.members[member]->files;
  Writer writer(shape, {}, files);
  must(writer.truncate(0));
  for (const Bytes& bytes : rows) {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    if (shape.format.is_fixed())
      must(writer.write_rows(writer.rows(), 1, {bytes.data(), length}));
    else
      must(writer.append_rows(std::span(&length, 1), bytes));
  }
  fixture.members[member]->reader->set_tail(must(writer.finish()));
}

}  // namespace

TEST_CASE("parity damage: a flipped bit anywhere in a page or in its entry is found, and other pages are read") {
  const Format format = GENERATE(Format::fixed(100), Format::fixed(4096), Format::lines());
  ParityFixture fixture = written(format);
  const std::size_t entry = (format.is_fixed() ? 2 : 3) * 8 + 3 * 16;
  CHECK(fixture.stored(".psum").size() == 4 * entry);
  const auto flip = [&](const std::string& suffix, std::uint64_t byte) {
    fixture.disk->flip_bit(fixture.path + suffix, byte, static_cast<unsigned>(byte % 8));
  };
  for (std::size_t byte = 0; byte < entry; ++byte) {
    flip(".psum", entry + byte);
    CHECK(fixture.read_code(0) == Code::kOk);
    CHECK(fixture.read_code(1) == Code::kCorrupt);
    CHECK(rebuild_code(fixture, 1, 0) == Code::kCorrupt);
    // Where page 2 begins stands in the entry of page 1. A page's own sum is not needed for that.
    CHECK(fixture.read_code(2) == (format.is_fixed() || byte < 8 ? Code::kOk : Code::kCorrupt));
    flip(".psum", entry + byte);
  }
  const Range place = must(page_bytes(fixture.shape, fixture.parity, 1));
  for (std::uint64_t byte = place.begin; byte < place.end; byte += byte < place.begin + 256 ? 1 : 97) {
    flip(".par", byte);
    CHECK(fixture.read_code(0) == Code::kOk);
    CHECK(fixture.read_code(1) == Code::kCorrupt);
    CHECK(fixture.read_code(2) == Code::kOk);
    flip(".par", byte);
  }
  CHECK(fixture.damages(4, fixture.sources()).empty());
  flip(".par", place.end - 1);
  flip(".psum", 3 * entry + entry - 1);
  const auto lines = fixture.damages(4, {});
  CHECK(lines.size() == 2);
  CHECK(mentions(lines, "file 12, parity page 1: the bytes do not match"));
  CHECK(mentions(lines, "file 12, parity page 3: its vector does not match"));
}

TEST_CASE("parity damage: pages in each other's place, or another file's, are found") {
  ParityFixture fixture = written(Format::fixed(4096));
  fixture.disk->edit(fixture.path + ".par",
                     [](Bytes& bytes) { std::swap_ranges(bytes.begin(), bytes.begin() + 4096, bytes.begin() + 4096); });
  CHECK(fixture.read_code(0) == Code::kCorrupt);
  fixture.disk->edit(fixture.path + ".psum",
                     [](Bytes& bytes) { std::swap_ranges(bytes.begin(), bytes.begin() + 64, bytes.begin() + 64); });
  CHECK(fixture.read_code(0) == Code::kCorrupt);
  CHECK(fixture.read_code(1) == Code::kCorrupt);
  fixture.shape.file = FileId(13);
  CHECK(fixture.read_code(2) == Code::kCorrupt);
}

TEST_CASE("parity damage: a member with other rows than the page was made of is named") {
  const Format format = GENERATE(Format::fixed(100), Format::fixed(4096), Format::lines());
  ParityFixture fixture = written(format);
  const Row row = fixture.shape.row_of(2, fixture.shape.page_rows() + 7 % fixture.shape.page_rows());
  overwrite(fixture, 2, row);
  CHECK(fixture.members[2]->reader->check().value().empty());
  const auto rebuilt = rebuild_stretch(fixture.shape, fixture.parity, 1, 0, fixture.sources());
  REQUIRE(code_of(rebuilt) == Code::kCorrupt);
  CHECK(rebuilt.error().text.find("parity page 1: the rows of member 2") != std::string::npos);
  CHECK(rebuild_code(fixture, 1, 2) == Code::kOk);  // from all others
  CHECK(rebuild_code(fixture, 0, 0) == Code::kOk);
  const auto lines = fixture.damages(4, fixture.sources());
  REQUIRE(lines.size() == 1);
  CHECK(mentions(lines, "parity page 1: the rows of member 2"));
  auto sources = fixture.sources();
  sources[2] = nullptr;
  CHECK(fixture.damages(4, sources).empty());
}

TEST_CASE("parity damage: rows longer than a page can have are the wrong ones") {
  ParityFixture fixture = written(Format::variable());
  fixture.members[1]->rows[fixture.shape.row_of(1, 3)] = pattern(5000, 1);
  overwrite(fixture, 1, fixture.shape.row_of(1, 3));
  CHECK(rebuild_code(fixture, 0, 0) == Code::kCorrupt);
  CHECK(mentions(fixture.damages(4, fixture.sources()), "parity page 0, member 1: "));
}

TEST_CASE("parity damage: a page with right sums that is not the XOR gives no rows") {
  ParityFixture fixture = written(Format::fixed(4096));
  Bytes page = must(read_page(fixture.shape, fixture.parity, 1)).bytes;
  page[5] ^= std::byte{1};
  const std::uint64_t sum = chunk_sum(fixture.shape.file, kPageStream, 1, page);
  must(fixture.parity.pages->write(4096, page));
  must(fixture.parity.sums->write(64, std::as_bytes(std::span(&sum, 1))));
  CHECK(fixture.read_code(1) == Code::kOk);
  for (std::size_t lost = 0; lost < 3; ++lost) CHECK(rebuild_code(fixture, 1, lost) == Code::kCorrupt);
  CHECK(mentions(fixture.damages(4, fixture.sources()), "parity page 1: it is not the XOR"));
}

TEST_CASE("parity damage: what a source cannot give is told") {
  ParityFixture fixture = written(Format::fixed(4096));
  fixture.disk->flip_bit(ParityFixture::member_path(1) + ".dat", fixture.shape.row_of(1, 2) * 4096, 0);
  CHECK(rebuild_code(fixture, 2, 0) == Code::kCorrupt);
  CHECK(rebuild_code(fixture, 2, 1) == Code::kOk);
  CHECK(mentions(fixture.damages(4, fixture.sources()), "parity page 2, member 1: file 12, chunk"));
}

TEST_CASE("parity damage: files that end too early, or are not there") {
  const Format format = GENERATE(Format::fixed(4096), Format::lines());
  ParityFixture fixture = written(format);
  const std::uint64_t pages = must(fixture.parity.pages->size()), sums = must(fixture.parity.sums->size());
  must(fixture.parity.pages->resize(pages - 1));
  CHECK(fixture.read_code(2) == Code::kOk);
  CHECK(fixture.read_code(3) == Code::kCorrupt);
  must(fixture.parity.sums->resize(sums - 1));
  CHECK(fixture.read_code(2) == Code::kOk);
  CHECK(fixture.read_code(3) == Code::kEndOfFile);
  CHECK(fixture.read_code(UINT64_MAX) == Code::kEndOfFile);
  must(fixture.parity.sums->resize(sums));  // zeros
  CHECK(fixture.read_code(3) == Code::kCorrupt);
  CHECK(fixture.damages(1000, {}).size() == 100);
  fixture.parity.pages.reset();
  CHECK(fixture.read_code(0) == Code::kCorrupt);
  fixture.parity.sums.reset();
  CHECK(fixture.read_code(0) == Code::kEndOfFile);
}

TEST_CASE("parity damage: lengths that cannot be are refused, whatever the sums say") {
  ParityFixture fixture = written(Format::lines());
  const auto set_end = [&](std::uint64_t page, std::uint64_t end) {
    fixture.disk->edit(fixture.path + ".psum", [&](Bytes& bytes) {
      const std::size_t at = page * 72;
      std::memcpy(bytes.data() + at + 16, &end, 8);
      const std::uint64_t sum = chunk_sum(FileId(12), kVectorStream, page, std::span(bytes).subspan(at + 16, 56));
      std::memcpy(bytes.data() + at + 8, &sum, 8);
    });
  };
  for (const std::uint64_t end : {std::uint64_t{0}, std::uint64_t{255}, std::uint64_t{300} << 20, UINT64_MAX}) {
    set_end(0, end);
    CHECK(fixture.read_code(0) == Code::kCorrupt);
    CHECK(fixture.read_code(1) == Code::kCorrupt);
  }
  // A page whose header says something else than its length.
  Bytes page(300);
  const std::uint64_t sum = chunk_sum(FileId(12), kPageStream, 0, page);
  must(fixture.parity.pages->write(0, page));
  must(fixture.parity.sums->write(0, std::as_bytes(std::span(&sum, 1))));
  set_end(0, 300);
  CHECK(fixture.read_code(0) == Code::kCorrupt);
}

TEST_CASE("parity damage: bytes of chance are no pages") {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const Format& format : {Format::fixed(1000), Format::variable()}) {
      ParityFixture fixture(format, 3);
      must(fixture.parity.pages->write(0, pattern(10000, seed)));
      must(fixture.parity.sums->write(0, pattern(1000, seed + 100)));
      for (std::uint64_t page = 0; page < 20; ++page) CHECK(fixture.read_code(page) != Code::kOk);
    }
}

}  // namespace pif::component::test
