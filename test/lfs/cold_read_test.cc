// Reads that have to wait for the disk: nobody else waits for them, and they show the component whole.
#include "appender.h"
#include "held_executor.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

// Nothing of the file is in memory; of others everything is.
void make_cold(Node& node, std::string file) {
  node.disk->set_fault([file = std::move(file)](std::string_view call, std::string_view path) {
    return call == "read_cached" && path.find(file) != std::string_view::npos ? Code::kIo : Code::kOk;
  });
}

net::Packet read_request(Peer& peer, std::uint64_t file, std::uint64_t first, std::uint64_t count) {
  auto packet = peer.request(file, kMayRead);
  packet.envelope.mutable_read()->set_file(file);
  packet.envelope.mutable_read()->set_first(first);
  packet.envelope.mutable_read()->set_count(count);
  return packet;
}

// A node with file 7 of 130 records of 100 bytes, the last one short, of which nothing is in memory.
struct Cold {
  std::string bytes = pattern(100 * 130 - 40, 1);
  HeldExecutor executor;

  void run(const std::function<void(Peer&, Node&)>& body) {
    with_node(
        [&](Peer& peer, Node& node) {
          REQUIRE_OK(peer.put(TestFile{}, bytes));
          make_cold(node, "0007.");
          body(peer, node);
        },
        1, [this](Node& node) { node.executor = &executor; });
  }
  // Sends a read of all and waits until its work is held.
  net::CallId begin(Peer& peer) {
    executor.hold(1);
    const auto read = peer.start(read_request(peer, 7, 0, 130));
    wait_for_work(peer);
    return read;
  }
  void wait_for_work(Peer& peer) {
    while (executor.held() == 0) peer.self().pause(std::chrono::milliseconds(1));
  }
  void overwrite(Peer& peer, std::uint64_t first, std::uint64_t count, unsigned seed) {
    const auto fresh = pattern(std::min<std::size_t>(count * 100, bytes.size() - first * 100), seed);
    REQUIRE_OK(peer.overwrite(7, first, count, fresh));
    bytes.replace(first * 100, fresh.size(), fresh);
  }
};

}  // namespace

TEST_CASE("a read that waits for the disk keeps no other peer's request from being answered") {
  Cold cold;
  cold.run([&](Peer& peer, Node& node) {
    TestFile other_file;
    other_file.id = 8;
    REQUIRE_OK(peer.put(other_file, pattern(1000, 2)));
    const auto slow = cold.begin(peer);
    bool is_answered = false;
    peer.self().world().spawn_main("other",
                                   [&](sim::Actor& self) {
                                     Peer other(self, node, 1001);
                                     CHECK(other.read(8, 0, 10).value() == pattern(1000, 2));
                                     REQUIRE_OK(other.overwrite(8, 3, 1, pattern(100, 3)));
                                     is_answered = true;
                                   },
                                   {1001, {1001}});
    while (!is_answered) peer.self().pause(std::chrono::milliseconds(1));
    CHECK(cold.executor.held() == 1);
    cold.executor.release();
    CHECK(bytes_of(peer.wait(slow).value().body) == cold.bytes);
  });
}

TEST_CASE("a read that met an overwrite on its way reads again, and returns what was written") {
  Cold cold;
  cold.run([&](Peer& peer, Node&) {
    const auto slow = cold.begin(peer);
    cold.overwrite(peer, 100, 30, 5);  // the sum of the short last chunk changes with it
    cold.executor.release();
    CHECK(bytes_of(peer.wait(slow).value().body) == cold.bytes);
  });
}

TEST_CASE("a read whose file is overwritten again and again is answered all the same") {
  Cold cold;
  cold.run([&](Peer& peer, Node&) {
    const auto slow = cold.begin(peer);
    for (unsigned round = 0; round < 3; ++round) {
      cold.wait_for_work(peer);
      cold.overwrite(peer, 100 + round, 10, 20 + round);
      const bool is_last = round == 2;
      cold.executor.release();
      if (!is_last) cold.executor.hold(1);
    }
    CHECK(bytes_of(peer.wait(slow).value().body) == cold.bytes);
    CHECK(cold.executor.held() == 0);
  });
}

TEST_CASE("rows that are appended while a read is under way do not disturb it") {
  Cold cold;
  cold.bytes.resize(100 * 120);
  cold.run([&](Peer& peer, Node& node) {
    const auto slow = cold.begin(peer);
    Appender a(peer.self(), {&node}, TestFile{});
    const auto grant = a.reserve(10, 1000).value();
    REQUIRE_OK(a.rows(0, grant, 120, 10, pattern(1000, 4)));
    REQUIRE_OK(a.done(grant));
    cold.executor.release();
    CHECK(bytes_of(peer.wait(slow).value().body) == cold.bytes);
  });
}

