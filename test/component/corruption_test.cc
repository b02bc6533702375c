// Bytes that fail a check are never returned.
#include <algorithm>

#include "component/fixture.h"

namespace pif::component::test {
namespace {

const std::vector<std::uint32_t> kLengths = {0, 5, 3000, 0, 2500, 1, 700, 40};

Bytes variable_bytes() {
  std::size_t total = 0;
  for (const auto length : kLengths) total += length;
  return pattern(total, 9);
}

// Every row by itself; whether all could be read and were right.
bool all_readable(Fixture& fixture, const Bytes& expected) {
  const Reader reader = fixture.reader();
  Bytes all(expected.size());
  if (!fixture.shape.format.is_fixed()) {
    std::vector<std::uint64_t> ends(fixture.tail.rows + 1);
    if (!reader.read_ends(0, fixture.tail.rows, ends)) return false;
    for (std::size_t i = 0; i < fixture.tail.rows; ++i)
      REQUIRE(ends[i + 1] - ends[i] == kLengths[i]);  // wrong ends must not come back as right ones
  }
  const Status status = reader.read_bytes(0, all);
  if (status) REQUIRE(all == expected);
  if (!status) CHECK(status.error().code == Code::kCorrupt);
  return status.has_value();
}

void flip_everything(Fixture& fixture, const Bytes& expected, const std::string& suffix) {
  const std::uint64_t size = must(must(fixture.storage->open(fixture.path + suffix, OpenMode::kRead))->size());
  CAPTURE(suffix, size);
  REQUIRE(size > 0);
  std::uint64_t unnoticed = 0;
  for (std::uint64_t byte = 0; byte < size; ++byte) {
    for (unsigned bit = 0; bit < 8; bit += (byte % 16 == 0 ? 1 : 7)) {  // all bits of some bytes, two of each
      fixture.disk->flip_bit(fixture.path + suffix, byte, bit);
      if (all_readable(fixture, expected)) ++unnoticed;
      if (bit == 0 && byte % 64 == 0 && fixture.check().size() != 1) ++unnoticed;
      fixture.disk->flip_bit(fixture.path + suffix, byte, bit);
    }
  }
  CHECK(unnoticed == 0);
  CHECK(fixture.check().empty());
}

void swap_ranges(File& file, std::uint64_t a, std::uint64_t b, std::size_t size) {
  Bytes first(size);
  Bytes second(size);
  must(file.read(a, first));
  must(file.read(b, second));
  must(file.write(a, second));
  must(file.write(b, first));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("corruption: every flipped bit of a fixed component is found, of a stamp, too") {
  Fixture fixture(Format::fixed(100), FileId(12), GENERATE(0u, 1u));
  const Bytes bytes = pattern(8'250, 1);  // two chunks and a part, with a short last row
  fixture.fill(bytes);
  for (const char* suffix : {".dat", ".sum"}) flip_everything(fixture, bytes, suffix);
}

TEST_CASE("corruption: every flipped bit of a variable component is found") {
  Fixture fixture(Format::variable(), FileId(12), GENERATE(0u, 1u));
  const Bytes bytes = variable_bytes();
  fixture.fill_variable(kLengths, bytes);
  for (const char* suffix : {".dat", ".sum", ".idx"}) flip_everything(fixture, bytes, suffix);
}

TEST_CASE("corruption: every flipped bit of an index's sums is found") {
  Fixture fixture(Format::variable());
  const std::vector<std::uint32_t> lengths(1100, 0);
  fixture.fill_variable(lengths, {});
  std::vector<std::uint64_t> ends(lengths.size() + 1);
  const std::uint64_t size = must(fixture.files.index_sums->size());
  REQUIRE(size == 16);
  for (std::uint64_t bit = 0; bit < size * 8; ++bit) {
    fixture.disk->flip_bit(fixture.path + ".isum", bit / 8, bit % 8);
    CHECK(code_of(fixture.reader().read_ends(0, lengths.size(), ends)) == Code::kCorrupt);
    CHECK(fixture.check().size() == 1);
    fixture.disk->flip_bit(fixture.path + ".isum", bit / 8, bit % 8);
  }
  CHECK(fixture.check().empty());
}

TEST_CASE("corruption: bytes that are checked where they are mapped are wrong if any of their chunks is") {
  Fixture fixture(Format::fixed(100));
  fixture.fill(pattern(200'050, 4));  // chunks of 4,000 bytes, a part, and a short last row
  Bytes mapped = fixture.read_all();
  const Reader reader = fixture.reader();
  must(reader.check_bytes(0, 200'050, mapped));
  must(reader.check_bytes(199'999, 51, mapped));
  must(reader.check_bytes(7, 0, mapped));
  mapped[70'000] ^= std::byte{1};  // in the chunk of bytes 68,000 to 71,999
  must(reader.check_bytes(0, 68'000, mapped));
  must(reader.check_bytes(72'000, 128'050, mapped));
  CHECK(code_of(reader.check_bytes(0, 68'001, mapped)) == Code::kCorrupt);
  CHECK(code_of(reader.check_bytes(71'999, 1, mapped)) == Code::kCorrupt);
  CHECK(code_of(reader.check_bytes(200'000, 51, mapped)) == Code::kEndOfFile);
  mapped.resize(200'049);
  CHECK(code_of(reader.check_bytes(0, 10, mapped)) == Code::kCorrupt);
}

TEST_CASE("corruption: a reader that does not wait is busy where it would have to, and checks what it gets") {
  Fixture fixture(Format::fixed(100));
  const Bytes bytes = pattern(10'050, 4);
  fixture.fill(bytes);
  const Reader reader = fixture.reader().cached();
  Bytes into(bytes.size());
  must(reader.read_bytes(0, into));
  CHECK(into == bytes);
  const auto make_cold = [&](const std::string& name) {
    fixture.disk->set_fault([name](std::string_view call, std::string_view path) {
      return call == "read_cached" && path.ends_with(name) ? Code::kIo : Code::kOk;
    });
  };
  make_cold(".dat");
  CHECK(code_of(reader.read_bytes(0, into)) == Code::kBusy);
  make_cold(".sum");
  CHECK(code_of(reader.read_bytes(0, into)) == Code::kBusy);
  must(fixture.reader().read_bytes(0, into));
  make_cold("nothing");
  fixture.disk->flip_bit(fixture.path + ".dat", 4'500, 0);
  CHECK(code_of(reader.read_bytes(0, into)) == Code::kCorrupt);
}

TEST_CASE("corruption: a wrong tail sum is found") {
  Fixture fixture(Format::fixed(100));
  fixture.fill(pattern(8'250, 1));
  fixture.tail.data_sum ^= 1;
  CHECK(fixture.check().size() == 1);
  Bytes into(50);
  CHECK(code_of(fixture.reader().read_rows(82, 1, {into.data(), 100})) == Code::kCorrupt);
}

TEST_CASE("corruption: the error names the file, the chunk and its rows, and other rows stay readable") {
  Fixture fixture(Format::fixed(100), FileId(4711));
  fixture.fill(pattern(10'000, 1));
  fixture.disk->flip_bit(fixture.path + ".dat", 4'500, 0);
  Bytes into(10'000);
  const Status status = fixture.reader().read_rows(0, 100, {into.data(), 100});
  REQUIRE_FALSE(status.has_value());
  CHECK(contains(status.error().text, "file 4711, chunk 1 (rows 40 to 79)"));
  REQUIRE(fixture.check().size() == 1);
  CHECK(contains(fixture.check()[0], "file 4711, chunk 1 (rows 40 to 79)"));
  must(fixture.reader().read_rows(0, 40, {into.data(), 100}));
  must(fixture.reader().read_rows(80, 20, {into.data(), 100}));
}

TEST_CASE("corruption: right bytes in the wrong place, with their sums, are found") {
  for (const std::uint32_t length : {100u, 5000u}) {
    Fixture fixture(Format::fixed(length));
    const std::uint32_t chunk = fixture.shape.chunk_bytes;
    fixture.fill(pattern(3 * chunk, 1));
    swap_ranges(*fixture.files.data, 0, chunk, chunk);
    swap_ranges(*fixture.files.sums, 0, 8, 8);
    CHECK(fixture.check().size() == 2);
    Bytes into(length);
    CHECK(code_of(fixture.reader().read_rows(0, 1, {into.data(), length})) == Code::kCorrupt);
  }
}

TEST_CASE("corruption: a chunk of another file, with its sum, is found") {
  Fixture fixture(Format::fixed(100), FileId(1));
  Fixture other(Format::fixed(100), FileId(2));
  fixture.fill(pattern(8'000, 1));
  other.fill(pattern(8'000, 2));
  std::swap(fixture.files, other.files);
  CHECK(fixture.check().size() == 2);
  Bytes into(100);
  CHECK(code_of(fixture.reader().read_rows(0, 1, {into.data(), 100})) == Code::kCorrupt);
}

TEST_CASE("corruption: data and index of one file cannot stand for each other") {
  Fixture fixture(Format::variable());
  fixture.fill_variable(std::vector<std::uint32_t>(512, 8), pattern(4096, 1));
  std::swap(fixture.files.data, fixture.files.index);
  std::swap(fixture.files.sums, fixture.files.index_sums);
  CHECK(fixture.check().size() == 2);
}

TEST_CASE("corruption: data or sums that are cut off are corrupt, not zeros and not the end of the file") {
  for (const char* suffix : {".dat", ".sum"}) {
    Fixture fixture(Format::fixed(100));
    fixture.fill(pattern(12'000, 1));
    auto file = must(fixture.storage->open(fixture.path + suffix, OpenMode::kWrite));
    must(file->resize(must(file->size()) - 1));
    Bytes into(12'000);
    CHECK(code_of(fixture.reader().read_rows(0, 120, {into.data(), 100})) == Code::kCorrupt);
    Bytes wide(120 * 128);
    CHECK(code_of(fixture.reader().read_rows(0, 120, {wide.data(), 128})) == Code::kCorrupt);
    CHECK(fixture.check().size() == 1);
    must(fixture.reader().read_rows(0, 40, {into.data(), 100}));
  }
}

TEST_CASE("corruption: a writer that reads a flipped chunk back does not give it a fresh sum") {
  Fixture fixture(Format::fixed(100));
  fixture.fill(pattern(8'250, 1));
  const std::uint64_t byte = GENERATE(100, 8'100);  // in a full chunk, in the tail
  fixture.disk->flip_bit(fixture.path + ".dat", byte, 3);
  Writer writer = fixture.writer();
  CHECK(code_of(writer.write_rows(byte / 100 + 1, 1, {pattern(100, 2).data(), 100})) == Code::kCorrupt);
}

TEST_CASE("corruption: a check lists at most 100 lines") {
  Fixture fixture(Format::fixed(4096));
  fixture.fill(pattern(150 * 4096, 1));
  must(fixture.files.sums->resize(0));
  CHECK(fixture.check().size() == 100);
}

TEST_CASE("corruption: a component whose lengths cannot be is refused") {
  Fixture fixture(Format::fixed(100));
  fixture.fill(pattern(8'250, 1));
  fixture.tail.rows = 90;
  Bytes into(100);
  CHECK(code_of(fixture.reader().read_rows(89, 1, {into.data(), 100})) == Code::kCorrupt);
  CHECK_FALSE(fixture.check().empty());
  fixture.shape.chunk_bytes = 150;
  CHECK(code_of(fixture.reader().read_rows(0, 1, {into.data(), 100})) == Code::kInvalid);
}

TEST_CASE("corruption: a length near 2^64 is found, by a check too") {
  for (const auto& format : {Format::fixed(1), Format::variable()}) {
    Fixture fixture(format);
    for (const Tail& tail :
         {Tail{UINT64_MAX, UINT64_MAX, 0, 0}, Tail{std::uint64_t{1} << 61, 0, 0, 0}, Tail{0, UINT64_MAX, 0, 0}}) {
      fixture.tail = tail;
      std::byte one{};
      CHECK(code_of(fixture.reader().check()) == Code::kCorrupt);
      CHECK(code_of(fixture.reader().read_bytes(0, {&one, 1})) == Code::kCorrupt);
    }
  }
}

namespace {

// Three variable records, whose index says these ends, with sums to match.
Fixture with_ends(const std::vector<std::uint64_t>& ends) {
  Fixture fixture(Format::variable());
  fixture.fill_variable({10, 20, 30}, pattern(60, 1));
  const auto bytes = std::as_bytes(std::span(ends));
  must(fixture.files.index->write(0, bytes));
  fixture.tail.index_sum = chunk_sum(fixture.shape.file, kIndexStream, 0, bytes);
  return fixture;
}

}  // namespace

TEST_CASE("corruption: an index written wrong, though its sums hold, is found") {
  Fixture fixture = with_ends({10, 5, 60});
  std::vector<std::uint64_t> read(4);
  CHECK(code_of(fixture.reader().read_ends(0, 3, read)) == Code::kCorrupt);
  CHECK(fixture.check().size() == 1);
}

TEST_CASE("corruption: the end of the row before is checked even when no row is asked for") {
  Fixture fixture = with_ends({10, 61, 60});
  std::uint64_t end = 0;
  CHECK(code_of(fixture.reader().read_ends(2, 0, {&end, 1})) == Code::kCorrupt);
  must(fixture.reader().read_ends(3, 0, {&end, 1}));
  CHECK(end == 60);
}

}  // namespace pif::component::test
