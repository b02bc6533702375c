// The bytes of docs/FORMAT.md, "Component" and "Parity". A change here is a new format version.
#include "component/parity_fixture.h"

namespace pif::component::test {
namespace {

Bytes bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::string stored(Fixture& fixture, const std::string& suffix) {
  auto file = must(fixture.storage->open(fixture.path + suffix, OpenMode::kRead));
  Bytes bytes(must(file->size()));
  CHECK(must(file->read(0, bytes)) == bytes.size());
  return text(bytes);
}

// What a later version must go on reading: the stored bytes, not what this version would write.
void store(File& file, const std::string& bytes) { must(file.write(0, bytes_of(bytes))); }

const std::string kSum = "\xf3\x48\x8b\x84\x2f\xe5\xb4\x16";
const std::string kStampedSum{"\x5c\x85\x96\xff\x16\x4d\x94\xf4\0\0\0\0\0\0\0\0", 16};
const std::string kStamp7Sum{"\x24\x45\xb9\xdd\xcb\x04\x7f\x75\7\0\0\0\0\0\0\0", 16};
const Tail kStampedTail{2, 4102, 0x397755f9b4922062, 0};
const std::string kLines = "one\n\nthree\n";
const std::string kEnds{"\4\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0", 24};
const Tail kFixedTail{2, 4102, 0xdb57fdc0cf8fedcd, 0};
const Tail kLinesTail{3, 11, 0x793969ac5e4c9254, 0x19ef9b02d4de0f4f};

// Two members; their rows of parity row 0, "a" and "b", are rows 0 and 1.
ParityFixture parity_of(const Format& format, const std::string& a, const std::string& b, std::size_t rows) {
  ParityFixture fixture(format, 2);
  fixture.shape.file = FileId(1234);
  fixture.shape.offsets = {0, 1};
  std::vector<Bytes> first(rows), second(rows);
  first[0] = bytes_of(a);
  second[1] = bytes_of(b);
  if (format.is_fixed()) {
    first[1] = bytes_of(b);
    second[0] = bytes_of(a);
  }
  fixture.add(first);
  fixture.add(second);
  fixture.write(0, 1);
  return fixture;
}

std::string words(std::initializer_list<std::uint64_t> all) {
  std::string out;
  for (const std::uint64_t word : all) out.append(reinterpret_cast<const char*>(&word), sizeof word);
  return out;
}

}  // namespace

TEST_CASE("format: a component's files are named by its file and lie in one of 256 folders") {
  CHECK(stem("/root", FileId(1234)) == "/root/data/d2/00000000000004d2");
  CHECK(stem("/root", FileId(0xfedcba9876543210)) == "/root/data/10/fedcba9876543210");
}

TEST_CASE("format: fixed records are stored as the document's example has them") {
  Fixture fixture(Format::fixed(4096), FileId(1234));
  const std::string all = std::string(4096, 'a') + "hello\n";
  fixture.fill(bytes_of(all));
  CHECK(stored(fixture, ".dat") == all);
  CHECK(stored(fixture, ".sum") == kSum);
  CHECK(fixture.tail == kFixedTail);
}

TEST_CASE("format: sums of form 1 are stored with stamps, as the document's example has them") {
  Fixture fixture(Format::fixed(4096), FileId(1234), 1);
  fixture.fill(bytes_of(std::string(4096, 'a') + "hello\n"));
  CHECK(stored(fixture, ".sum") == kStampedSum);
  CHECK(fixture.tail == kStampedTail);

  store(*fixture.files.sums, kStamp7Sum);  // what a later version leaves where it has changed the chunk
  CHECK(fixture.check().empty());
  fixture.shape.form = 2;
  CHECK(code_of(fixture.reader().check()) == Code::kVersion);
}

TEST_CASE("format: variable records are stored as the document's example has them") {
  Fixture fixture(Format::lines(), FileId(1234));
  fixture.fill_variable({4, 1, 6}, bytes_of(kLines));
  CHECK(stored(fixture, ".dat") == kLines);
  CHECK(stored(fixture, ".idx") == kEnds);
  CHECK(stored(fixture, ".sum").empty());
  CHECK(stored(fixture, ".isum").empty());
  CHECK(fixture.tail == kLinesTail);
}

TEST_CASE("format: stored bytes of version 1 are readable") {
  Fixture fixed(Format::fixed(4096), FileId(1234));
  store(*fixed.files.data, std::string(4096, 'a') + "hello\n");
  store(*fixed.files.sums, kSum);
  fixed.tail = kFixedTail;
  CHECK(fixed.check().empty());

  Fixture lines(Format::lines(), FileId(1234));
  store(*lines.files.data, kLines);
  store(*lines.files.index, kEnds);
  lines.tail = kLinesTail;
  CHECK(lines.check().empty());
  CHECK(text(lines.read_all()) == kLines);
}

TEST_CASE("format: parity of fixed records is stored as the document's example has it") {
  ParityFixture fixture = parity_of(Format::fixed(4096), std::string(4096, 'a'), std::string(4096, 'b'), 2);
  CHECK(text(fixture.stored(".par")) == std::string(4096, '\3'));
  CHECK(text(fixture.stored(".psum")) ==
        words({0x3c1e84d2801e498f, 0x94a6152c64f727cc, 0xa5c3360f7ce7568c, 0, 0x21d3f23fbd79bb97, 0}));
}

TEST_CASE("format: parity of variable records is stored as the document's example has it") {
  ParityFixture fixture = parity_of(Format::lines(), "one\n", "three\n", 64);
  CHECK(text(fixture.stored(".par")) ==
        words({0x0000000600000002}) + std::string(31 * 8, '\0') + "\x1b\x06\x17\x6f\x65\x0a");
  CHECK(text(fixture.stored(".psum")) ==
        words({0x7801c7a493115a3c, 0x9affb04e7f24dae9, 262, 0x3d1348c208a183b4, 0, 0x4e2e30aa3a027623, 0}));
}

TEST_CASE("format: a frame is stored as the document's example has it") {
  ParityFixture fixture(Format::lines(), 1);
  const Bytes row = bytes_of("hello\n");
  const NewFrame frame{5, 3, 0, row};
  CHECK(must(write_frames(FileId(1234), fixture.parity, 0, std::span(&frame, 1))) == 56);
  CHECK(text(fixture.stored(".pap")) ==
        words({kFrameMagic, 5, 6, 3, 0, 0xf00c104f832c66a2}) + std::string("hello\n\0\0", 8));
}

}  // namespace pif::component::test
