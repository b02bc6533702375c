// Pages of parity that a copy of a file gets from its source.
#include "pif/component/page_copy.h"
#include "component/parity_fixture.h"

namespace pif::component::test {
namespace {

constexpr std::uint64_t kPages = 12;
constexpr std::uint64_t kAll = UINT64_MAX;  // bytes

// A file with pages, and the empty parity of its copy on the same disk.
struct CopyFixture : ParityFixture {
  explicit CopyFixture(const Format& of, std::uint32_t longest = 200) : ParityFixture(of, 3) {
    fill(kPages, [&](std::size_t member, Row row) {
      return of.is_fixed() ? of.record_length : static_cast<std::uint32_t>((member + row * 31) % longest);
    });
    write(0, kPages);
    copied_shape = shape;
    copied_shape.file = FileId(13);
    copied = must(open_parity(*storage, stem("/parity", FileId(13)), OpenMode::kCreate));
  }
  void without_clones() {
    disk->set_fault(
        [](std::string_view call, std::string_view) { return call == "clone" ? Code::kUnsupported : Code::kOk; });
  }
  // All steps; how many pages were copied.
  std::uint64_t copy(std::uint64_t pages, std::uint64_t bytes = kAll) {
    PageCopy copy(shape, parity, copied_shape.file, copied, pages);
    while (must(copy.step(bytes))) ++steps;
    must(copy.finish());
    damage = copy.damage();
    cloned = copy.is_cloned();
    return copy.pages();
  }
  void require_same(std::uint64_t pages) {
    for (std::uint64_t page = 0; page < pages; ++page) {
      INFO("page " << page);
      const Page from = must(read_page(shape, parity, page));
      const Page to = must(read_page(copied_shape, copied, page));
      REQUIRE(from.bytes == to.bytes);
      for (std::size_t i = 0; i < shape.members(); ++i) REQUIRE(from.vector[i].hash == to.vector[i].hash);
    }
    CHECK(code_of(read_page(copied_shape, copied, pages)) == Code::kEndOfFile);
    CHECK(must(copied.pages->size()) == (pages == 0 ? 0 : must(page_bytes(copied_shape, copied, pages - 1)).end));
  }

  ParityShape copied_shape;
  ParityFiles copied;
  std::string damage;
  bool cloned = false;
  unsigned steps = 0;
};

}  // namespace

TEST_CASE("page copy: the copy has the same pages, under sums of its own") {
  const Format format = GENERATE(Format::fixed(100), Format::fixed(4096), Format::lines());
  const bool clones = GENERATE(true, false);
  CopyFixture fixture(format);
  if (!clones) fixture.without_clones();
  CHECK(fixture.copy(kPages - 2) == kPages - 2);
  CHECK((fixture.cloned == clones && fixture.damage.empty() && fixture.steps == 0));
  fixture.require_same(kPages - 2);
  // The others are made behind it out of rows, as they would be without it.
  must(write_pages(fixture.copied_shape, fixture.copied, kPages - 2, 2, fixture.sources()));
  fixture.require_same(kPages);
}

TEST_CASE("page copy: it goes on in steps of any size") {
  const Format format = GENERATE(Format::fixed(4096), Format::fixed(300 << 10), Format::variable());
  const std::uint64_t bytes = GENERATE(1, 5000, 300 << 10);
  CopyFixture fixture(format, 12 << 10);  // variable records: pages around the size of a piece
  fixture.without_clones();
  CHECK(fixture.copy(kPages, bytes) == kPages);
  fixture.require_same(kPages);
  if (bytes == 1) CHECK(fixture.steps >= kPages / 2);
}

TEST_CASE("page copy: it ends in front of a page that is not what was written") {
  const Format format = GENERATE(Format::fixed(4096), Format::fixed(300 << 10), Format::lines());
  const bool clones = GENERATE(true, false);
  const bool in_page = GENERATE(true, false);
  CopyFixture fixture(format);
  if (!clones) fixture.without_clones();
  const std::uint64_t entry = format.is_fixed() ? 64 : 72;
  if (in_page)
    fixture.disk->flip_bit(fixture.path + ".par", must(page_bytes(fixture.shape, fixture.parity, 7)).end - 1, 1);
  else
    fixture.disk->flip_bit(fixture.path + ".psum", 7 * entry + entry - 3, 1);
  CHECK(fixture.copy(kPages) == 7);
  CHECK(fixture.damage ==
        std::string("file 12, parity page 7: ") +
            (in_page ? "the bytes do not match their checksum" : "its vector does not match its checksum"));
  fixture.require_same(7);
}

TEST_CASE("page copy: files that end too early end it") {
  CopyFixture fixture(Format::fixed(4096));
  fixture.without_clones();
  must(fixture.parity.sums->resize(5 * 64 + 63));
  CHECK(fixture.copy(kPages) == 5);
  CHECK(fixture.damage == "file 12, parity page 5: is not there: .psum ends before it");
  must(fixture.parity.pages->resize(3 * 4096 - 1));
  CHECK(fixture.copy(kPages, 1) == 2);
  CHECK(fixture.damage == "file 12, parity page 2: .par ends at byte 12287");
  fixture.parity.pages.reset();
  CHECK(fixture.copy(kPages) == 0);
  CHECK(fixture.damage == "file 12, parity page 0: there is no .par");
}

TEST_CASE("page copy: a copy of no pages is empty, whatever was there") {
  CopyFixture fixture(Format::fixed(4096));
  must(fixture.copied.pages->write(0, pattern(5000, 1)));
  must(fixture.copied.sums->write(0, pattern(5000, 1)));
  CHECK(fixture.copy(0) == 0);
  CHECK((must(fixture.copied.pages->size()) == 0 && must(fixture.copied.sums->size()) == 0));
}

TEST_CASE("page copy: what the disk says is said") {
  CopyFixture fixture(Format::fixed(4096));
  const std::string failing = GENERATE("clone", "read", "write");
  fixture.disk->set_fault([&](std::string_view call, std::string_view) {
    if (failing != "clone" && call == "clone") return Code::kUnsupported;
    return call == failing ? Code::kIo : Code::kOk;
  });
  PageCopy copy(fixture.shape, fixture.parity, FileId(13), fixture.copied, kPages);
  CHECK(code_of(copy.step(kAll)) == Code::kIo);
}

TEST_CASE("page copy: numbers of changes in the source are none of the copy's") {
  CopyFixture fixture(Format::fixed(4096));
  std::vector<std::uint64_t> words(8);
  must(fixture.parity.sums->read(2 * 64, std::as_writable_bytes(std::span(words))));
  words[3] = 77;
  words[1] = chunk_sum(FileId(12), kVectorStream, 2, std::as_bytes(std::span(words).subspan(2)));
  must(fixture.parity.sums->write(2 * 64, std::as_bytes(std::span(words))));
  REQUIRE(must(read_page(fixture.shape, fixture.parity, 2)).vector[0].number == 77);
  CHECK(fixture.copy(kPages) == kPages);
  CHECK(must(read_page(fixture.copied_shape, fixture.copied, 2)).vector[0].number == 0);
  fixture.require_same(kPages);
}

}  // namespace pif::component::test
