// The byte view over fixed records.
#include "fixture.h"

using namespace pif;
using namespace pif::test;

namespace {

void patch(Bytes& model, std::size_t offset, const Bytes& piece) {
  if (model.size() < offset + piece.size()) model.resize(offset + piece.size());
  std::copy(piece.begin(), piece.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
}

// Reads and writes at random offsets, up to a little past the end, against a plain vector.
void play(File& file, Bytes& model, std::uint32_t length) {
  for (int i = 0; i < 12; ++i) {
    const auto offset = *rc::gen::inRange<std::size_t>(0, model.size() + 2 * length);
    const auto size = *rc::gen::inRange<std::size_t>(1, 4 * length + 2);
    if (*rc::gen::arbitrary<bool>()) {
      const Bytes piece = pattern(size, static_cast<std::uint64_t>(i) + 3);
      RC_ASSERT(must(file.pwrite(piece, offset)) == size);
      patch(model, offset, piece);
    } else {
      Bytes out(size);
      const std::size_t got = must(file.pread(out, offset));
      const auto expected = part(model, offset, size);
      RC_ASSERT(got == expected.size());
      RC_ASSERT(std::equal(expected.begin(), expected.end(), out.begin()));
    }
    RC_ASSERT(must(file.extent()) == fixed_extent(length, model.size()));
  }
}

CreateOptions any_layout(std::uint32_t length) {
  CreateOptions options;
  options.format = Format::fixed(length);
  options.width = *rc::gen::inRange<std::uint32_t>(1, 5);
  if (*rc::gen::inRange(0, 4) == 0) {
    options.width = 4;
    options.bevy = 2;
  }
  return options;
}

}  // namespace

TEST_CASE("bytes of a committed file are read, changed and added at any offset") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        const std::uint32_t length = *rc::gen::element<std::uint32_t>(1, 7, 100, 5000);
        Bytes model = pattern(*rc::gen::inRange<std::size_t>(0, 10 * length));
        put(client, "/f", any_layout(length), model);
        File file = must(client.open("/f", Client::Mode::kWrite));
        play(file, model, length);
        RC_ASSERT(get(client, "/f") == model);
      }));
    });
  }
}

TEST_CASE("bytes of a file being created through descriptors are read and changed at any offset") {
  FileSystem fs(4);
  fs.run(DataPath::kDescriptors, [](Client& client) {
    REQUIRE(holds([&] {
      const std::uint32_t length = *rc::gen::element<std::uint32_t>(1, 7, 100, 5000);
      Bytes model;
      File file = must(client.create("/f", any_layout(length)));
      play(file, model, length);
      must(file.commit());
      RC_ASSERT(get(client, "/f") == model);
    }));
  });
}

TEST_CASE("bytes written one after another make a file, by message too") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        const std::uint32_t length = *rc::gen::element<std::uint32_t>(1, 7, 100, 5000);
        const Bytes model = pattern(*rc::gen::inRange<std::size_t>(0, 30 * length));
        File file = must(client.create("/f", any_layout(length)));
        for (std::size_t at = 0; at < model.size();) {
          const auto piece = part(model, at, *rc::gen::inRange<std::size_t>(1, 3 * length + 2));
          RC_ASSERT(must(file.pwrite(piece, at)) == piece.size());
          at += piece.size();
        }
        must(file.commit());
        RC_ASSERT(get(client, "/f") == model);
      }));
    });
  }
}

TEST_CASE("what lies between the old end and a write past it reads as zeros") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(10);
      put(client, "/f", options, pattern(25));
      File file = must(client.open("/f", Client::Mode::kWrite));
      CHECK(must(file.pwrite(bytes_of("end"), 57)) == 3);
      Bytes expected = pattern(25);
      expected.resize(57);
      const Bytes end = bytes_of("end");
      expected.insert(expected.end(), end.begin(), end.end());
      CHECK(get(file) == expected);
      Bytes out(10);
      CHECK(must(file.pread(out, 60)) == 0);
      CHECK(must(file.pread(out, 1000)) == 0);
    });
  }
}

TEST_CASE("a last record that grew after the file was opened is read to its end") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(5000);
      Bytes model = pattern(1000);
      put(client, "/f", options, model);
      File file = must(client.open("/f", Client::Mode::kWrite));
      Bytes out(5000);
      REQUIRE(must(file.read_at(0, out, 1)) == 1);  // now the component is attached, with 1,000 bytes
      const Bytes more = pattern(5500, 7);
      REQUIRE(must(file.pwrite(more, 1000)) == more.size());
      patch(model, 1000, more);
      REQUIRE(must(file.read_at(0, out, 1)) == 1);
      REQUIRE(std::equal(out.begin(), out.end(), model.begin()));
    });
  }
}

// What somebody else appended to the last record since must not be read into memory that has no room for it.
TEST_CASE("a last record that somebody fills up is read as far as the reader knows of it") {
  const bool attached = GENERATE(false, true);
  const std::size_t records = GENERATE(1, 9);
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [&](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(1000);
      const Bytes model = pattern((records - 1) * 1000 + 10);
      put(client, "/f", options, model);
      File reader = must(client.open("/f"));
      REQUIRE(must(reader.extent()).bytes == model.size());
      Bytes out(model.size() + 1000, std::byte{0x5a});
      if (attached) REQUIRE(must(reader.pread(std::span(out).first(1), 0)) == 1);
      File writer = must(client.open("/f", Client::Mode::kWrite));
      REQUIRE(must(writer.pwrite(pattern(500, 7), model.size())) == 500);
      const auto check = [&](std::size_t from) {
        CHECK(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(model.size() - from),
                         model.begin() + static_cast<std::ptrdiff_t>(from)));
        CHECK(std::all_of(out.begin() + static_cast<std::ptrdiff_t>(model.size() - from), out.end(),
                          [](std::byte byte) { return byte == std::byte{0x5a}; }));
        std::fill(out.begin(), out.end(), std::byte{0x5a});
      };
      REQUIRE(must(reader.read_at(0, std::span(out).first(model.size()), records)) == records);
      check(0);
      REQUIRE(must(reader.pread(std::span(out).first(model.size()), 0)) == model.size());
      check(0);
      REQUIRE(must(reader.read_at(records - 1, std::span(out).first(10), 1)) == 1);
      check(model.size() - 10);
    });
  }
}
