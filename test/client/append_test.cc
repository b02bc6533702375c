// Appending to committed files, alone and together.
#include <map>
#include <set>

#include "fixture.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

CreateOptions fixed(std::uint32_t length, std::uint32_t width = 0) {
  CreateOptions options;
  options.format = Format::fixed(length);
  options.width = width;
  return options;
}

// A record that says who appended it, and as which of his.
Bytes record_of(int who, int number) {
  Bytes out = pattern(16, static_cast<std::uint64_t>(who * 1000 + number));
  out[0] = static_cast<std::byte>(who);
  out[1] = static_cast<std::byte>(number);
  return out;
}

}  // namespace

TEST_CASE("appended records follow the last one, from an empty file on") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        const std::uint32_t length = *rc::gen::element<std::uint32_t>(1, 100, 5000);
        CreateOptions options = fixed(length, *rc::gen::inRange<std::uint32_t>(1, 5));
        if (*rc::gen::inRange(0, 3) == 0) {
          options.width = 4;
          options.bevy = 2;
        }
        Bytes model = pattern(*rc::gen::inRange<std::size_t>(0, 5) * length);
        if (model.empty()) {
          must(client.create_empty("/f", options));
        } else {
          put(client, "/f", options, model);
        }
        File file = must(client.open("/f", Client::Mode::kWrite));
        for (int i = 0; i < 5; ++i) {
          const Bytes piece =
              pattern(*rc::gen::inRange<std::size_t>(1, 20) * length, static_cast<std::uint64_t>(i) + 5);
          RC_ASSERT(must(file.append(piece)) == model.size() / length);
          model.insert(model.end(), piece.begin(), piece.end());
        }
        RC_ASSERT(get(file) == model);
        must(client.remove("/f"));
      }));
    });
  }
}

TEST_CASE("variable records are appended in batches, from an empty file on") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(4);
    fs.run(path, [](Client& client) {
      REQUIRE(holds([&] {
        CreateOptions options;
        options.format = Format::variable();
        options.width = 4;
        options.bevy = *rc::gen::element<std::uint32_t>(0, 2);
        must(client.create_empty("/v", options));
        File file = must(client.open("/v", Client::Mode::kWrite));
        Bytes model;
        std::uint64_t records = 0;
        for (int i = 0; i < 5; ++i) {
          std::vector<std::uint32_t> lengths(*rc::gen::inRange<std::size_t>(1, 30));
          std::size_t total = 0;
          for (auto& length : lengths) total += length = *rc::gen::inRange<std::uint32_t>(0, 40);
          const Bytes data = pattern(total, static_cast<std::uint64_t>(i) + 5);
          RC_ASSERT(must(file.append_batch(lengths, data)) == records);
          records += lengths.size();
          model.insert(model.end(), data.begin(), data.end());
        }
        RC_ASSERT((must(file.file_length()) == FileLength{records, model.size()}));
        RC_ASSERT(get(file) == model);
        must(client.remove("/v"));
      }));
    });
  }
}

TEST_CASE("a record cannot be appended behind a short one, bytes fill it up") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(2);
    fs.run(path, [](Client& client) {
      put(client, "/f", fixed(10), pattern(25));
      File file = must(client.open("/f", Client::Mode::kWrite));
      CHECK(code_of(file.append(pattern(10))) == Code::kInvalid);
      CHECK(code_of(file.write_at(3, pattern(10))) == Code::kInvalid);
      CHECK(must(file.pwrite(pattern(12, 2), 25)) == 12);
      Bytes expected = pattern(25);
      const Bytes more = pattern(12, 2);
      expected.insert(expected.end(), more.begin(), more.end());
      CHECK(get(file) == expected);
    });
  }
}

TEST_CASE("appended bytes go on where the file ends, also in the middle of a record") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      must(client.create_empty("/f", fixed(10)));
      File file = must(client.open("/f", Client::Mode::kWrite));
      Bytes model;
      for (const std::size_t size : {3u, 4u, 3u, 25u, 0u, 1u, 100u}) {
        const Bytes more = pattern(size, size);
        CHECK(must(file.append_bytes(more)) == model.size());
        model.insert(model.end(), more.begin(), more.end());
      }
      CHECK(get(file) == model);
      must(client.create_empty("/lines", {.format = Format::lines()}));
      CHECK(code_of(must(client.open("/lines", Client::Mode::kWrite)).append_bytes(pattern(3))) == Code::kInvalid);
    });
  }
}

