#include <rapidcheck.h>

#include "component/fixture.h"

namespace pif::component::test {
namespace {

// Copies `from` into a component with another id on the same disk.
struct Copy {
  Copy(Fixture& from, FileId id, std::uint32_t form = 0) : target(Shape::of(id, from.shape.format, form)) {
    files = must(open_files(*from.storage, stem("/lfs", id), from.shape.format, OpenMode::kCreate));
  }
  Result<Tail> run(Fixture& from, const std::function<bool(std::uint64_t)>& keep_going = nullptr) {
    auto result = copy_component(from.shape, from.tail, from.files, target, files, &cloned, keep_going);
    if (result) tail = *result;
    return result;
  }
  Reader reader() { return Reader(target, tail, files); }

  Shape target;
  Files files;
  Tail tail;
  bool cloned = false;
};

void without_clones(Fixture& fixture) {
  fixture.disk->set_fault(
      [](std::string_view call, std::string_view) { return call == "clone" ? Code::kUnsupported : Code::kOk; });
}

bool same(Fixture& from, Copy& copy) {
  Bytes bytes(copy.tail.bytes);
  must(copy.reader().read_bytes(0, bytes));
  return bytes == from.read_all() && must(copy.reader().check()).empty() && copy.tail.rows == from.tail.rows;
}

}  // namespace

TEST_CASE("copy: a copy, cloned or moved, has the bytes under sums of its own") {
  const bool clones = GENERATE(true, false);
  for (const std::size_t size : {std::size_t{0}, std::size_t{50}, std::size_t{4000}, std::size_t{900'050}}) {
    Fixture from(Format::fixed(100));
    from.fill(pattern(size, 1));
    if (!clones) without_clones(from);
    Copy copy(from, FileId(99));
    must(copy.run(from));
    CHECK(copy.cloned == clones);
    CHECK(same(from, copy));
    CHECK(copy.tail.data_sum == (size % 4000 == 0 ? 0
                                                  : from.tail.data_sum ^ chunk_mix(FileId(12), 0, size / 4000) ^
                                                        chunk_mix(FileId(99), 0, size / 4000)));
    Writer goes_on(copy.target, copy.tail, copy.files);
    must(goes_on.write_rows(10'000, 1, {pattern(100, 2).data(), 100}));
    copy.tail = must(goes_on.finish());
    CHECK(must(copy.reader().check()).empty());
  }
}

TEST_CASE("copy: sums get the form of the target, whatever the source's") {
  const bool clones = GENERATE(true, false);
  const auto form = GENERATE(0u, 1u), other = GENERATE(0u, 1u);
  for (const Format& format : {Format::fixed(100), Format::lines()}) {
    Fixture from(format, FileId(12), form);
    const Bytes bytes = pattern(49'000, 1);
    if (format.is_fixed()) {
      from.fill(bytes);
    } else {
      from.fill_variable(std::vector<std::uint32_t>(7000, 7), bytes);
    }
    if (!clones) without_clones(from);
    Copy copy(from, FileId(99), other);
    must(copy.run(from));
    CHECK(copy.cloned == clones);
    CHECK(same(from, copy));
    CHECK(must(copy.files.sums->size()) == copy.tail.bytes / copy.target.chunk_bytes * copy.target.sum_bytes());
    Copy back(from, FileId(98), form);
    must(copy_component(copy.target, copy.tail, copy.files, back.target, back.files, nullptr, nullptr));
    Bytes sums(must(back.files.sums->size())), made(sums.size());
    must(back.files.sums->read(0, sums));
    Fixture fresh(format, FileId(98), form);
    if (format.is_fixed()) {
      fresh.fill(bytes);
    } else {
      fresh.fill_variable(std::vector<std::uint32_t>(7000, 7), bytes);
    }
    must(fresh.files.sums->read(0, made));
    CHECK(sums == made);
  }
}

TEST_CASE("copy: a target of another format is refused") {
  Fixture from(Format::fixed(100));
  from.fill(pattern(500, 1));
  Copy copy(from, FileId(99));
  copy.target = Shape::of(FileId(99), Format::fixed(50), 0);
  CHECK(code_of(copy.run(from)) == Code::kInvalid);
}

TEST_CASE("copy: variable rows and their index are copied") {
  const bool clones = GENERATE(true, false);
  Fixture from(Format::lines());
  from.fill_variable(std::vector<std::uint32_t>(3000, 7), pattern(21'000, 1));
  if (!clones) without_clones(from);
  Copy copy(from, FileId(99));
  must(copy.run(from));
  CHECK(copy.cloned == clones);
  CHECK(same(from, copy));
  std::vector<std::uint64_t> ends(3);
  must(copy.reader().read_ends(2000, 2, ends));
  CHECK(ends == std::vector<std::uint64_t>{14'000, 14'007, 14'014});
}

TEST_CASE("copy: rows beyond the published length are left behind") {
  const bool clones = GENERATE(true, false);
  Fixture from(Format::fixed(100));
  from.fill(pattern(9'000, 1));
  Writer unpublished = from.writer();
  must(unpublished.write_rows(90, 300, {pattern(30'000, 2).data(), 100}));
  must(unpublished.finish());
  if (!clones) without_clones(from);
  Copy copy(from, FileId(99));
  must(copy.run(from));
  CHECK(must(copy.files.data->size()) == 9'000);
  CHECK(must(copy.files.sums->size()) == 16);
  CHECK(same(from, copy));
}

TEST_CASE("copy: over a target that holds something longer") {
  const bool clones = GENERATE(true, false);
  Fixture from(Format::fixed(100));
  from.fill(pattern(9'000, 1));
  Copy copy(from, FileId(99));
  must(copy.files.data->write(0, pattern(50'000, 3)));
  must(copy.files.sums->write(0, pattern(500, 3)));
  if (!clones) without_clones(from);
  must(copy.run(from));
  CHECK(must(copy.files.data->size()) == 9'000);
  CHECK(same(from, copy));
}

TEST_CASE("copy: corruption stays detectable in the copy") {
  const bool clones = GENERATE(true, false);
  Fixture from(Format::fixed(100));
  from.fill(pattern(9'000, 1));
  from.disk->flip_bit(from.path + ".dat", 5'000, 1);
  if (!clones) without_clones(from);
  Copy copy(from, FileId(99));
  must(copy.run(from));
  CHECK(must(copy.reader().check()).size() == 1);
}

TEST_CASE("copy: a source that ends early is corrupt") {
  const bool clones = GENERATE(true, false);
  Fixture from(Format::fixed(100));
  from.fill(pattern(9'000, 1));
  if (!clones) without_clones(from);
  const bool cut_data = GENERATE(true, false);
  must(cut_data ? from.files.data->resize(8'999) : from.files.sums->resize(15));
  Copy copy(from, FileId(99));
  CHECK(code_of(copy.run(from)) == Code::kCorrupt);
}

TEST_CASE("copy: it asks whether to go on every 8 MiB, and stops when told to") {
  Fixture from(Format::fixed(65536));
  from.fill(Bytes(20u << 20));
  without_clones(from);
  std::vector<std::uint64_t> asked;
  Copy copy(from, FileId(99));
  must(copy.run(from, [&](std::uint64_t done) {
    asked.push_back(done);
    return true;
  }));
  CHECK(asked == std::vector<std::uint64_t>{0, 8u << 20, 16u << 20});
  Copy stopped(from, FileId(98));
  CHECK(code_of(stopped.run(from, [](std::uint64_t done) { return done == 0; })) == Code::kCancelled);
  CHECK(must(stopped.files.data->size()) == 20u << 20);
}

TEST_CASE("copy: between files of the local disk, cloned where it can") {
  const TempFolder folder;
  const auto storage = make_real_storage();
  const Shape source = Shape::of(FileId(1), Format::fixed(100), 0);
  const Shape target = Shape::of(FileId(2), Format::fixed(100), 1);
  must(storage->make_folder(folder.path() + "/data"));
  Files from = must(open_files(*storage, stem(folder.path(), source.file), source.format, OpenMode::kCreate));
  Files to = must(open_files(*storage, stem(folder.path(), target.file), target.format, OpenMode::kCreate));
  const Bytes bytes = pattern(1'000'050, 1);
  Writer writer(source, {}, from);
  must(writer.write_rows(0, 10'001, {bytes.data(), 100}, 50));
  const Tail tail = must(writer.finish());
  const Tail copied = must(copy_component(source, tail, from, target, to, nullptr, nullptr));
  Bytes back(bytes.size());
  must(Reader(target, copied, to).read_bytes(0, back));
  CHECK(back == bytes);
  CHECK(must(Reader(target, copied, to).check()).empty());
}

}  // namespace pif::component::test
