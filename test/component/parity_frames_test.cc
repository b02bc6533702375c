// Frames: copies of rows that are in no page yet.
#include <cstring>

#include "component/parity_fixture.h"

namespace pif::component::test {
namespace {

struct FrameFixture {
  FrameFixture() { files = must(open_parity(*storage, path, OpenMode::kCreate)); }

  // Adds frames of that many bytes, of records from `record` on.
  void add(RecordNumber record, const std::vector<std::size_t>& sizes, std::uint64_t generation = 1) {
    std::vector<Bytes> rows;
    std::vector<NewFrame> frames;
    for (std::size_t i = 0; i < sizes.size(); ++i) rows.push_back(pattern(sizes[i], record + i + 1000 * generation));
    for (std::size_t i = 0; i < sizes.size(); ++i) frames.push_back({record + i, generation, 0, rows[i]});
    end = must(write_frames(file, files, end, frames));
  }
  FrameIndex scan(std::uint64_t begin = 0) { return must(scan_frames(file, files, begin)); }
  std::vector<RecordNumber> found(std::uint64_t begin = 0) {
    std::vector<RecordNumber> out;
    for (const auto& [record, frame] : scan(begin).frames) out.push_back(record);
    return out;
  }
  Bytes row(const Frame& frame) {
    Bytes out;
    must(read_frame(file, files, frame, out));
    return out;
  }