TEST_CASE("bytes of several appenders at once are all there, each call's together") {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    FileSystem fs(3, seed);
    constexpr int kAppenders = 3, kCalls = 6;
    bool ready = false;
    std::map<std::uint64_t, Bytes> where;  // where each call's bytes begin
    for (int who = 0; who < kAppenders; ++who) {
      fs.add_client("appender" + std::to_string(who), kBothPaths[seed % 2], [&, who](Client& client, sim::Actor& self) {
        if (who == 0) {
          must(client.create_empty("/log", fixed(16)));
          ready = true;
        }
        while (!ready) self.pause(1ms);
        File file = must(client.open("/log", Client::Mode::kWrite));
        for (int call = 0; call < kCalls; ++call) {
          const Bytes bytes =
              pattern(static_cast<std::size_t>(1 + 7 * call + who), static_cast<std::uint64_t>(who * 100 + call));
          REQUIRE(where.emplace(must(file.append_bytes(bytes)), bytes).second);
        }
      });
    }
    fs.world.run();
    fs.add_client("reader", kBothPaths[seed % 2], [&](Client& client, sim::Actor&) {
      Bytes expected;
      for (const auto& [begin, bytes] : where) {
        REQUIRE(begin == expected.size());
        expected.insert(expected.end(), bytes.begin(), bytes.end());
      }
      CHECK(get(client, "/log") == expected);
    });
    fs.world.run();
  }
}

TEST_CASE("a file opened for reading cannot be changed") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    put(client, "/f", fixed(10), pattern(20));
    File file = must(client.open("/f"));
    CHECK(code_of(file.append(pattern(10))) == Code::kPermission);
    CHECK(code_of(file.write_at(0, pattern(10))) == Code::kPermission);
    CHECK(code_of(file.pwrite(pattern(3), 5)) == Code::kPermission);
    CHECK(get(file) == pattern(20));
  });
}

TEST_CASE("records of several appenders at once are all there, each call's together, without gaps") {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
    const DataPath path = kBothPaths[seed % 2];
    FileSystem fs(3, seed);
    constexpr int kAppenders = 4, kCalls = 6;
    bool ready = false;
    std::map<RecordNumber, std::pair<int, int>> where;  // first record of each call
    for (int who = 0; who < kAppenders; ++who) {
      fs.add_client("appender" + std::to_string(who), path, [&, who](Client& client, sim::Actor& self) {
        if (who == 0) {
          must(client.create_empty("/log", fixed(16)));
          ready = true;
        }
        while (!ready) self.pause(1ms);
        File file = must(client.open("/log", Client::Mode::kWrite));
        for (int call = 0; call < kCalls; ++call) {
          Bytes records;
          for (int i = 0; i <= call; ++i) {
            const Bytes one = record_of(who, call * 10 + i);
            records.insert(records.end(), one.begin(), one.end());
          }
          const RecordNumber first = must(file.append(records));
          REQUIRE(where.emplace(first, std::make_pair(who, call)).second);
          CHECK(must(file.file_length()).records >= first + static_cast<unsigned>(call) + 1);
        }
      });
    }
    fs.world.run();
    fs.add_client("reader", path, [&](Client& client, sim::Actor&) {
      const Bytes all = get(client, "/log");
      RecordNumber next = 0;
      for (const auto& [first, call] : where) {
        REQUIRE(first == next);
        for (int i = 0; i <= call.second; ++i) {
          const auto found = part(all, (first + static_cast<unsigned>(i)) * 16, 16);
          const Bytes expected = record_of(call.first, call.second * 10 + i);
          REQUIRE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
        }
        next = first + static_cast<unsigned>(call.second) + 1;
      }
      CHECK(all.size() == next * 16);
    });
    fs.world.run();
  }
}

TEST_CASE("an append that cannot be written keeps nobody else waiting") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.add_client("client", path, [&](Client& client, sim::Actor& self) {
      must(client.create_empty("/log", fixed(16)));
      File failing = must(client.open("/log", Client::Mode::kWrite));
      fs.cluster.kill_lfs(2);
      CHECK(code_of(failing.append(pattern(3 * 16))) == Code::kUnavailable);
      File moved = must(client.open("/log", Client::Mode::kWrite));
      const Time begin = self.clock().now();
      CHECK(must(moved.append(record_of(1, 1))) == 0);
      CHECK(must(moved.append(record_of(1, 2))) == 1);
      CHECK(self.clock().now() - begin < 1s);
      fs.cluster.restart_lfs(2);
      must(client.status(3));
      CHECK(must(moved.append(record_of(1, 3))) == 2);
      CHECK(get(client, "/log").size() == 3 * 16);
    });
    fs.world.run();
  }
}

TEST_CASE("an appender that dies costs the others nothing, and never leaves a gap") {
  const std::uint64_t seed = GENERATE(range(1, 12));
  FileSystem fs(3, seed);
  CAPTURE(seed);
  bool ready = false;
  int done = 0;
  std::vector<RecordNumber> firsts;
  fs.add_client("owner", DataPath::kAuto, [&](Client& client, sim::Actor&) {
    must(client.create_empty("/log", fixed(16)));
    ready = true;
  });
  const auto victim = fs.world.spawn(
      "victim",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = Client::connect_in(side.world(), sim::Cluster::kServer);
        while (!ready) self.pause(1ms);
        auto file = client->open("/log", Client::Mode::kWrite);
        for (int i = 0; file; ++i) {
          if (!file->append(record_of(9, i))) return;
        }
      },
      sim::Who{0, {0}});
  fs.add_client("survivor", DataPath::kAuto, [&](Client& client, sim::Actor& self) {
    while (!ready) self.pause(1ms);
    File file = must(client.open("/log", Client::Mode::kWrite));
    for (; done < 20; ++done) {
      const Time begin = self.clock().now();
      firsts.push_back(must(file.append(record_of(1, done))));
      CHECK(self.clock().now() - begin < 1s);
      if (done == 5) fs.world.kill(victim);
    }
    const Bytes all = get(file);
    int mine = 0;
    for (std::size_t at = 0; at < all.size(); at += 16) {
      const int who = static_cast<int>(all[at]);
      const Bytes expected = record_of(who, static_cast<int>(all[at + 1]));
      REQUIRE(std::equal(expected.begin(), expected.end(), all.begin() + static_cast<std::ptrdiff_t>(at)));
      mine += who == 1;
    }
    CHECK(mine == 20);
    for (int i = 0; i < 20; ++i) {
      const auto found = part(all, firsts[static_cast<std::size_t>(i)] * 16, 16);
      const Bytes expected = record_of(1, i);
      CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
    }
  });
  fs.world.run();
}

