// Operations that are started, and waited for later.
#include "fixture.h"
#include "pif/pattern/builders.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kPieces = 100'000;  // of 2 bytes: more than one turn of a request

CreateOptions records(std::uint32_t length, std::uint32_t bevy = 0) {
  CreateOptions options;
  options.format = Format::fixed(length);
  options.bevy = bevy;
  return options;
}

// Bytes 0 and 1 of every 8, from `displacement` on, packed.
File::Pieces every_8(std::int64_t displacement, std::uint64_t pieces = kPieces) {
  return {patterns::simple_strided(0, 2, 8, pieces), patterns::range(0, 2 * pieces), displacement, 0, {}};
}
Bytes expected(const Bytes& all, std::size_t displacement, std::uint64_t pieces = kPieces) {
  Bytes out(2 * pieces);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = all[displacement + i / 2 * 8 + i % 2];
  return out;
}

}  // namespace

TEST_CASE("several requests of many turns are under way at once, and are waited for in any order") {
  for (const DataPath path : kBothPaths) {
    for (const unsigned threads : {1u, 4u}) {
      FileSystem fs(4);
      fs.threads_max = threads;
      fs.run(path, [](Client& client) {
        const Bytes all = test::pattern(8 * kPieces + 100);
        put(client, "/f", records(100), all);
        File file = must(client.open("/f"));
        std::vector<Bytes> memory(6, Bytes(2 * kPieces));
        std::vector<File::Operation> operations;
        for (std::size_t i = 0; i < memory.size(); ++i)
          operations.push_back(must(file.start_read_pieces(every_8(static_cast<std::int64_t>(i * 11)), memory[i])));
        for (std::size_t i = memory.size(); i-- > 0;) {
          CHECK(must(file.wait(operations[i])) == 2 * kPieces);
          CHECK(memory[i] == expected(all, i * 11));
        }
        CHECK(code_of(file.wait(operations[0])) == Code::kInvalid);
      });
    }
  }
}

TEST_CASE("asking whether it is done moves an operation on to its end, turn by turn") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
      const Bytes all = test::pattern(8 * kPieces);
      put(client, "/f", records(100), all);
      File file = must(client.open("/f"));
      Bytes memory(2 * kPieces);
      const auto operation = must(file.start_read_pieces(every_8(0), memory));
      int asked = 0;
      while (!file.is_done(operation) && ++asked < 10'000) self.pause(1ms);
      CHECK(asked < 10'000);
      CHECK(memory == expected(all, 0));
      CHECK(must(file.wait(operation)) == 2 * kPieces);
    });
    fs.world.run();
  }
}

TEST_CASE("what was started has a long list of its own: the caller may change his") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      const Bytes all = test::pattern(4 * 100'000);
      put(client, "/f", records(100), all);
      File file = must(client.open("/f"));
      File::Pieces wanted{{}, patterns::range(0, 100'000), 0, 0, {}};
      Bytes expected;
      for (std::size_t i = 0; i < 100'000; ++i) {
        wanted.file.levels.push_back({static_cast<std::int64_t>(4 * i), 1, 0, 1, {}});
        expected.push_back(all[4 * i]);
      }
      Bytes memory(100'000);
      const auto operation = must(file.start_read_pieces(wanted, memory));
      for (patterns::Level& level : wanted.file.levels) level.offset = 1;
      CHECK(must(file.wait(operation)) == 100'000);
      CHECK(memory == expected);
    });
  }
}

TEST_CASE("a started read ends short where a piece goes past the end of the file") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      put(client, "/f", records(10), test::pattern(81));
      File file = must(client.open("/f"));
      Bytes memory(40);
      CHECK(must(file.wait(must(file.start_read_pieces(every_8(0, 20), memory)))) == 21);
      CHECK(must(file.wait(must(file.start_read(8, memory, 4)))) == 1);
      CHECK(memory[0] == test::pattern(81)[80]);
    });
  }
}

TEST_CASE("what was started and not waited for is in the file when it is committed") {
  for (const DataPath path : kBothPaths) {
    for (const unsigned threads : {1u, 4u}) {
      FileSystem fs(4);
      fs.threads_max = threads;
      fs.run(path, [](Client& client) {
        const Bytes base = test::pattern(8 * kPieces, 1), in = test::pattern(2 * kPieces, 2);
        File file = must(client.create("/f", records(100)));
        must(file.write(base));
        Bytes model = base;
        const auto operation = must(file.start_write_pieces(every_8(0), in));
        for (std::size_t i = 0; i < in.size(); ++i) model[i / 2 * 8 + i % 2] = in[i];
        const Bytes record = test::pattern(100, 5);
        const auto at_end = must(file.start_write(9000, record));  // behind a gap of zeros
        model.resize(900'000);
        model.insert(model.end(), record.begin(), record.end());
        must(file.commit());
        CHECK(must(file.wait(operation)) == 2 * kPieces);
        CHECK(must(file.wait(at_end)) == 1);
        CHECK(get(client, "/f") == model);
      });
    }
  }
}

TEST_CASE("of bytes that a started write has several times the last one counts, whatever its turns") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.run(path, [](Client& client) {
      File file = must(client.create("/f", records(64)));
      // 70,000 pieces of 3 bytes, each 1 behind the one before.
      constexpr std::uint64_t kCount = 70'000;
      const File::Pieces wanted{patterns::simple_strided(0, 3, 1, kCount), patterns::range(0, 3 * kCount), 0, 0, {}};
      const Bytes in = test::pattern(3 * kCount);
      CHECK(must(file.wait(must(file.start_write_pieces(wanted, in)))) == 3 * kCount);
      Bytes model(kCount + 2);
      for (std::size_t i = 0; i < in.size(); ++i) model[i / 3 + i % 3] = in[i];
      must(file.commit());
      CHECK(get(client, "/f") == model);
    });
  }
}

