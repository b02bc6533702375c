// The byte view over fixed records.
#include "fixture.h"
#include "pif/base/limits.h"

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
    RC_ASSERT(must(file.file_length()) == fixed_file_length(length, model.size()));
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
        CreateOptions options = any_layout(length);
        options.bevy = 0;  // files with parity: protected_test.cc
        put(client, "/f", options, model);
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
      REQUIRE(must(reader.file_length()).bytes == model.size());
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

namespace {

constexpr std::byte kUntouched{0x5a};

CreateOptions tens(std::uint32_t width) {
  CreateOptions options;
  options.format = Format::fixed(10);
  options.width = width;
  return options;
}

// A file of 25 bytes as somebody knows it who opened it, and its 60 bytes since somebody else filled it up and went on.
struct Grown {
  Grown(Client& client, std::uint32_t width) {
    put(client, "/f", tens(width), part(now, 0, 25));
    reader = must(client.open("/f", Client::Mode::kWrite));
    Bytes out(25);
    REQUIRE(must(reader.read_at(0, out, 3)) == 3);  // so all components are attached, as they were
    REQUIRE(must(reader.file_length()).bytes == 25);
    File writer = must(client.open("/f", Client::Mode::kWrite));
    must(writer.pwrite(part(now, 25, 5), 25));
    must(writer.append(part(now, 30, 30)));
  }
  const Bytes now = pattern(60, 9);
  File reader;
};

bool is_part(std::span<const std::byte> out, const Bytes& bytes, std::size_t begin) {
  const auto expected = part(bytes, begin, out.size());
  return std::equal(out.begin(), out.end(), expected.begin(), expected.end());
}

}  // namespace

TEST_CASE("a last record that others filled up is read whole, or as it was known, never in part") {
  const std::uint32_t width = GENERATE(1u, 2u, 4u);
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [&](Client& client) {
      for (const std::uint64_t first : {0u, 2u}) {
        Grown file(client, width);
        Bytes out(30 - first * 10, kUntouched);
        const std::uint64_t count = 3 - first;
        REQUIRE(must(file.reader.read_at(first, out, count)) == count);
        CHECK(is_part(out, file.now, first * 10));
        CHECK(file.reader.file_length_seen() == FileLength{6, 60});
      }
      {
        Grown file(client, width);
        Bytes out(60, kUntouched);
        std::vector<File::ReadRequest> requests;
        for (std::uint64_t i = 0; i < 6; ++i) requests.push_back({i, 1, std::span(out).subspan(i * 10, 10), 0});
        must(file.reader.read_many(requests));
        CHECK(out == file.now);
      }
      {
        Grown file(client, width);  // memory for what was known only, beside a request that hears of the new length
        Bytes out(16, kUntouched);
        Bytes other(10);
        File::ReadRequest requests[] = {{2, 1, std::span(out).first(5), 0}, {5, 1, other, 0}};
        must(file.reader.read_many(requests));
        CHECK(is_part(std::span(out).first(5), file.now, 20));
        CHECK(std::all_of(out.begin() + 5, out.end(), [](std::byte b) { return b == kUntouched; }));
        CHECK(is_part(other, file.now, 50));
      }
    });
  }
}

TEST_CASE("a started read keeps to the length it began with") {
  FileSystem fs(2);
  fs.run(DataPath::kMessages, [](Client& client) {
    put(client, "/f", tens(2), pattern(25));
    File reader = must(client.open("/f"));
    Bytes out(35, kUntouched);
    const auto operation = must(reader.start_read(2, std::span(out).first(5), 1));
    File writer = must(client.open("/f", Client::Mode::kWrite));
    must(writer.pwrite(pattern(35, 2), 25));
    REQUIRE(must(reader.file_length()).bytes == 60);
    REQUIRE(must(reader.wait(operation)) == 1);
    CHECK(is_part(std::span(out).first(5), pattern(25), 20));
    CHECK(std::all_of(out.begin() + 5, out.end(), [](std::byte b) { return b == kUntouched; }));
  });
}

TEST_CASE("a last record that others filled up is overwritten whole") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      Grown file(client, 2);
      Bytes now = file.now;
      must(file.reader.write_at(2, pattern(10, 3)));
      patch(now, 20, pattern(10, 3));
      CHECK(get(client, "/f") == now);
      Grown again(client, 2);
      const auto operation = must(again.reader.start_write(1, pattern(20, 4)));
      CHECK(must(again.reader.wait(operation)) == 2);
      Grown third(client, 2);
      const Status refused = third.reader.write_at(2, pattern(5));
      REQUIRE(!refused);
      CHECK(refused.error().code == Code::kInvalid);
      CHECK_THAT(refused.error().text, Catch::Contains("keep their lengths"));
    });
  }
}

TEST_CASE("a write far past the end is refused before anything is written, and the limit is said") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    put(client, "/f", tens(2), pattern(25));
    File file = must(client.open("/f", Client::Mode::kWrite));
    File created = must(client.create("/g", tens(2)));
    for (File* one : {&file, &created}) {
      const auto huge = one->pwrite(bytes_of("x"), std::uint64_t{1} << 63);
      REQUIRE(code_of(huge) == Code::kTooLarge);
      CHECK_THAT(huge.error().text,
                 Catch::Contains("9223372036854775808") && Catch::Contains(std::to_string(kFileBytesMax)));
      CHECK(code_of(one->pwrite(bytes_of("xy"), UINT64_MAX)) == Code::kTooLarge);
    }
    const auto far = file.pwrite(bytes_of("x"), kGapBytesMax + 26);
    REQUIRE(code_of(far) == Code::kTooLarge);
    CHECK_THAT(far.error().text, Catch::Contains("a gap of") && Catch::Contains(std::to_string(kGapBytesMax)));
    CHECK(must(file.file_length()).bytes == 25);
    CHECK(must(created.file_length()).bytes == 0);
  });
}

TEST_CASE("the deadline is kept while a gap is filled, and the error says how far it got") {
  FileSystem fs(2);
  fs.world.spawn_main(
      "client",
      [](sim::Actor& self) {
        sim::ClientSide side(self);
        ConnectOptions options;
        options.timeout = std::chrono::milliseconds(200);
        Client client = must(Client::connect_in(side.world(), sim::Cluster::kServer, options));
        while (must(client.status()).nodes.size() < 2) self.pause(std::chrono::milliseconds(1));
        CreateOptions format;
        format.format = Format::fixed(1u << 20);
        put(client, "/f", format, pattern(25));
        File file = must(client.open("/f", Client::Mode::kWrite));
        const Time begin = self.clock().now();
        const auto written = file.pwrite(bytes_of("x"), 1u << 30);
        CHECK(self.clock().now() - begin <= std::chrono::milliseconds(210));
        REQUIRE(code_of(written) == Code::kTimeout);
        CHECK(must(file.file_length()).bytes < 1u << 30);
      },
      sim::Who{0, {0}});
  fs.world.run();
}