TEST_CASE("an append to a file that was removed before it had any record leaves nothing behind") {
  const bool lfs_restarts = GENERATE(false, true);
  FileSystem fs(2);
  fs.add_client("appender", DataPath::kMessages, [&](Client& client, sim::Actor& self) {
    put(client, "/file", fixed(16), {});  // no records, so no components
    File file = must(client.open("/file", Client::Mode::kWrite));
    fs.cluster.restart_server();  // it forgets who has what open
    must(client.remove("/file"));
    self.pause(2s);  // the LFSs are told, and have nothing to remove
    (void)file.append(record_of(1, 1)).has_value();
    if (lfs_restarts) fs.cluster.restart_lfs(0);
    self.pause(130s);
    const auto status = must(client.status(2));
    CHECK(status.doomed == 0);
    for (const auto& node : status.nodes) CHECK(node.components == 0);
  });
  fs.world.run();
}

namespace {

constexpr std::string_view kWhatToDo = "write the file again with the delimiter at its end";

void put_lines(Client& client, const std::string& path, std::vector<std::uint32_t> lengths, std::string_view text) {
  CreateOptions options;
  options.format = Format::lines();
  File file = must(client.create(path, options));
  must(file.write_batch(lengths, bytes_of(text)));
  must(file.commit());
}

std::string refusal(const Result<RecordNumber>& result) {
  REQUIRE(code_of(result) == Code::kInvalid);
  return result.error().text;
}

const std::vector<std::uint32_t> kTwo = {2};

}  // namespace

TEST_CASE("no line can be appended behind one that lacks its delimiter") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      put_lines(client, "/open", {2, 1}, "a\nb");
      File open = must(client.open("/open", Client::Mode::kWrite));
      CHECK_THAT(refusal(open.append_batch(kTwo, bytes_of("c\n"))), Catch::Contains(std::string(kWhatToDo)));
      CHECK(code_of(open.write_batch_at(2, kTwo, bytes_of("c\n"))) == Code::kInvalid);
      CHECK(text_of(get(client, "/open")) == "a\nb");

      put_lines(client, "/ended", {2}, "a\n");
      File ended = must(client.open("/ended", Client::Mode::kWrite));
      File other = must(client.open("/ended", Client::Mode::kWrite));
      CHECK(must(ended.append_batch(kTwo, bytes_of("b\n"))) == 1);
      CHECK(must(other.append_batch(std::vector<std::uint32_t>{2, 1}, bytes_of("c\nd"))) ==
            2);  // the last one may lack it
      CHECK_THAT(refusal(ended.append_batch(kTwo, bytes_of("e\n"))), Catch::Contains(std::string(kWhatToDo)));
      CHECK_THAT(refusal(other.append_batch(kTwo, bytes_of("e\n"))), Catch::Contains(std::string(kWhatToDo)));
      CHECK(text_of(get(client, "/ended")) == "a\nb\nc\nd");
    });
  }
}

TEST_CASE("lines of several appenders at once stay lines, though one of them ends without its delimiter") {
  const std::uint64_t seed = GENERATE(range(1, 9));
  FileSystem fs(3, seed);
  CAPTURE(seed);
  bool ready = false;
  for (int who = 0; who < 3; ++who) {
    fs.add_client("appender" + std::to_string(who), kBothPaths[seed % 2], [&, who](Client& client, sim::Actor& self) {
      if (who == 0) {
        put_lines(client, "/log", {2}, "a\n");
        ready = true;
      }
      while (!ready) self.pause(1ms);
      File file = must(client.open("/log", Client::Mode::kWrite));
      for (int i = 0; i < 8; ++i) {
        const bool ends = who != 0 || i != 5;
        const auto appended =
            file.append_batch(std::vector<std::uint32_t>{ends ? 3u : 2u}, bytes_of(ends ? "xy\n" : "xy"));
        if (!appended) REQUIRE(appended.error().code == Code::kInvalid);
      }
    });
  }
  fs.world.run();
  fs.add_client("reader", kBothPaths[seed % 2], [&](Client& client, sim::Actor&) {
    const std::string text = text_of(get(client, "/log"));
    CHECK(text.ends_with("xy"));
    CHECK(text.find("xyxy") == std::string::npos);
  });
  fs.world.run();
}