TEST_CASE("a file is closed while operations are under way: nothing is written into their memory any more") {
  for (const DataPath path : kBothPaths) {
    for (const unsigned threads : {1u, 4u}) {
      FileSystem fs(4);
      fs.threads_max = threads;
      fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
        put(client, "/f", records(100), test::pattern(8 * kPieces));
        Bytes memory(2 * kPieces);
        for (const bool by_close : {true, false}) {
          File file = must(client.open("/f"));
          for (int i = 0; i < 5; ++i) must(file.start_read_pieces(every_8(0), memory));
          if (by_close) must(file.close());
        }
        const Bytes then = memory;
        self.pause(100ms);
        CHECK(memory == then);
        CHECK(get(client, "/f") == test::pattern(8 * kPieces));  // the credit is free
      });
      fs.world.run();
    }
  }
}

TEST_CASE("so many operations may be under way at once, and no more") {
  FileSystem fs(2);
  fs.run(DataPath::kMessages, [](Client& client) {
    put(client, "/f", records(10), test::pattern(1000));
    File file = must(client.open("/f"));
    Bytes memory(20);
    std::vector<File::Operation> operations;
    Code last = Code::kOk;
    while (last == Code::kOk && operations.size() < 5000) {
      const auto started = file.start_read_pieces(every_8(0, 10), memory);
      last = code_of(started);
      if (started) operations.push_back(*started);
    }
    CHECK(last == Code::kTooLarge);
    CHECK(operations.size() == 1024);
    for (const auto operation : operations) REQUIRE(must(file.wait(operation)) == 20);
  });
}

TEST_CASE("a started request fails by message where an LFS is down, naming it, and goes on by descriptor") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [&](Client& client) {
      const Bytes all = test::pattern(8000);
      put(client, "/f", records(100), all);
      File file = must(client.open("/f"));
      Bytes memory(2000);
      CHECK(must(file.wait(must(file.start_read_pieces(every_8(0, 1000), memory)))) == 2000);
      fs.cluster.kill_lfs(2);
      std::fill(memory.begin(), memory.end(), std::byte{});
      const auto read = file.wait(must(file.start_read_pieces(every_8(0, 1000), memory)));
      if (path == DataPath::kDescriptors) {
        CHECK(must(read) == 2000);
        CHECK(memory == expected(all, 0, 1000));
      } else {
        REQUIRE(!read);
        CHECK(read.error().node == "lfs2");
      }
    });
  }
}

TEST_CASE("pieces of an LFS that is down come from its parity, also when they were started") {
  FileSystem fs(4);
  fs.run(DataPath::kMessages, [&](Client& client) {
    const Bytes all = test::pattern(80'000);
    put(client, "/f", records(100, 2), all);
    File file = must(client.open("/f"));
    fs.cluster.kill_lfs(1);
    Bytes memory(20'000);
    CHECK(must(file.wait(must(file.start_read_pieces(every_8(0, 10'000), memory)))) == 20'000);
    CHECK(memory == expected(all, 0, 10'000));
    CHECK(must(file.read_pieces(every_8(0, 10'000), memory)) == 20'000);
    CHECK(memory == expected(all, 0, 10'000));
  });
}

TEST_CASE("started requests that cannot be are refused at the start") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    put(client, "/f", records(64), test::pattern(640));
    File file = must(client.open("/f"));
    Bytes memory(64);
    const auto whole = patterns::range(0, 64);
    CHECK(code_of(file.start_read_pieces({{}, whole, 0, 0, {}}, memory)) == Code::kInvalid);
    CHECK(code_of(file.start_read_pieces({whole, patterns::range(1, 64), 0, 0, {}}, memory)) == Code::kInvalid);
    CHECK(code_of(file.start_read_pieces({whole, whole, -1, 0, {}}, memory)) == Code::kInvalid);
    CHECK(code_of(file.start_write_pieces({whole, whole, 0, 0, {}}, memory)) == Code::kPermission);
    must(file.close());
    CHECK(code_of(file.start_read_pieces({whole, whole, 0, 0, {}}, memory)) == Code::kInvalid);
  });
}
