// The life of a component: filled by message or through descriptors, sealed, committed, removed; and crashes in
// between.
#include "node.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

std::string data_path(const Node& node, std::uint64_t file, const char* suffix) {
  return component::stem(node.root(), FileId(file)) + suffix;
}
bool exists(Node& node, const std::string& path) {
  return component::make_memory_storage(node.disk)->open(path, component::OpenMode::kRead).has_value();
}

}  // namespace

TEST_CASE("fixed records written by message come back after seal, power loss and restart") {
  with_node([](Peer& peer, Node& node) {
    const TestFile file;
    const auto bytes = pattern(100 * 1000 + 30, 1);  // the last record is short
    REQUIRE_OK(peer.write(file, 500, 501, bytes.substr(50000)));
    REQUIRE_OK(peer.write(file, 0, 500, bytes.substr(0, 50000)));
    REQUIRE_OK(peer.write(file, 100, 100, bytes.substr(10000, 10000)));  // again
    REQUIRE_OK(peer.seal(file, 1001, bytes.size()));
    node.crash();
    node.start();
    CHECK(peer.read(file.id, 0, 2000).value() == bytes);
    CHECK(peer.read(file.id, 1000, 1).value() == bytes.substr(100000));
    CHECK(peer.read(file.id, 3, 3, 7).value() ==
          bytes.substr(300, 100) + bytes.substr(1000, 100) + bytes.substr(1700, 100));
    CHECK(peer.read(file.id, 990, 5, 10).value() == bytes.substr(99000, 100) + bytes.substr(100000));
    CHECK(code_of(peer.read(file.id, 1001, 1)) == Code::kEndOfFile);
  });
}

// Rows that were left out get their sums when the component is sealed: on the loop, while everybody waits.
TEST_CASE("a row absurdly far past the others is refused, so that no seal holds the LFS up") {
  with_node([](Peer& peer, Node&) {
    const TestFile file;
    const auto row = pattern(100, 1);
    for (const std::uint64_t far : {std::uint64_t{1} << 30, std::uint64_t{1} << 45, std::uint64_t{1} << 56})
      CHECK(code_of(peer.write(file, far, 1, row)) == Code::kTooLarge);
    REQUIRE_OK(peer.write(file, 2, 1, row));
    REQUIRE_OK(peer.seal(file, 3, 300));
    CHECK(peer.read(file.id, 0, 3).value() == std::string(200, '\0') + row);
  });
}

TEST_CASE("variable records come back with their lengths, in batches and at a stride") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    file.format = Format::variable();
    std::vector<std::string> rows;
    for (unsigned i = 0; i < 2000; ++i) rows.push_back(pattern(i % 37, i));
    const auto part = [&](std::size_t a, std::size_t b) {
      return variable_body(
          {rows.begin() + static_cast<std::ptrdiff_t>(a), rows.begin() + static_cast<std::ptrdiff_t>(b)});
    };
    REQUIRE_OK(peer.write(file, 0, 1200, part(0, 1200)));
    CHECK(code_of(peer.write(file, 1500, 500, part(1500, 2000))) == Code::kRetry);  // in order only
    REQUIRE_OK(peer.write(file, 1000, 1000, part(1000, 2000)));                     // overlaps what is there
    REQUIRE_OK(peer.write(file, 0, 1200, part(0, 1200)));                           // a late repetition
    std::uint64_t bytes = 0;
    for (const auto& row : rows) bytes += row.size();
    REQUIRE_OK(peer.seal(file, 2000, bytes));
    node.crash();
    node.start();
    CHECK(peer.read(file.id, 0, 5000).value() == part(0, 2000));
    CHECK(peer.read(file.id, 1234, 1).value() == part(1234, 1235));
    CHECK(peer.read(file.id, 10, 3, 500).value() == variable_body({rows[10], rows[510], rows[1010]}));
  });
}

