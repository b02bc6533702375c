// Files whose LFSs keep parity: what cannot be done with them yet, and what can.
#include <functional>

#include "fixture.h"

using namespace pif;
using namespace pif::test;

namespace {

CreateOptions with_bevies(const Format& format) {
  CreateOptions options;
  options.format = format;
  options.width = 4;
  options.bevy = 2;
  return options;
}

template <typename T>
void refused(const T& result) {
  REQUIRE(!result.has_value());
  CHECK(result.error().code == Code::kUnsupported);
  CHECK(result.error().text ==
        "protected: /p has parity, and this version cannot overwrite in place; put it anew or copy it with --bevy 0");
}

Bytes joined(const Bytes& a, const Bytes& b) {
  Bytes both(a.size() + b.size());
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), both.begin()));
  return both;
}

}  // namespace

TEST_CASE("fixed records of a file with parity cannot be overwritten, through whatever interface") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      const Bytes bytes = pattern(95);
      put(client, "/p", with_bevies(Format::fixed(10)), bytes);
      File file = must(client.open("/p", Client::Mode::kWrite));
      refused(file.write_at(0, pattern(10, 2)));
      refused(file.write(pattern(10, 2)));
      refused(file.start_write(3, pattern(20, 2)));
      refused(file.pwrite(pattern(3, 2), 5));
      refused(file.pwrite(pattern(10, 2), 90));  // inside and past the end: nothing is appended
      CHECK(must(file.file_length()).bytes == 95);
      CHECK(get(file) == bytes);
    });
  }
}

TEST_CASE("variable records of a file with parity cannot be overwritten") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      File created = must(client.create("/p", with_bevies(Format::lines())));
      must(created.write_batch(std::vector<std::uint32_t>{4, 4}, bytes_of("one\ntwo\n")));
      must(created.commit());
      File file = must(client.open("/p", Client::Mode::kWrite));
      refused(file.write_batch_at(0, std::vector<std::uint32_t>{4}, bytes_of("ONE\n")));
      refused(file.pwrite(bytes_of("x"), 5));
      must(file.append_batch(std::vector<std::uint32_t>{6}, bytes_of("three\n")));
      CHECK(get(file) == bytes_of("one\ntwo\nthree\n"));
    });
  }
}

TEST_CASE("a file with parity is appended to, and its short last record filled up") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      Bytes bytes = pattern(95);
      put(client, "/p", with_bevies(Format::fixed(10)), bytes);
      File file = must(client.open("/p", Client::Mode::kWrite));
      CHECK(must(file.append_bytes(pattern(8, 2))) == 95);
      bytes = joined(bytes, pattern(8, 2));
      CHECK(must(file.pwrite(pattern(30, 3), 110)) == 30);  // past the end: zeros, then bytes
      bytes.resize(110);
      bytes = joined(bytes, pattern(30, 3));
      CHECK(get(client, "/p") == bytes);
    });
  }
}

TEST_CASE("a file with parity has its length though its first LFS has no rows, and grows from there") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      for (const std::size_t records : {1u, 2u, 3u}) {  // record 0 is on LFS 1
        Bytes bytes = pattern(records * 10);
        put(client, "/p", with_bevies(Format::fixed(10)), bytes);
        auto small = client.open_small_many(std::vector<std::string>{"/p"});
        std::vector<File*> one = {&must_ref(small[0])};
        CHECK(must(client.read_many(one)[0]) == bytes);
        File reader = must(client.open("/p"));
        CHECK(must(reader.file_length()) == FileLength{records, bytes.size()});
        CHECK(get(reader) == bytes);
        File writer = must(client.open("/p", Client::Mode::kWrite));
        for (std::uint64_t i = 0; i < 5; ++i) {
          CHECK(must(writer.append(pattern(10, i + 2))) == records + i);
          bytes = joined(bytes, pattern(10, i + 2));
          CHECK(get(reader) == bytes);
        }
        CHECK(get(client, "/p") == bytes);
      }
    });
  }
}