TEST_CASE("a read of a file that is removed on its way says so") {
  Cold cold;
  cold.run([&](Peer& peer, Node&) {
    const auto slow = cold.begin(peer);
    REQUIRE_OK(peer.settle({}, {7}));
    cold.executor.release();
    CHECK(code_of(peer.wait(slow)) == Code::kStaleFile);
  });
}

TEST_CASE("all kinds of reads get the same from the disk as from memory") {
  with_node([](Peer& peer, Node& node) {
    std::vector<std::string> rows;
    for (unsigned i = 0; i < 700; ++i) rows.push_back(pattern(i % 90, i));
    REQUIRE_OK(peer.put(TestFile{}, pattern(100 * 300, 1)));
    REQUIRE_OK(peer.put_variable(variable(8), rows));
    const auto look = [&] {
      std::string out;
      for (const std::uint32_t stride : {0u, 7u}) {
        out += peer.read(7, 3, 40, stride).value();
        out += peer.read(8, 3, 90, stride).value();
      }
      auto packet = peer.request(7, kMayRead);
      packet.envelope.mutable_read_bytes()->set_file(7);
      packet.envelope.mutable_read_bytes()->set_offset(50);
      packet.envelope.mutable_read_bytes()->set_bytes(9000);
      out += bytes_of(peer.call(std::move(packet)).value().body);
      packet = peer.request(8, kMayRead);
      packet.envelope.mutable_offsets()->set_file(8);
      packet.envelope.mutable_offsets()->add_rows(600);
      return out + bytes_of(peer.call(std::move(packet)).value().body);
    };
    const auto warm = look();
    make_cold(node, "");
    CHECK(look() == warm);
    CHECK(code_of(peer.read(7, 300, 1)) == Code::kEndOfFile);
    node.disk->flip_bit("/lfs0/data/07/0000000000000007.dat", 17, 2);
    CHECK(code_of(peer.read(7, 0, 1)) == Code::kCorrupt);
  });
}

TEST_CASE("only some of the reads that wait for the disk are under way at once, and all are answered") {
  Cold cold;
  cold.run([&](Peer& peer, Node&) {
    cold.executor.hold(4);
    std::vector<net::CallId> reads;
    for (unsigned i = 0; i < 20; ++i) reads.push_back(peer.start(read_request(peer, 7, i, 1)));
    peer.self().pause(std::chrono::milliseconds(500));
    CHECK(cold.executor.held() == 4);
    cold.executor.release();
    for (unsigned i = 0; i < 20; ++i)
      CHECK(bytes_of(peer.wait(reads[i]).value().body) == cold.bytes.substr(i * 100, 100));
  });
}

TEST_CASE("an overwrite that has to read its chunk first keeps no overwrite of another file waiting") {
  Cold cold;
  cold.run([&](Peer& peer, Node& node) {
    TestFile other_file;
    other_file.id = 8;
    REQUIRE_OK(peer.put(other_file, pattern(1000, 2)));
    cold.executor.hold(1);
    const auto fresh = pattern(100, 6);
    const auto slow = peer.start(peer.overwrite_request(7, 3, 1, fresh));
    cold.wait_for_work(peer);
    const auto behind = peer.start(peer.overwrite_request(7, 3, 1, pattern(100, 7)));  // of the same file: in order
    REQUIRE_OK(peer.overwrite(8, 3, 1, pattern(100, 3)));
    CHECK(cold.executor.held() == 1);
    CHECK(peer.read(7, 3, 1).value() == cold.bytes.substr(300, 100));
    cold.executor.release();
    REQUIRE_OK(peer.wait(slow));
    REQUIRE_OK(peer.wait(behind));
    cold.bytes.replace(300, 100, pattern(100, 7));
    CHECK(peer.read(7, 0, 130).value() == cold.bytes);
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 130).value() == cold.bytes);
    CHECK(peer.read(8, 3, 1).value() == pattern(100, 3));
  });
}

TEST_CASE("variable records are overwritten as from memory where index and data have to be waited for") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put_variable(variable(8), {"one", "", "three", std::string(9000, 'x')}));
    make_cold(node, "");
    REQUIRE_OK(peer.overwrite(8, 0, 3, variable_body({"ONE", "", "THREE"})));
    REQUIRE_OK(peer.overwrite(8, 1, 1, variable_body({""})));
    CHECK(code_of(peer.overwrite(8, 0, 1, variable_body({"four"}))) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(8, 9, 1, variable_body({"four"}))) == Code::kEndOfFile);
    CHECK(peer.read(8, 0, 3).value() == variable_body({"ONE", "", "THREE"}));
  });
}
