// The bytes of docs/FORMAT.md, "Component". A change here is a new format version.
#include "component/fixture.h"

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
const std::string kLines = "one\n\nthree\n";
const std::string kEnds{"\4\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0", 24};
const Tail kFixedTail{2, 4102, 0xdb57fdc0cf8fedcd, 0};
const Tail kLinesTail{3, 11, 0x793969ac5e4c9254, 0x19ef9b02d4de0f4f};

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

}  // namespace pif::component::test