TEST_CASE("a read at a stride ends where it has read enough, however little that gave") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    file.format = Format::fixed(1);
    const std::string bytes = pattern(8u << 20, 1);
    for (std::size_t at = 0; at < bytes.size(); at += 65536)
      REQUIRE_OK(peer.write(file, at, 65536, bytes.substr(at, 65536)));
    REQUIRE_OK(peer.seal(file, bytes.size(), bytes.size()));
    std::string expected;
    for (std::size_t at = 5; at < bytes.size(); at += 40'000) expected += bytes[at];
    std::string got;
    for (unsigned reads = 0; got.size() < expected.size(); ++reads) {
      REQUIRE(reads < 3);
      const auto some = peer.read(file.id, 5 + got.size() * 40'000, 1000, 40'000).value();
      CHECK(some.size() <= (4u << 20) / 40'000);
      got += some;
    }
    CHECK((got == expected));
    TestFile lines = variable(8);  // a long row behind each short one
    const std::string row = pattern(5000, 2);
    for (std::uint64_t i = 0; i < 2400; i += 2) REQUIRE_OK(peer.write(lines, i, 2, variable_body({"a", row})));
    REQUIRE_OK(peer.seal(lines, 2400, 1200 * (row.size() + 1)));
    const auto some = peer.read(lines.id, 0, 2400, 2).value();
    CHECK(some.size() >= 5);
    CHECK(some.size() < 1200 * 5);
  });
}

TEST_CASE("a read stops at the limit of a bulk message, and one longer record comes whole") {
  with_node([](Peer& local, Node& node) {
    Peer peer(local.self(), node, 1000, true);  // through a Unix socket messages are smaller
    peer.credential = mint(node.key, Credential{SessionId(1), 1000, {1000}, local.self().clock().wall_seconds() + 600});
    TestFile file;
    file.format = Format::fixed(600 << 10);
    const auto bytes = pattern(3 * (600 << 10), 5);
    REQUIRE_OK(peer.put(file, bytes));
    CHECK(peer.read(file.id, 1, 2).value() == bytes.substr(600 << 10, 600 << 10));
    TestFile large;
    large.id = 8;
    large.format = Format::variable();
    const std::vector<std::string> rows = {pattern(10, 1), pattern(3 << 20, 2), pattern(20, 3)};
    REQUIRE_OK(peer.put_variable(large, rows));
    CHECK(peer.read(8, 0, 3).value() == variable_body({rows[0]}));
    CHECK(peer.read(8, 1, 2).value() == variable_body({rows[1]}));
    CHECK(code_of(local.read(8, 1, 1)) == Code::kTooLarge);
    CHECK(local.read(8, 2, 1).value() == variable_body({rows[2]}));
  });
}

TEST_CASE("a component written through descriptors is sealed when its writer is gone, not before") {
  with_node([](Peer& peer, Node& node) {
    const TestFile file;
    const auto bytes = pattern(100 * 777, 3);
    const auto storage = component::make_memory_storage(node.disk);
    auto reply = peer.attach_new(file).value();
    std::optional files = component::adopt(*storage, file.format, std::move(reply.handles)).value();
    std::optional<component::Writer> writer;
    writer.emplace(component::Shape::of(FileId(file.id), file.format, 0), component::Tail(), *files);
    REQUIRE_OK(writer->write_rows(0, 777, {reinterpret_cast<const std::byte*>(bytes.data()), 100}));
    const auto tail = writer->finish().value();
    CHECK(code_of(peer.seal(file, 777, bytes.size(), tail)) == Code::kBusy);
    writer.reset();
    files.reset();
    CHECK(code_of(peer.seal(file, 776, bytes.size() - 100, tail)) == Code::kInvalid);
    REQUIRE_OK(peer.seal(file, 777, bytes.size(), tail));
    REQUIRE_OK(peer.seal(file, 777, bytes.size(), tail));  // a repeated request
    CHECK(code_of(peer.attach_new(file)) == Code::kExists);
    node.crash();
    node.start();
    auto opened = peer.attach(file.id).value();
    auto mine = component::adopt(*storage, file.format, std::move(opened.handles)).value();
    std::string read(bytes.size(), '\0');
    const auto& state = opened.envelope.attach_reply().state();
    const component::Reader reader(component::Shape::of(FileId(file.id), file.format, 0),
                                   {state.rows(), state.bytes(), state.data_tail_sum(), state.index_tail_sum()}, mine);
    REQUIRE_OK(reader.read_bytes(0, std::as_writable_bytes(std::span(read))));
    CHECK(read == bytes);
    CHECK_FALSE(mine.data->write(0, std::as_bytes(std::span(read))).has_value());
  });
}

