// Overwrites: old or new after any crash, never torn; acknowledged ones stay.
#include "node.h"

using namespace pif;
using namespace pif::lfs::test;

TEST_CASE("overwritten records are read as overwritten, before and after power loss") {
  with_node([](Peer& peer, Node& node) {
    auto bytes = pattern(100 * 333 + 50, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    const auto put = [&](std::uint64_t first, std::uint64_t count, unsigned seed) {
      const auto length = std::min<std::size_t>(count * 100, bytes.size() - first * 100);
      const auto fresh = pattern(length, seed);
      REQUIRE_OK(peer.overwrite(7, first, count, fresh));
      bytes.replace(first * 100, length, fresh);
      CHECK(peer.read(7, first, count).value() == fresh);
    };
    put(5, 1, 10);
    put(30, 100, 11);  // over chunks
    put(39, 2, 12);    // the edge of two
    put(333, 1, 13);   // the short last one
    put(0, 334, 14);   // everything
    REQUIRE_OK(peer.overwrite(7, 17, 1, "inside", 20, 6));
    bytes.replace(1720, 6, "inside");
    CHECK(peer.read(7, 0, 400).value() == bytes);
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 400).value() == bytes);
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("overwrites that would change a length, or lie past the end, are refused") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(550, 1)));
    CHECK(code_of(peer.overwrite(7, 6, 1, pattern(100, 2))) == Code::kEndOfFile);
    CHECK(code_of(peer.overwrite(7, 5, 1, pattern(100, 2))) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(7, 0, 1, pattern(50, 2))) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(7, 0, 1, "ab", 99, 2)) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(7, 0, 0, "")) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(7, UINT64_MAX, 2, pattern(200, 2))) == Code::kEndOfFile);
    TestFile file;
    file.id = 8;
    file.format = Format::variable();
    REQUIRE_OK(peer.put_variable(file, {"one", "", "three"}));
    CHECK(code_of(peer.overwrite(8, 0, 1, variable_body({"four"}))) == Code::kInvalid);
    REQUIRE_OK(peer.overwrite(8, 0, 3, variable_body({"ONE", "", "THREE"})));
    REQUIRE_OK(peer.overwrite(8, 1, 1, variable_body({""})));
    CHECK(peer.read(8, 0, 3).value() == variable_body({"ONE", "", "THREE"}));
  });
}

TEST_CASE("overwrites of one chunk that share a batch all stand") {
  sim::Options options;
  options.delay_min = options.delay_max = std::chrono::milliseconds(1);  // what is sent at once comes at once
  sim::World world(1, options);
  Node node(world);
  node.start();
  world.spawn_main("client", [&](sim::Actor& self) {
    Peer peer(self, node);
    auto bytes = pattern(100 * 130, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    std::vector<net::CallId> calls;
    for (unsigned i = 0; i < 40; ++i) {
      const std::uint64_t first = i * 7 % 90;
      const std::uint64_t rows = 1 + i % 40;
      const auto fresh = pattern(rows * 100, 10 + i);
      calls.push_back(peer.start(peer.overwrite_request(7, first, rows, fresh)));
      bytes.replace(first * 100, fresh.size(), fresh);
    }
    for (const auto id : calls) REQUIRE_OK(peer.wait(id));
    CHECK(peer.read(7, 0, 130).value() == bytes);
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 130).value() == bytes);
  });
  world.run();
}

TEST_CASE("many clients overwrite at once and nobody's change is lost") {
  sim::World world(3);
  Node node(world);
  node.start();
  bool ready = false;
  unsigned left = 8;
  auto bytes = pattern(100 * 64, 1);
  const auto writer = [&](unsigned mine) {
    return [&, mine](sim::Actor& self) {
      while (!ready) self.pause(std::chrono::milliseconds(1));
      Peer peer(self, node);
      for (unsigned i = mine; i < 64; i += 8) {
        const auto fresh = pattern(100, 1000 + i);
        REQUIRE_OK(peer.overwrite(7, i, 1, fresh));
        bytes.replace(i * 100, 100, fresh);
      }
      --left;
    };
  };
  for (unsigned i = 0; i < 8; ++i) world.spawn_main("writer" + std::to_string(i), writer(i));
  world.spawn_main("client", [&](sim::Actor& self) {
    Peer peer(self, node);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    ready = true;
    while (left > 0) self.pause(std::chrono::milliseconds(1));
    CHECK(peer.read(7, 0, 64).value() == bytes);
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 64).value() == bytes);
  });
  world.run();
}