  FileId file = FileId(12);
  std::shared_ptr<MemoryDisk> disk = MemoryDisk::make();
  std::unique_ptr<Storage> storage = make_memory_storage(disk);
  std::string path = stem("/lfs", file);
  ParityFiles files;
  std::uint64_t end = 0;
};

using Records = std::vector<RecordNumber>;

}  // namespace

TEST_CASE("parity frames: rows of all lengths come back") {
  FrameFixture fixture;
  const std::vector<std::size_t> sizes = {0, 1, 7, 8, 9, 100, 4096, 65536, 3u << 20, 5};
  fixture.add(10, sizes);
  CHECK(fixture.end % 8 == 0);
  CHECK(fixture.end == must(fixture.files.frames->size()));
  const FrameIndex index = fixture.scan();
  CHECK(index.damages.empty());
  CHECK(index.end == fixture.end);
  REQUIRE(index.frames.size() == sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Frame* frame = index.find(10 + i);
    REQUIRE(frame != nullptr);
    CHECK(frame->bytes == sizes[i]);
    CHECK(frame->generation == 1);
    CHECK(fixture.row(*frame) == pattern(sizes[i], 1010 + i));
  }
  CHECK(index.find(9) == nullptr);
  CHECK(index.find(10, 1) == nullptr);
  const NewFrame too_long{1, 1, 0, std::span(static_cast<const std::byte*>(nullptr), kRecordLengthMax + 1)};
  CHECK(code_of(write_frames(fixture.file, fixture.files, fixture.end, std::span(&too_long, 1))) == Code::kTooLarge);
  CHECK(must(write_frames(fixture.file, fixture.files, 16, {})) == 16);
}

TEST_CASE("parity frames: of a record the highest generation counts, then the highest number") {
  FrameFixture fixture;
  fixture.add(5, {30}, 3);
  fixture.add(5, {10}, 1);
  fixture.add(5, {20}, 2);
  fixture.add(5, {10}, 2);
  const Bytes last = pattern(20, 1);
  const NewFrame numbered{5, 2, 9, last};
  fixture.end = must(write_frames(fixture.file, fixture.files, fixture.end, std::span(&numbered, 1)));
  fixture.add(5, {20}, 2);
  const FrameIndex index = fixture.scan();
  CHECK(index.frames.size() == 6);
  CHECK(index.find(5)->generation == 3);
  CHECK(index.find(5, 30)->generation == 3);
  CHECK(index.find(5, 10)->generation == 2);
  CHECK(index.find(5, 20)->number == 9);
  CHECK(fixture.row(*index.find(5, 20)) == last);
}

TEST_CASE("parity frames: of one generation only its own are found") {
  FrameFixture fixture;
  fixture.add(5, {10}, 0);
  fixture.add(5, {20}, 3);
  fixture.add(5, {10}, 2);
  const FrameIndex index = fixture.scan();
  CHECK(index.find(5, 10, 0)->generation == 0);
  CHECK(index.find(5, std::nullopt, 3)->bytes == 20);
  CHECK(index.find(5, 20, 2) == nullptr);
  CHECK(index.find(5, std::nullopt, 1) == nullptr);
  CHECK(index.find(6, std::nullopt, 3) == nullptr);
}

TEST_CASE("parity frames: many rows come back in the order that is asked for, and none of them damaged") {
  FrameFixture fixture;
  CHECK(must(behind_frames(fixture.files)) == 0);
  const std::vector<std::size_t> sizes = {0, 1, 100, 3, 2u << 20, 7, 4096, 5};
  fixture.add(10, sizes);
  fixture.add(30, {9});  // of nobody's interest
  fixture.add(20, sizes);
  CHECK(must(behind_frames(fixture.files)) == fixture.end);
  const FrameIndex index = fixture.scan();
  std::vector<Frame> wanted;
  for (const RecordNumber first : {20u, 10u})
    for (std::size_t i = 0; i < sizes.size(); ++i) wanted.push_back(*index.find(first + i));
  PackedRows rows;
  must(read_frames(fixture.file, fixture.files, wanted, rows));
  REQUIRE(rows.lengths.size() == wanted.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    REQUIRE(rows.lengths[i] == sizes[i % sizes.size()]);
    const Bytes row(rows.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    rows.bytes.begin() + static_cast<std::ptrdiff_t>(at + rows.lengths[i]));
    CHECK(row == fixture.row(wanted[i]));
    at += rows.lengths[i];
  }
  CHECK(at == rows.bytes.size());
  must(read_frames(fixture.file, fixture.files, {}, rows));
  CHECK(rows.lengths.empty());
  fixture.disk->flip_bit(fixture.path + ".pap", wanted[2].offset + 50, 3);
  CHECK(code_of(read_frames(fixture.file, fixture.files, wanted, rows)) == Code::kCorrupt);
}

TEST_CASE("parity frames: a flipped bit anywhere loses that frame only, and is told") {
  FrameFixture fixture;
  fixture.add(1, {20, 37, 20});
  const std::uint64_t second = 48 + 24, row_end = second + 48 + 37, third = second + 48 + 40;
  const FrameIndex before = fixture.scan();
  for (std::uint64_t byte = second; byte < third; ++byte) {
    const auto flip = [&] { fixture.disk->flip_bit(fixture.path + ".pap", byte, static_cast<unsigned>(byte % 8)); };
    flip();
    const FrameIndex index = fixture.scan();
    CHECK(index.damages.size() == 1);
    CHECK(index.end == fixture.end);
    const bool in_padding = byte >= row_end;
    CHECK(fixture.found() == (in_padding ? Records{1, 2, 3} : Records{1, 3}));
    Bytes out;
    const Code code = code_of(read_frame(fixture.file, fixture.files, *before.find(2), out));
    CHECK(code == (in_padding ? Code::kOk : Code::kCorrupt));
    flip();
  }
  CHECK(fixture.scan().damages.empty());
  CHECK(must(scan_frames(FileId(13), fixture.files, 0)).frames.empty());
}

TEST_CASE("parity frames: what lies behind the last frame is a torn end, and is written over") {
  FrameFixture fixture;
  fixture.add(1, {100, 100});
  const std::uint64_t whole = fixture.end;
  fixture.add(3, {5000});
  for (const std::uint64_t size : {whole + 5048 - 1, whole + 1000, whole + 48, whole + 47, whole + 1}) {
    must(fixture.files.frames->resize(size));
    const FrameIndex index = fixture.scan();
    CHECK(fixture.found() == Records{1, 2});
    CHECK(index.damages.empty());
    CHECK(index.end == whole);
  }
  // The same, in the middle: its bytes are between frames now.
  must(fixture.files.frames->write(whole, pattern(500, 1)));
  CHECK(fixture.scan().end == whole);
  fixture.end = whole + 504;
  fixture.add(4, {10});
  CHECK(fixture.found() == Records{1, 2, 4});
  CHECK(fixture.scan().damages == std::vector<std::string>{"file 12: bytes 304 to 807 of .pap are no copy of a row"});
  fixture.end = whole;
  fixture.add(5, {1000});
  CHECK(fixture.found() == Records{1, 2, 5});
  CHECK(fixture.scan().damages.empty());
}

TEST_CASE("parity frames: a row that is whole counts even if the zeros behind it are cut off") {
  FrameFixture fixture;
  fixture.add(1, {3});
  must(fixture.files.frames->resize(51));
  CHECK(fixture.found() == Records{1});
  CHECK(fixture.scan().end == 56);
}

TEST_CASE("parity frames: holes are passed over, and are no damage") {
  FrameFixture fixture;
  fixture.add(1, {100, 3000});
  fixture.end += (5u << 20) + 8;
  fixture.add(3, {100});
  const std::uint64_t last = fixture.end;
  must(fixture.files.frames->resize(fixture.end + (3u << 20)));
  CHECK(fixture.found() == Records{1, 2, 3});
  CHECK(fixture.scan().damages.empty());
  CHECK(fixture.scan().end == last);
  must(fixture.files.frames->punch(0, 152));
  CHECK(fixture.found() == Records{2, 3});
  CHECK(fixture.scan().damages.empty());
  CHECK(fixture.found(152) == Records{2, 3});
  CHECK(fixture.found(145) == Records{2, 3});
  CHECK(fixture.found(153) == Records{3});
  CHECK(fixture.scan(last).end == last);
  CHECK(fixture.scan(last + (100u << 20)).end == last + (100u << 20));
}

TEST_CASE("parity frames: gigabytes of hole on a real disk") {
  const TempFolder folder;
  const auto storage = make_real_storage();
  auto files = must(open_parity(*storage, folder.path() + "/x", OpenMode::kCreate));
  const Bytes row = pattern(100, 1);
  const NewFrame frame{7, 0, 0, row};
  constexpr std::uint64_t kFar = std::uint64_t{1} << 30;
  must(write_frames(FileId(12), files, kFar, std::span(&frame, 1)));
  CHECK(must(scan_frames(FileId(12), files, 0)).find(7)->offset == kFar + 48);
}

TEST_CASE("parity frames: headers that lie are passed over") {
  FrameFixture fixture;
  fixture.add(1, {100});
  Bytes bytes(8 * 48);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t lengths[] = {
        0, 1, 100, 384, kRecordLengthMax, kRecordLengthMax + 1, std::uint64_t{1} << 63, UINT64_MAX};
    std::memcpy(bytes.data() + 48 * i, &kFrameMagic, 8);
    std::memcpy(bytes.data() + 48 * i + 16, &lengths[i], 8);
  }
  must(fixture.files.frames->write(fixture.end, bytes));
  fixture.end += bytes.size();
  fixture.add(2, {100});
  CHECK(fixture.found() == Records{1, 2});
  CHECK(fixture.scan().damages.size() == 1);
  must(fixture.files.frames->write(fixture.end, pattern(100000, 5)));
  CHECK(fixture.found() == Records{1, 2});
}

TEST_CASE("parity frames: at most 100 lines") {
  FrameFixture fixture;
  for (RecordNumber record = 0; record < 150; ++record) {
    must(fixture.files.frames->write(fixture.end, pattern(8, record)));
    fixture.end += 8;
    fixture.add(record, {8});
  }
  CHECK(fixture.scan().damages.size() == 100);
  CHECK(fixture.scan().frames.size() == 150);
}

TEST_CASE("parity frames: without the file there are none") {
  ParityFiles none;
  CHECK(must(scan_frames(FileId(1), none, 24)).end == 24);
  CHECK(code_of(scan_frames(FileId(1), none, UINT64_MAX)) == Code::kCorrupt);
  Bytes out;
  CHECK(code_of(read_frame(FileId(1), none, {1, 0, 0, 48, 5}, out)) == Code::kCorrupt);
}

}  // namespace pif::component::test
