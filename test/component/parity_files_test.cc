// The three files of parity: opened, passed on, copied, removed.
#include "component/parity_fixture.h"

namespace pif::component::test {
namespace {

ParityFixture with_pages(const Format& format) {
  ParityFixture fixture(format, 3);
  fixture.fill(4, [&](std::size_t member, Row row) {
    return format.is_fixed() ? format.record_length : (member + row * 31) % 200;
  });
  fixture.write(0, 4);
  return fixture;
}

}  // namespace

TEST_CASE("parity files: what is not there is null, and is made when asked") {
  const auto disk = MemoryDisk::make();
  const auto storage = make_memory_storage(disk);
  const std::string path = stem("/lfs", FileId(7));
  const auto none = must(open_parity(*storage, path, OpenMode::kRead));
  CHECK((none.pages == nullptr && none.sums == nullptr && none.frames == nullptr));
  auto made = must(open_parity(*storage, path, OpenMode::kCreate));
  CHECK((made.pages != nullptr && made.sums != nullptr && made.frames != nullptr));
  CHECK(disk->files("/lfs/data/07") == std::vector<std::string>{path + ".pap", path + ".par", path + ".psum"});
  must(sync(made));
  must(check_written(made));
  must(storage->remove(path + ".pap"));
  CHECK(must(open_parity(*storage, path, OpenMode::kRead)).frames == nullptr);
  CHECK(must(open_parity(*storage, path, OpenMode::kWrite)).pages != nullptr);
  must(remove_files(*storage, path));
  CHECK(disk->files("/lfs/data/07").empty());
  disk->set_fault([](std::string_view, std::string_view) { return Code::kIo; });
  CHECK(code_of(open_parity(*storage, path, OpenMode::kRead)) == Code::kIo);
}

TEST_CASE("parity files: they travel, as many as there are") {
  ParityFixture fixture = with_pages(Format::fixed(4096));
  const auto travel = [&] { return must(adopt_parity(*fixture.storage, must(share(fixture.parity)))); };
  auto all = travel();
  CHECK(all.frames != nullptr);
  CHECK(code_of(read_page(fixture.shape, all, 3)) == Code::kOk);
  fixture.parity.frames.reset();
  auto pages = travel();
  CHECK(pages.frames == nullptr);
  CHECK(code_of(read_page(fixture.shape, pages, 3)) == Code::kOk);
  fixture.parity.frames = std::move(all.frames);
  fixture.parity.pages.reset();
  const auto frames = travel();
  CHECK((frames.pages == nullptr && frames.sums == nullptr && frames.frames != nullptr));
  fixture.parity.frames.reset();
  CHECK(must(share(fixture.parity)).empty());
  CHECK(travel().frames == nullptr);
  CHECK(code_of(adopt_parity(*fixture.storage, std::vector<Handle>(4))) == Code::kInvalid);
}

TEST_CASE("parity files: a copy holds the same for another file") {
  const Format format = GENERATE(Format::fixed(100), Format::fixed(4096), Format::lines());
  const bool clones = GENERATE(true, false);
  ParityFixture fixture = with_pages(format);
  if (!clones)
    fixture.disk->set_fault(
        [](std::string_view call, std::string_view) { return call == "clone" ? Code::kUnsupported : Code::kOk; });
  const Bytes row = pattern(77, 1);
  const NewFrame frame{99, 3, 5, row};
  const std::uint64_t end = must(write_frames(FileId(12), fixture.parity, 1000, std::span(&frame, 1)));
  const NewFrame later{100, 3, 5, row};
  must(write_frames(FileId(12), fixture.parity, end + 800, std::span(&later, 1)));

  ParityFixture copy(format, 3);
  copy.shape.file = FileId(13);
  copy.parity = must(open_parity(*fixture.storage, stem("/parity", FileId(13)), OpenMode::kCreate));
  must(copy.parity.frames->write(0, pattern(5000, 1)));
  must(copy_parity(fixture.shape, fixture.parity, FileId(13), copy.parity, 3, 1000));
  for (std::uint64_t page = 0; page < 3; ++page) {
    const Page from = must(read_page(fixture.shape, fixture.parity, page));
    const Page to = must(read_page(copy.shape, copy.parity, page));
    CHECK(from.bytes == to.bytes);
    for (std::size_t i = 0; i < 3; ++i) CHECK(from.vector[i].hash == to.vector[i].hash);
  }
  CHECK(copy.read_code(3) == Code::kEndOfFile);
  CHECK(must(copy.parity.pages->size()) == must(page_bytes(copy.shape, copy.parity, 2)).end);
  const FrameIndex index = must(scan_frames(FileId(13), copy.parity, 1000));
  REQUIRE(index.frames.size() == 2);
  CHECK(index.damages.empty());
  CHECK(index.find(99)->offset == 1048);
  Bytes out;
  must(read_frame(FileId(13), copy.parity, *index.find(100), out));
  CHECK(out == row);

  CHECK(code_of(copy_parity(fixture.shape, fixture.parity, FileId(13), copy.parity, 5, 0)) == Code::kEndOfFile);
  must(fixture.parity.pages->resize(1));
  CHECK(code_of(copy_parity(fixture.shape, fixture.parity, FileId(13), copy.parity, 3, 0)) == Code::kCorrupt);
  must(copy_parity(fixture.shape, fixture.parity, FileId(13), copy.parity, 0, 1000));
  CHECK(must(copy.parity.sums->size()) == 0);
}

TEST_CASE("parity files: a damaged page is damaged in the copy, too") {
  ParityFixture fixture = with_pages(Format::fixed(4096));
  fixture.disk->flip_bit(fixture.path + ".par", 4100, 1);
  fixture.disk->flip_bit(fixture.path + ".psum", 2 * 64 + 20, 1);
  ParityFixture copy(Format::fixed(4096), 3);
  copy.shape.file = FileId(13);
  copy.parity = must(open_parity(*fixture.storage, stem("/parity", FileId(13)), OpenMode::kCreate));
  must(copy_parity(fixture.shape, fixture.parity, FileId(13), copy.parity, 4, 0));
  CHECK(copy.read_code(0) == Code::kOk);
  CHECK(copy.read_code(1) == Code::kCorrupt);
  CHECK(copy.read_code(2) == Code::kCorrupt);
  CHECK(copy.read_code(3) == Code::kOk);
}

}  // namespace pif::component::test
