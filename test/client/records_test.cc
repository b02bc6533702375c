// Fixed records: writing, reading, positions, overwriting.
#include <limits>

#include "fixture.h"

using namespace pif;
using namespace pif::test;

namespace {

CreateOptions any_layout(std::uint32_t record_length) {
  CreateOptions options;
  options.format = Format::fixed(record_length);
  options.width = *rc::gen::inRange<std::uint32_t>(1, 6);
  if (*rc::gen::inRange(0, 3) == 0) {
    options.width = 4;
    options.bevy = 2;
  }
  return options;
}

// Writes `bytes` in pieces of random numbers of records.
void write_in_pieces(File& file, const Bytes& bytes, std::uint32_t length) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t records = *rc::gen::inRange<std::size_t>(1, 40);
    must(file.write(part(bytes, at, records * length)));
    at += records * length;
  }
}

void check_reads(File& file, const Bytes& bytes, std::uint32_t length) {
  const std::uint64_t records = (bytes.size() + length - 1) / length;
  Bytes out;
  RecordNumber at = 0;
  while (at < records) {
    const std::uint64_t count = *rc::gen::inRange<std::uint64_t>(1, 60);
    out.assign(count * length, std::byte{0xee});
    const std::uint64_t got = must(file.read(out, count));
    RC_ASSERT(got == std::min(count, records - at));
    const auto expected = part(bytes, at * length, got * length);
    RC_ASSERT(std::equal(expected.begin(), expected.end(), out.begin()));
    at += got;
    RC_ASSERT(file.position() == at);
  }
  out.resize(length);
  RC_ASSERT(must(file.read(out, 1)) == 0u);
  for (int i = 0; i < 5 && records > 0; ++i) {
    const RecordNumber n = *rc::gen::inRange<std::uint64_t>(0, records);
    RC_ASSERT(must(file.read_at(n, out, 1)) == 1u);
    const auto expected = part(bytes, n * length, length);
    RC_ASSERT(std::equal(expected.begin(), expected.end(), out.begin()));
  }
}

void round_trip(Client& client) {
  const std::uint32_t length = *rc::gen::element<std::uint32_t>(1, 7, 100, 984, 4096, 65536);
  const std::size_t size =
      *rc::gen::inRange<std::size_t>(0, length > 4096 ? 30 * length : std::min(200 * length, 60000u));
  const Bytes bytes = pattern(size);
  const CreateOptions options = any_layout(length);
  {
    File file = must(client.create("/f", options));
    write_in_pieces(file, bytes, length);
    RC_ASSERT(must(file.file_length()).bytes == bytes.size());
    must(file.commit());
  }
  File file = must(client.open("/f"));
  RC_ASSERT(must(file.file_length()) == fixed_file_length(length, size));
  check_reads(file, bytes, length);
}

}  // namespace

TEST_CASE("what was written and committed is read back, whatever the lengths, widths, bevies and batches") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(5);
    fs.run(path, [](Client& client) { REQUIRE(holds([&] { round_trip(client); })); });
  }
}

TEST_CASE("data goes through descriptors or by message as asked, and is counted so") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [path](Client& client) {
      const Bytes bytes = pattern(5000);
      CreateOptions options;
      options.format = Format::fixed(100);
      File file = must(client.create("/f", options));
      must(file.write(bytes));
      must(file.commit());
      File again = must(client.open("/f"));
      Bytes out(5000);
      REQUIRE(must(again.read(out, 50)) == 50);
      const bool direct = path == DataPath::kDescriptors;
      for (const TransferCounts& counts : {file.transfers(), again.transfers()}) {
        CHECK(counts.bytes_by_descriptor == (direct ? 5000 : 0));
        CHECK(counts.bytes_by_message == (direct ? 0 : 5000));
      }
    });
  }
}

TEST_CASE("a position past the end is refused, the end itself is allowed") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(10);
      put(client, "/f", options, pattern(95));
      File file = must(client.open("/f"));
      must(file.seek(10));
      CHECK(code_of(file.seek(11)) == Code::kInvalid);
      Bytes out(10);
      CHECK(must(file.read(out, 1)) == 0);
      CHECK(code_of(file.read_at(11, out, 1)) == Code::kEndOfFile);
      must(file.seek(9));
      out.assign(10, std::byte{0xaa});
      CHECK(must(file.read(out, 1)) == 1);
      CHECK(out[5] == std::byte{0xaa});  // the last record is short
      CHECK(code_of(file.read_at(0, std::span(out).first(9), 1)) == Code::kInvalid);
    });
  }
}

