// The three files of parity: opened, passed on, removed.
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

}  // namespace pif::component::test
