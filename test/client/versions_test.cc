// Files whose name is there at once, those that take another one's place, and their lengths while they are written.
#include "fixture.h"
#include "pif/pattern/builders.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

CreateOptions fixed(std::uint32_t length) {
  CreateOptions options;
  options.format = Format::fixed(length);
  return options;
}

void write(File& file, const Bytes& bytes, std::uint64_t offset) {
  CHECK(must(file.pwrite(bytes, offset)) == bytes.size());
}

}  // namespace

TEST_CASE("a file that is created now has its name at once, and its bytes with the commit") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      CreateOptions options = fixed(100);
      options.exclusive = true;
      options.mode = 0640;
      auto made = must(client.create_now("/f", options));
      CHECK(made.entry.name == "f");
      CHECK(made.entry.mode == 0640);
      CHECK(made.entry.inode == made.entry.id);
      CHECK(code_of(client.create_now("/f", options)) == Code::kExists);
      CHECK(get(client, "/f").empty());
      write(made.file, pattern(1234), 0);
      CHECK(get(client, "/f").empty());
      must(client.rename("/f", "/g"));
      must(made.file.commit());
      CHECK(get(client, "/g") == pattern(1234));
      const Entry now = must(client.stat("/g"));
      CHECK(now.inode == made.entry.inode);
      CHECK(now.id != now.inode);
      CHECK(code_of(client.stat("/f")) == Code::kNotFound);
    });
  }
}

TEST_CASE("a new version takes the place of a file, and who has the old one open keeps it") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      CreateOptions options = fixed(64);
      options.attributes = {{"header", "h"}};
      put(client, "/f", options, pattern(640, 1));
      File old = must(client.open("/f"));
      CHECK(old.entry().file_length.bytes == 640);
      File next = must(client.create_instead_of(old.id()));
      CHECK(next.format() == old.format());
      CHECK(next.attributes() == old.attributes());
      write(next, pattern(100, 2), 0);
      must(next.commit_if(FileLength{10, 640}));
      CHECK(get(client, "/f") == pattern(100, 2));
      CHECK(get(old) == pattern(640, 1));
      CHECK(must(client.stat("/f")).inode == old.id());
      File by_id = must(client.open_by_id(must(client.stat("/f")).id, Client::Mode::kWrite));
      CHECK(by_id.entry().inode == old.id());
      write(by_id, pattern(10, 3), 100);
      CHECK(get(client, "/f").size() == 110);
      CHECK(code_of(client.create_instead_of(old.id())) == Code::kStaleFile);

      File third = must(client.create_instead_of(by_id.id()));
      must(by_id.close());
      CHECK(code_of(third.commit_if(FileLength{1, 1})) == Code::kRetry);
      must(third.commit());
      CHECK(get(client, "/f").empty());
    });
  }
}

TEST_CASE("what a resize has cut off is zero where the file grows again") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      Bytes expected = pattern(5000);
      File file = must(client.create("/f", fixed(100)));
      write(file, expected, 0);
      const auto resize = [&](std::uint64_t bytes) {
        must(file.resize(bytes));
        expected.resize(bytes);
        CHECK(must(file.file_length()).bytes == bytes);
      };
      resize(1234);
      resize(1234);
      resize(2000);
      CHECK(get(file) == expected);
      resize(150);
      expected.resize(3000);
      const Bytes more = pattern(500, 2);
      write(file, more, 3000);
      expected.insert(expected.end(), more.begin(), more.end());
      CHECK(get(file) == expected);
      resize(20);
      write(file, more, 20);  // goes on where it ends
      expected.insert(expected.end(), more.begin(), more.end());
      resize(9000);
      CHECK(get(file) == expected);
      resize(2750);
      must(file.commit());
      CHECK(get(client, "/f") == expected);
    });
  }
}

TEST_CASE("a file that was cut to nothing is empty, and one that only grew is zeros") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    File file = must(client.create("/f", fixed(100)));
    write(file, pattern(5000), 0);
    must(file.resize(0));
    must(file.commit());
    CHECK(get(client, "/f").empty());
    File zeros = must(client.create("/z"));
    must(zeros.resize(1'000'000));
    must(zeros.commit());
    CHECK(get(client, "/z") == Bytes(1'000'000));
    CHECK(code_of(file.resize(1)) == Code::kInvalid);
    File committed = must(client.open("/z", Client::Mode::kWrite));
    CHECK(code_of(committed.resize(1)) == Code::kInvalid);
    File shared = must(client.create("/s", fixed(100)));
    const std::string token = must(shared.share());
    write(shared, pattern(500), 0);
    must(shared.resize(120));
    must(shared.resize(300));
    write(shared, pattern(20, 3), 400);
    Bytes expected = pattern(500);
    expected.resize(120);
    expected.resize(400);
    const Bytes more = pattern(20, 3);
    expected.insert(expected.end(), more.begin(), more.end());
    must(shared.commit());
    CHECK(get(client, "/s") == expected);
  });
}