TEST_CASE("nothing can follow a short record, and only the last may be short") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.run(path, [](Client& client) {
      CreateOptions options;
      options.format = Format::fixed(10);
      File file = must(client.create("/f", options));
      must(file.write(pattern(25)));
      CHECK(code_of(file.write(pattern(10))) == Code::kInvalid);
      CHECK(code_of(file.write_at(0, pattern(5))) == Code::kInvalid);
      CHECK(code_of(file.write_at(4, pattern(10))) == Code::kEndOfFile);
      must(file.commit());
      CHECK(get(client, "/f") == pattern(25));
    });
  }
}

TEST_CASE("records are written again before the commit, in any order") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        const std::uint32_t length = *rc::gen::element<std::uint32_t>(3, 100, 5000);
        CreateOptions options = any_layout(length);
        options.width = std::min(options.width, 3u);
        options.bevy = 0;
        Bytes model;
        File file = must(client.create("/f", options));
        for (int i = 0; i < 20; ++i) {
          const std::uint64_t records = model.size() / length;
          const auto first = *rc::gen::inRange<std::uint64_t>(0, records + 1);
          const Bytes piece =
              pattern(*rc::gen::inRange<std::size_t>(1, 30) * length, static_cast<std::uint64_t>(i) + 2);
          must(file.write_at(first, piece));
          model.resize(std::max(model.size(), first * length + piece.size()));
          std::copy(piece.begin(), piece.end(), model.begin() + static_cast<std::ptrdiff_t>(first * length));
        }
        must(file.commit());
        RC_ASSERT(get(client, "/f") == model);
      }));
    });
  }
}

TEST_CASE("overwritten records are read by everybody, and neighbours keep their bytes") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(5);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        const std::uint32_t length = *rc::gen::element<std::uint32_t>(1, 100, 984, 5000);
        Bytes model =
            pattern(*rc::gen::inRange<std::size_t>(1, 80) * length - *rc::gen::inRange<std::size_t>(0, length));
        CreateOptions options = any_layout(length);
        options.bevy = 0;  // files with parity: protected_test.cc
        put(client, "/f", options, model);
        File reader = must(client.open("/f"));
        RC_ASSERT(get(reader) == model);
        File writer = must(client.open("/f", Client::Mode::kWrite));
        const std::uint64_t records = (model.size() + length - 1) / length;
        for (int i = 0; i < 8; ++i) {
          const auto first = *rc::gen::inRange<std::uint64_t>(0, records);
          const auto count = *rc::gen::inRange<std::uint64_t>(1, records - first + 1);
          const std::size_t size = std::min<std::size_t>(count * length, model.size() - first * length);
          const Bytes piece = pattern(size, static_cast<std::uint64_t>(i) + 7);
          must(writer.write_at(first, piece));
          std::copy(piece.begin(), piece.end(), model.begin() + static_cast<std::ptrdiff_t>(first * length));
        }
        RC_ASSERT(get(writer) == model);
        RC_ASSERT(get(reader) == model);
      }));
    });
  }
}

TEST_CASE("several reads at once give what each alone gives") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      const Bytes bytes = pattern(100 * 333);
      CreateOptions options;
      options.format = Format::fixed(100);
      put(client, "/f", options, bytes);
      File file = must(client.open("/f"));
      std::vector<Bytes> outs(5, Bytes(20 * 100));
      std::vector<File::ReadRequest> requests;
      for (std::size_t i = 0; i < outs.size(); ++i) requests.push_back({i * 80, 20, outs[i], 0});
      must(file.read_many(requests));
      for (std::size_t i = 0; i < outs.size(); ++i) {
        const auto expected = part(bytes, i * 8000, 2000);
        CHECK(requests[i].done == expected.size() / 100);
        CHECK(std::equal(expected.begin(), expected.end(), outs[i].begin()));
      }
    });
  }
}

TEST_CASE("started operations move the same records, and each is waited for once") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      Bytes bytes = pattern(100 * 200);
      CreateOptions options;
      options.format = Format::fixed(100);
      put(client, "/f", options, bytes);
      File file = must(client.open("/f", Client::Mode::kWrite));
      Bytes first(5000), second(5000);
      const auto a = must(file.start_read(0, first, 50));
      const auto b = must(file.start_read(150, second, 60));
      CHECK(must(file.wait(b)) == 50);
      CHECK(must(file.wait(a)) == 50);
      CHECK(file.is_done(a));
      CHECK(code_of(file.wait(a)) == Code::kInvalid);
      CHECK(code_of(file.start_write(std::numeric_limits<RecordNumber>::max(), Bytes(200))) == Code::kEndOfFile);
      CHECK(std::equal(first.begin(), first.end(), bytes.begin()));
      CHECK(std::equal(second.begin(), second.end(), bytes.begin() + 15000));
      const Bytes fresh = pattern(1000, 9);
      const auto c = must(file.start_write(20, fresh));
      CHECK(must(file.wait(c)) == 10);
      std::copy(fresh.begin(), fresh.end(), bytes.begin() + 2000);
      CHECK(get(file) == bytes);
    });
  }
}