TEST_CASE("a seal waits for who lets go of the component soon, and nobody gets it for writing meanwhile") {
  with_node([](Peer& peer, Node&) {
    const TestFile file;
    REQUIRE_OK(peer.write(file, 0, 5, pattern(500, 1)));
    std::optional writers =
        peer.attach_new(file).value().handles;  // a worker being started has them, too, for a moment
    auto request = peer.request(file.id, kMayCreate | kMayRead);
    auto* seal = request.envelope.mutable_seal();
    *seal->mutable_shape() = file.shape();
    seal->set_rows(5);
    seal->set_bytes(500);
    seal->mutable_file()->set_records(5);
    seal->mutable_file()->set_bytes(500);
    const auto sealing = peer.start(std::move(request));
    peer.self().pause(std::chrono::seconds(2));
    CHECK(code_of(peer.attach_new(file)) == Code::kBusy);
    CHECK(code_of(peer.write(file, 0, 5, pattern(500, 2))) == Code::kBusy);
    writers.reset();
    REQUIRE_OK(peer.wait(sealing));
    CHECK(peer.read(file.id, 0, 5).value() == pattern(500, 1));
  });
}

TEST_CASE("a file that is removed while its seal waits is gone") {
  with_node([](Peer& peer, Node& node) {
    const TestFile file;
    const auto writers = peer.attach_new(file).value().handles;
    auto request = peer.request(file.id, kMayCreate | kMayRead);
    *request.envelope.mutable_seal()->mutable_shape() = file.shape();
    const auto sealing = peer.start(std::move(request));
    peer.self().pause(std::chrono::seconds(1));
    REQUIRE_OK(peer.settle({}, {file.id}));
    CHECK(code_of(peer.wait(sealing)) == Code::kStaleFile);
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("an open component is gone after a crash, a sealed one stays, and its seal fails or holds accordingly") {
  with_node([](Peer& peer, Node& node) {
    TestFile open;
    TestFile sealed;
    sealed.id = 8;
    REQUIRE_OK(peer.write(open, 0, 5, pattern(500, 1)));
    REQUIRE_OK(peer.write(sealed, 0, 5, pattern(500, 2)));
    REQUIRE_OK(peer.seal(sealed, 5, 500));
    node.restart();  // the process only: the bytes of the open one are still on the disk
    CHECK(code_of(peer.seal(open, 5, 500)) == Code::kNotFound);
    CHECK_FALSE(exists(node, data_path(node, 7, ".dat")));
    CHECK(peer.read(8, 0, 5).value() == pattern(500, 2));
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("whatever call of the disk fails in a seal, a crash leaves the component whole or not at all") {
  for (unsigned failing = 0; failing < 40; ++failing) {
    bool reached = false;
    with_node([&](Peer& peer, Node& node) {
      const TestFile file;
      const auto bytes = pattern(20000, failing);
      REQUIRE_OK(peer.write(file, 0, 200, bytes));
      unsigned calls = 0;
      node.disk->set_fault([&](std::string_view, std::string_view) {
        reached = reached || calls == failing;
        return calls++ == failing ? Code::kIo : Code::kOk;
      });
      const auto sealed = peer.seal(file, 200, bytes.size());
      node.disk->set_fault({});
      node.crash();
      node.start();
      const auto read = peer.read(file.id, 0, 200);
      INFO("call " << failing);
      if (sealed) CHECK(read.value() == bytes);
      if (!sealed) CHECK(code_of(read) == Code::kNotFound);
      CHECK(node.check().value().damages.empty());
    });
    if (!reached) break;
  }
}

TEST_CASE("a removed file is gone from catalogue and disk, and says that it was removed") {
  with_node([](Peer& peer, Node& node) {
    const TestFile file;
    REQUIRE_OK(peer.put(file, pattern(500, 1)));
    REQUIRE_OK(peer.settle({}, {file.id, 4711}));  // one that is not here is no error
    CHECK(code_of(peer.read(file.id, 0, 1)) == Code::kStaleFile);
    CHECK(code_of(peer.write(file, 0, 1, pattern(100, 1))) == Code::kStaleFile);
    CHECK_FALSE(exists(node, data_path(node, 7, ".dat")));
    CHECK_FALSE(exists(node, data_path(node, 7, ".sum")));
    node.crash();
    node.start();
    CHECK(code_of(peer.read(file.id, 0, 1)) == Code::kNotFound);
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("what comes after a file was committed without rows here makes no component") {
  with_node([](Peer& peer, Node& node) {
    const TestFile file;
    REQUIRE_OK(peer.settle({file.id}, {}));
    CHECK(code_of(peer.write(file, 0, 1, pattern(100, 1))) == Code::kStaleFile);
    CHECK_FALSE(exists(node, data_path(node, 7, ".dat")));
    CHECK(code_of(peer.read(file.id, 0, 1)) == Code::kNotFound);
    TestFile begun;  // and what was there of it, which was not sealed, goes
    begun.id = 8;
    REQUIRE_OK(peer.write(begun, 0, 1, pattern(100, 1)));
    REQUIRE_OK(peer.settle({begun.id}, {}));
    CHECK(code_of(peer.write(begun, 0, 1, pattern(100, 1))) == Code::kStaleFile);
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("a seal that does not fit the file's length, and a component for another node, are refused") {
  with_node([](Peer& peer, Node&) {
    TestFile wide;
    wide.nodes = {kNode, 2};
    REQUIRE_OK(peer.write(wide, 0, 5, pattern(500, 1)));
    CHECK(code_of(peer.seal(wide, 5, 500, {}, FileLength{11, 1100})) == Code::kInvalid);  // 6 of 11 rows belong here
    CHECK(code_of(peer.seal(wide, 5, 500, {}, FileLength{9, 850})) == Code::kInvalid);    // record 8 is short, and here
    REQUIRE_OK(peer.seal(wide, 5, 500, {}, FileLength{10, 930}));  // record 9 is short, elsewhere
    TestFile elsewhere;
    elsewhere.id = 9;
    elsewhere.nodes = {2, kNode};
    CHECK(code_of(peer.write(elsewhere, 0, 1, pattern(100, 1))) == Code::kInvalid);
  });
}

TEST_CASE("malformed requests get precise errors, and the LFS goes on") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    CHECK(code_of(peer.write(file, 0, 0, "")) == Code::kInvalid);
    CHECK(code_of(peer.write(file, 0, 2, pattern(100, 1))) == Code::kInvalid);  // one record for two
    CHECK(code_of(peer.write(file, 0, 1, pattern(101, 1))) == Code::kInvalid);
    CHECK(code_of(peer.write(file, UINT64_MAX / 50, 1, pattern(100, 1))) == Code::kTooLarge);
    CHECK(code_of(peer.write(file, 0, UINT64_MAX, pattern(100, 1))) == Code::kInvalid);
    file.format = Format::variable();
    file.id = 8;
    CHECK(code_of(peer.write(file, 0, UINT64_MAX / 4 + 2, pattern(100, 1))) == Code::kInvalid);
    CHECK(code_of(peer.write(file, 0, 1, variable_body({"ab"}) + "c")) == Code::kInvalid);
    file.id = 9;
    file.format = Format::fixed(0);
    CHECK(code_of(peer.write(file, 0, 1, pattern(100, 1))) == Code::kInvalid);
    net::Packet stat = peer.request(0, kMayManage);
    stat.envelope.mutable_stat();
    CHECK(code_of(peer.call(std::move(stat))) == Code::kUnsupported);
    CHECK(code_of(peer.call(peer.request(7, kMayRead))) ==
          Code::kUnsupported);  // an operation of a newer version looks so
    net::Packet hello;
    hello.envelope.mutable_hello();
    const auto said = peer.call(std::move(hello)).value();
    CHECK(said.envelope.hello_reply().node() == "lfs0");
    CHECK(said.envelope.hello_reply().cluster() == "c0ffee");
    CHECK(said.envelope.hello_reply().uid() == 1000);
    CHECK(said.envelope.hello_reply().window_bytes() > 0);
    CHECK(said.envelope.hello_reply().window_requests() == 1024);
  });
}

TEST_CASE("a reply that nobody waits for is not answered, of whatever operation it is") {
  with_node([](Peer& peer, Node&) {
    const auto answer_to = [&](const std::function<void(proto::Envelope&)>& fill) {
      net::Packet stray;
      fill(stray.envelope);
      return code_of(peer.call(std::move(stray)));
    };
    CHECK(answer_to([](proto::Envelope& e) { e.mutable_check_component_reply(); }) == Code::kTimeout);
    CHECK(answer_to([](proto::Envelope& e) { e.mutable_read_reply(); }) == Code::kTimeout);
    CHECK(answer_to([](proto::Envelope& e) { e.mutable_stat_reply(); }) == Code::kTimeout);
    CHECK(answer_to([](proto::Envelope& e) { e.mutable_hello(); }) == Code::kOk);
  });
}

TEST_CASE("a disk at its reserve takes no new data, says how much is left, and goes on reading") {
  with_node([](Peer& peer, Node& node) {
    const TestFile file;
    REQUIRE_OK(peer.put(file, pattern(500, 1)));
    node.disk->set_capacity(1100 << 10);
    TestFile other;
    other.id = 8;
    const auto refused = peer.write(other, 0, 1000, pattern(100000, 1));
    REQUIRE(code_of(refused) == Code::kNoSpace);
    CHECK(refused.error().text.find("/lfs0 has 1.1 MiB free, and keeps the last 1.0 MiB") != std::string::npos);
    CHECK(refused.error().text.find("remove files") != std::string::npos);
    CHECK(refused.error().node == "lfs0");
    node.disk->set_capacity(1000 << 10);
    CHECK(code_of(peer.attach_new(other)) == Code::kNoSpace);
    CHECK(peer.read(file.id, 0, 5).value() == pattern(500, 1));
  });
}

TEST_CASE("a flipped byte is an error that names file, rows and node; other files do not suffer") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    TestFile other;
    other.id = 8;
    REQUIRE_OK(peer.put(file, pattern(20000, 1)));
    REQUIRE_OK(peer.put(other, pattern(20000, 2)));
    node.disk->flip_bit(data_path(node, 7, ".dat"), 4321, 3);
    const auto read = peer.read(7, 40, 10);
    REQUIRE(code_of(read) == Code::kCorrupt);
    CHECK(read.error().node == "lfs0");
    CHECK(read.error().text.find("file 7") != std::string::npos);
    CHECK(read.error().text.find("row") != std::string::npos);
    CHECK(peer.read(7, 100, 10).value() == pattern(20000, 1).substr(10000, 1000));
    CHECK(peer.read(8, 0, 200).value() == pattern(20000, 2));
  });
}

TEST_CASE("ids, bytes and offsets can be asked for one by one") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    file.format = Format::lines();
    REQUIRE_OK(peer.put_variable(file, {"one\n", "\n", "three\n"}));
    auto bytes = peer.request(7, kMayRead);
    bytes.envelope.mutable_read_bytes()->set_file(7);
    bytes.envelope.mutable_read_bytes()->set_offset(2);
    bytes.envelope.mutable_read_bytes()->set_bytes(100);
    CHECK(bytes_of(peer.call(std::move(bytes)).value().body) == "e\n\nthree\n");
    auto offsets = peer.request(7, kMayRead);
    offsets.envelope.mutable_offsets()->set_file(7);
    for (const auto row : {0, 1, 2, 3}) offsets.envelope.mutable_offsets()->add_rows(static_cast<std::uint64_t>(row));
    const auto body = bytes_of(peer.call(std::move(offsets)).value().body);
    REQUIRE(body.size() == 32);
    std::uint64_t found[4];
    std::memcpy(found, body.data(), 32);
    CHECK(found[0] == 0);
    CHECK(found[1] == 4);
    CHECK(found[2] == 5);
    CHECK(found[3] == 11);
    auto list = peer.request(0, kMayManage);
    list.envelope.mutable_list_components()->set_limit(10);
    const auto listed = peer.call(std::move(list)).value().envelope.list_components_reply();
    REQUIRE(listed.components_size() == 1);
    CHECK(listed.components(0).rows() == 3);
    CHECK(listed.components(0).state() == 3);
  });
}