TEST_CASE("a file that several create is cut when each of them says so, whoever had written what is cut off") {
  FileSystem fs(3);
  std::string token;
  int cut = 0;
  bool is_done = false;
  fs.add_client("first", DataPath::kDescriptors, [&](Client& client, sim::Actor& self) {
    const auto await = [&](const auto& what) {
      while (!what()) self.pause(std::chrono::milliseconds(1));
    };
    File file = must(client.create("/f", fixed(100)));
    write(file, pattern(5000), 0);
    must(file.resize(1000));
    token = must(file.share());
    await([&] { return cut == 1; });
    must(file.resize(150));
    ++cut;
    await([&] { return is_done; });
    write(file, pattern(10, 4), 2700);  // and no zeros in front of it, where the other has written
    must(file.commit());
    Bytes expected = pattern(1000);
    expected.resize(150);
    expected.resize(2500);
    const Bytes more = pattern(100, 3);
    expected.insert(expected.end(), more.begin(), more.end());
    expected.resize(2700);
    const Bytes last = pattern(10, 4);
    expected.insert(expected.end(), last.begin(), last.end());
    CHECK(get(client, "/f") == expected);
  });
  fs.add_client("second", DataPath::kDescriptors, [&](Client& client, sim::Actor& self) {
    while (token.empty()) self.pause(std::chrono::milliseconds(1));
    File file = must(client.join(token));
    write(file, pattern(3000, 2), 1000);
    must(file.resize(150));
    ++cut;
    while (cut < 2) self.pause(std::chrono::milliseconds(1));
    write(file, pattern(100, 3), 2500);
    must(file.done());
    is_done = true;
  });
  fs.world.run();
}

// Random writes, pieces that are under way, cuts and growth: against a vector.
TEST_CASE("a file being created has the bytes of a vector that is resized and written the same way") {
  CHECK(holds([] {
    FileSystem fs(3, *rc::gen::arbitrary<std::uint64_t>());
    fs.run(*rc::gen::element(DataPath::kDescriptors, DataPath::kMessages), [](Client& client) {
      const auto record = *rc::gen::inRange<std::uint32_t>(1, 50);
      File file = must(client.create("/f", fixed(record)));
      Bytes expected;
      std::vector<std::pair<File::Operation, Bytes>> under_way;
      const auto wait_all = [&] {
        for (auto& [operation, bytes] : under_way) must(file.wait(operation));
        under_way.clear();
      };
      for (int i = 0; i < 12; ++i) {
        const auto at = *rc::gen::inRange<std::size_t>(0, 1200);
        const Bytes bytes = pattern(*rc::gen::inRange<std::size_t>(1, 300), static_cast<std::uint64_t>(i));
        const auto what = *rc::gen::inRange(0, 4);
        if (what < 2) {
          wait_all();
          must(file.pwrite(bytes, at));
        } else if (what == 2) {
          wait_all();
          must(file.resize(at));
          expected.resize(at);
          continue;
        } else {
          File::Pieces pieces;
          pieces.file = patterns::range(0, bytes.size());
          pieces.memory = patterns::range(0, bytes.size());
          pieces.displacement = static_cast<std::int64_t>(at);
          under_way.emplace_back(File::Operation{}, bytes);
          under_way.back().first = must(file.start_write_pieces(pieces, under_way.back().second));
        }
        expected.resize(std::max(expected.size(), at + bytes.size()));
        std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(at));
      }
      wait_all();
      RC_ASSERT(get(file) == expected);
      must(file.commit());
      RC_ASSERT(get(client, "/f") == expected);
    });
  }));
}

TEST_CASE("a writer's file is known to have changed while it is open, when it is synced, and when it is closed") {
  FileSystem fs(2);
  fs.add_client("client", DataPath::kAuto, [](Client& client, sim::Actor& self) {
    put(client, "/f", fixed(100), pattern(1000));
    const auto modified = [&] { return must(client.stat("/f")).modified_ns; };
    std::int64_t before = modified();
    const auto has_moved = [&] { return std::exchange(before, modified()) != before; };
    self.pause(5s);
    File file = must(client.open("/f", Client::Mode::kWrite));
    write(file, pattern(10), 0);
    CHECK_FALSE(has_moved());
    must(file.sync());
    CHECK(has_moved());
    must(file.sync());
    CHECK_FALSE(has_moved());
    self.pause(2s);
    write(file, pattern(10), 0);
    CHECK(has_moved());
    must(file.append_bytes(pattern(10)));
    CHECK_FALSE(has_moved());
    must(file.close());
    CHECK(has_moved());
    CHECK(must(client.stat("/f")).file_length.bytes == 1010);
    File reader = must(client.open("/f"));
    must(reader.close());
    CHECK_FALSE(has_moved());
  });
  fs.world.run();
}