TEST_CASE("a log that gets full starts over, and nothing acknowledged is lost") {
  with_node(
      [](Peer& peer, Node& node) {
        auto bytes = pattern(100 * 500, 1);
        REQUIRE_OK(peer.put(TestFile{}, bytes));
        for (unsigned round = 0; round < 60; ++round) {  // 20 KB each: far more than the log's 64 KiB
          const std::uint64_t first = round * 37 % 300;
          const auto fresh = pattern(20000, 100 + round);
          REQUIRE_OK(peer.overwrite(7, first, 200, fresh));
          bytes.replace(first * 100, fresh.size(), fresh);
          for (const char* name : {"/lfs0/log/redo.0", "/lfs0/log/redo.1"}) {
            const auto log = component::make_memory_storage(node.disk)->open(name, component::OpenMode::kRead).value();
            CHECK(log->size().value() < (128u << 10));
          }
          if (round % 13 == 12) {
            node.crash();
            node.start();
            CHECK(peer.read(7, 0, 500).value() == bytes);
          }
        }
        CHECK(peer.read(7, 0, 500).value() == bytes);
      },
      1, [](Node& node) { node.log_bytes = 64u << 10; });
}

namespace {

// Overwrites until the `failing`-th call of the disk fails, crashes (with or without power loss), and looks.
bool old_or_new_after(unsigned failing, bool power_loss) {
  bool reached = false;
  with_node(
      [&](Peer& peer, Node& node) {
        auto sure = pattern(100 * 130, 1);  // the last chunk is partial
        REQUIRE_OK(peer.put(TestFile{}, sure));
        unsigned calls = 0;
        node.disk->set_fault([&](std::string_view, std::string_view) {
          reached = reached || calls == failing;
          return calls++ == failing ? Code::kIo : Code::kOk;
        });
        std::optional<std::string> unsure;
        for (unsigned i = 0; i < 6 && !unsure; ++i) {
          auto next = sure;
          const auto fresh = pattern(5000, 50 + i);
          const std::uint64_t first = i * 16 % 80;
          next.replace(first * 100, 5000, fresh);
          if (peer.overwrite(7, first, 50, fresh))
            sure = next;
          else
            unsure = next;
          if (!unsure && i == 3) (void)peer.flush();
        }
        node.disk->set_fault({});
        power_loss ? node.crash() : node.kill();
        node.start();
        const auto read = peer.read(7, 0, 130);
        INFO("call " << failing << (power_loss ? ", power loss" : ""));
        REQUIRE_OK(read);
        for (std::size_t row = 0; row < 130; ++row) {  // atomic per record
          const auto got = read->substr(row * 100, 100);
          CHECK((got == sure.substr(row * 100, 100) || (unsure && got == unsure->substr(row * 100, 100))));
        }
        CHECK(node.check().value().damages.empty());
      },
      1, [](Node& node) { node.log_bytes = 32u << 10; });
  return reached;
}

}  // namespace

TEST_CASE("whatever call of the disk fails, after power loss each record is old or new and acknowledged ones are new") {
  for (unsigned failing = 0; failing < 400 && old_or_new_after(failing, true); ++failing) continue;
}

TEST_CASE("whatever call of the disk fails, after a kill each record is old or new and acknowledged ones are new") {
  for (unsigned failing = 0; failing < 400 && old_or_new_after(failing, false); ++failing) continue;
}

TEST_CASE("after a failed sync of the log overwrites stop with an error until the LFS is started again; reads go on") {
  with_node([](Peer& peer, Node& node) {
    const auto bytes = pattern(1000, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    node.disk->set_fault([](std::string_view call, std::string_view path) {
      return call == "sync" && path.find("/redo.") != std::string_view::npos ? Code::kIo : Code::kOk;
    });
    CHECK(code_of(peer.overwrite(7, 0, 1, pattern(100, 2))) == Code::kIo);
    node.disk->set_fault({});
    CHECK(code_of(peer.overwrite(7, 1, 1, pattern(100, 3))) == Code::kIo);  // not retried as if nothing had been
    CHECK(peer.read(7, 1, 9).value() == bytes.substr(100));
    node.restart();
    REQUIRE_OK(peer.overwrite(7, 1, 1, pattern(100, 3)));
  });
}

TEST_CASE("a component whose sync failed is out of service until the LFS is started again; others are served") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    TestFile other;
    other.id = 8;
    REQUIRE_OK(peer.put(other, pattern(500, 2)));
    REQUIRE_OK(peer.write(file, 0, 5, pattern(500, 1)));
    node.disk->set_fault([](std::string_view call, std::string_view path) {
      return call == "sync" && path.find(".dat") != std::string_view::npos ? Code::kIo : Code::kOk;
    });
    CHECK(code_of(peer.seal(file, 5, 500)) == Code::kIo);
    node.disk->set_fault({});
    const auto again = peer.seal(file, 5, 500);
    CHECK(code_of(again) == Code::kIo);
    CHECK(again.error().text.find("started again") != std::string::npos);
    CHECK(peer.read(8, 0, 5).value() == pattern(500, 2));
  });
}
