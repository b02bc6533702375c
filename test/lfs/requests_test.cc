// Requests that ask for what cannot be, field by field: each is refused by what is wrong with it, and changes nothing.
#include "appender.h"

#include "pif/base/limits.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

using Fill = std::function<void(proto::Envelope&)>;

Code asked(Peer& peer, std::uint64_t file, std::uint32_t rights, const Fill& fill, const std::string& body = {}) {
  auto packet = peer.request(file, rights);
  fill(packet.envelope);
  packet.body = buffer_of(body);
  return code_of(peer.call(std::move(packet)));
}

// A file of which this node is the second of two LFSs.
TestFile second_of_two(std::uint64_t id) {
  TestFile file;
  file.id = id;
  file.nodes = {2, kNode};
  file.index = 1;
  return file;
}

}  // namespace

TEST_CASE("who knows a file is told what it takes here; of 1,000 at once") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(5000, 1)));
    REQUIRE_OK(peer.put_variable(variable(8), {"one", "", "three"}));
    const auto stored = [&](const std::vector<std::uint64_t>& files) -> Result<proto::StoredBytesReply> {
      net::Packet packet;
      for (const auto file : files) packet.envelope.mutable_stored_bytes()->add_files(file);
      PIF_TRY_VALUE(const auto reply, peer.call(std::move(packet)));
      return reply.envelope.stored_bytes_reply();
    };
    const auto reply = stored({8, 99, 7});
    REQUIRE_OK(reply);
    REQUIRE((reply->rows_size() == 3 && reply->parity_size() == 3));
    CHECK((reply->rows(0) >= 8 + 24 && reply->rows(1) == 0 && reply->rows(2) >= 5000));
    CHECK((reply->parity(0) == 0 && reply->parity(1) == 0 && reply->parity(2) == 0));
    CHECK(stored(std::vector<std::uint64_t>(1000, 7)));
    CHECK(code_of(stored(std::vector<std::uint64_t>(1001, 7))) == Code::kTooLarge);
  });
}

TEST_CASE("reads of nothing, past the end, or of what these records have not, are refused") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    REQUIRE_OK(peer.put_variable(variable(8), {"one", "", "three"}));
    CHECK(code_of(peer.read(7, 0, 0)) == Code::kInvalid);
    CHECK(code_of(peer.read(7, 5, 1)) == Code::kEndOfFile);
    CHECK(code_of(peer.read(9, 0, 1)) == Code::kNotFound);
    const auto bytes = [](std::uint64_t offset, std::uint64_t count) {
      return [=](proto::Envelope& e) {
        e.mutable_read_bytes()->set_file(7);
        e.mutable_read_bytes()->set_offset(offset);
        e.mutable_read_bytes()->set_bytes(count);
      };
    };
    CHECK(asked(peer, 7, kMayRead, bytes(0, 500)) == Code::kOk);
    CHECK(asked(peer, 7, kMayRead, bytes(0, 0)) == Code::kInvalid);
    CHECK(asked(peer, 7, kMayRead, bytes(500, 1)) == Code::kEndOfFile);
    const auto offsets = [](std::uint64_t file, std::uint64_t row, int times) {
      return [=](proto::Envelope& e) {
        e.mutable_offsets()->set_file(file);
        for (int i = 0; i < times; ++i) e.mutable_offsets()->add_rows(row);
      };
    };
    CHECK(asked(peer, 8, kMayRead, offsets(8, 3, 1)) == Code::kOk);
    CHECK(asked(peer, 8, kMayRead, offsets(8, 4, 1)) == Code::kEndOfFile);
    CHECK(asked(peer, 8, kMayRead, offsets(8, 0, 20'000)) == Code::kTooLarge);
    CHECK(asked(peer, 7, kMayRead, offsets(7, 0, 1)) == Code::kInvalid);  // fixed
  });
}

TEST_CASE("a record longer than a packet is refused where packets are small, however it is asked for") {
  with_node([](Peer& peer, Node& node) {
    Peer remote(peer.self(), node, 1000, true);
    const auto later = peer.self().clock().wall_seconds() + 600;
    remote.credential = mint(node.key, Credential{SessionId(1), 1000, {1000}, later});
    TestFile file;
    file.format = Format::fixed(200 << 10);
    REQUIRE_OK(remote.put(file, pattern(400 << 10, 1)));
    REQUIRE_OK(remote.put_variable(variable(8), {"a", "b", pattern(200 << 10, 2), "d", pattern(200 << 10, 3)}));
    CHECK(code_of(peer.read(7, 0, 1)) == Code::kTooLarge);
    CHECK(code_of(peer.read(8, 2, 1)) == Code::kTooLarge);
    CHECK(code_of(peer.read(8, 2, 2, 2)) == Code::kTooLarge);
    CHECK(peer.read(8, 0, 2, 2).value() == variable_body({"a"}));  // as far as it fits
    CHECK(remote.read(8, 2, 2, 2).value() == variable_body({pattern(200 << 10, 2), pattern(200 << 10, 3)}));
  });
}

TEST_CASE(
    "only LFS 0 of a file knows its length, reserves and finishes appends; one without records has none anywhere") {
  with_node([](Peer& peer, Node&) {
    const auto file = second_of_two(7);
    REQUIRE_OK(peer.write(file, 0, 1, pattern(100, 1)));
    REQUIRE_OK(peer.seal(file, 1, 100, {}, FileLength{2, 200}));
    REQUIRE_OK(peer.settle({7}, {}));
    const auto length = [](std::uint64_t id) { return [id](proto::Envelope& e) { e.mutable_length()->set_file(id); }; };
    CHECK(asked(peer, 7, kMayRead, length(7)) == Code::kInvalid);
    CHECK(asked(peer, 8, kMayRead, length(8)) == Code::kOk);
    CHECK(asked(peer, 8, kMayWrite, length(8)) == Code::kBadCapability);
    CHECK(asked(peer, 7, kMayWrite, [](auto& e) { e.mutable_reserve()->set_file(7); }) == Code::kInvalid);
    CHECK(asked(peer, 7, kMayWrite, [](auto& e) { e.mutable_append_done()->set_file(7); }) == Code::kInvalid);
    CHECK(asked(peer, 9, kMayWrite, [](auto& e) { e.mutable_append_done()->set_file(9); }) == Code::kNotFound);
    const auto cancel = [](auto& e) { e.mutable_append_cancel()->set_file(7); };
    CHECK(asked(peer, 7, kMayWrite, cancel) == Code::kOk);
    CHECK(asked(peer, 7, kMayRead, cancel) == Code::kBadCapability);
    CHECK(asked(peer, 9, kMayWrite, [](auto& e) { e.mutable_reserve()->set_file(9); }) == Code::kNotFound);
    const auto elsewhere = [](auto& e) {
      e.mutable_reserve()->set_file(9);
      *e.mutable_reserve()->mutable_shape() = second_of_two(10).shape();
    };
    CHECK(asked(peer, 9, kMayWrite, elsewhere) == Code::kInvalid);
  });
}

TEST_CASE("rows to append that do not fit the file, its records or the reserved range are refused") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(550, 1)));
    REQUIRE_OK(peer.put_variable(variable(8), {"one"}));
    using Change = std::function<void(proto::AppendRows&)>;
    const auto rows = [&](std::uint64_t file, const std::string& body, const Change& change) {
      return asked(
          peer, file, kMayWrite,
          [&](proto::Envelope& e) {
            auto& ask = *e.mutable_append_rows();
            ask.set_file(file);
            ask.set_first(6);
            ask.set_count(1);
            ask.set_generation(1);
            ask.mutable_base()->set_records(6);
            ask.mutable_base()->set_bytes(550);
            change(ask);
          },
          body);
    };
    const auto row = pattern(100, 2);
    CHECK(rows(7, row, [](auto& a) { a.set_count(0); }) == Code::kInvalid);
    CHECK(rows(7, row, [](auto& a) { a.set_first(INT64_MAX); }) == Code::kTooLarge);
    CHECK(rows(7, row, [](auto& a) { a.clear_base(); }) == Code::kInvalid);
    CHECK(rows(7, row, [](auto& a) { a.clear_generation(); }) == Code::kInvalid);
    CHECK(rows(7, row, [](auto& a) { a.mutable_base()->set_bytes(1000); }) == Code::kInvalid);
    CHECK(rows(7, row, [](auto& a) { a.set_within(100); }) == Code::kInvalid);
    CHECK(rows(7, "", [](auto&) {}) == Code::kInvalid);
    CHECK(rows(7, pattern(101, 2), [](auto&) {}) == Code::kInvalid);
    CHECK(rows(8, variable_body({"two"}), [](auto& a) { a.set_within(1); }) == Code::kInvalid);
    CHECK(rows(8, variable_body({"two"}) + "x", [](auto&) {}) == Code::kInvalid);
    CHECK(rows(9, row, [](auto&) {}) == Code::kNotFound);
    CHECK(rows(9, row, [](auto& a) { *a.mutable_shape() = TestFile{}.shape(); }) == Code::kInvalid);  // of file 7
    CHECK(peer.read(7, 0, 100).value() == pattern(550, 1));
  });
}

TEST_CASE("an append that overlaps what is there in part is refused; one that is there wholly was repeated") {
  for (const bool is_fixed : {true, false}) {
    with_node([&](Peer& peer, Node& node) {
      auto file = variable(7);
      if (is_fixed) file.format = Format::fixed(5);
      const auto body = [&](const std::vector<std::string>& rows) {
        std::string bytes;
        for (const auto& row : rows) bytes += row;
        return is_fixed ? bytes : variable_body(rows);
      };
      Appender appender(peer.self(), {&node}, file);
      const auto grant = appender.reserve(4, 20).value();
      REQUIRE_OK(appender.rows(0, grant, 0, 2, body({"one..", "two.."})));
      REQUIRE_OK(appender.rows(0, grant, 0, 2, body({"one..", "two.."})));
      REQUIRE_OK(appender.rows(0, grant, 1, 1, body({"two.."})));
      CHECK(code_of(appender.rows(0, grant, 1, 2, body({"two..", "three"}))) == Code::kInvalid);
      REQUIRE_OK(appender.rows(0, grant, 2, 2, body({"three", "four."})));
      REQUIRE_OK(appender.done(grant));
      CHECK(appender.length() == FileLength{4, 20});
    });
  }
}

TEST_CASE("a file that was begun is written and sealed as it was begun only") {
  with_node([](Peer& peer, Node&) {
    const TestFile file;
    REQUIRE_OK(peer.write(file, 0, 5, pattern(500, 1)));
    const auto write = [&](const std::function<void(proto::ComponentShape&)>& change) {
      return asked(
          peer, 7, kMayCreate,
          [&](proto::Envelope& e) {
            *e.mutable_write()->mutable_shape() = file.shape();
            e.mutable_write()->set_first(5);
            e.mutable_write()->set_count(1);
            change(*e.mutable_write()->mutable_shape());
          },
          pattern(100, 2));
    };
    CHECK(write([](auto& s) { s.mutable_format()->set_kind(2); }) == Code::kInvalid);
    CHECK(write([](auto& s) { s.mutable_format()->set_record_length(50); }) == Code::kInvalid);
    CHECK(write([](auto& s) { s.mutable_format()->set_delimiter(9); }) == Code::kInvalid);
    CHECK(write([](auto& s) { s.set_index(1); }) == Code::kInvalid);
    CHECK(write([](auto& s) { s.mutable_layout()->add_nodes(2); }) == Code::kInvalid);
    CHECK(write([](auto& s) { s.mutable_layout()->add_bevies(1); }) == Code::kInvalid);
    CHECK(code_of(peer.seal(file, 6, 600)) == Code::kInvalid);
    CHECK(code_of(peer.seal(file, 5, 499)) == Code::kInvalid);
    CHECK(code_of(peer.seal(second_of_two(7), 5, 500)) == Code::kInvalid);
    REQUIRE_OK(peer.seal(file, 5, 500));
    REQUIRE_OK(peer.seal(file, 5, 500));  // repeated
    CHECK(code_of(peer.seal(file, 4, 400)) == Code::kExists);
    CHECK(code_of(peer.seal(file, 5, 499)) == Code::kExists);
    CHECK(write([](auto&) {}) == Code::kExists);
    CHECK(peer.read(7, 0, 9).value() == pattern(500, 1));
  });
}

TEST_CASE("an LFS that got no row seals an empty component, but not one of rows that it never had") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    file.nodes = {kNode, 2};
    CHECK(code_of(peer.seal(file, 1, 100, {}, FileLength{2, 200})) == Code::kNotFound);
    auto shape = file;
    shape.index = 9;
    CHECK(code_of(peer.seal(shape, 0, 0)) == Code::kInvalid);
    REQUIRE_OK(peer.seal(file, 0, 0));
    CHECK(node.check().value().components == 1);
  });
}

TEST_CASE("a length of the whole file whose records and bytes do not fit each other seals nothing") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.attach_new(TestFile{}));
    CHECK(code_of(peer.seal(TestFile{}, 5, 0, component::Tail{5, 0, 0, 0}, FileLength{5, 0})) == Code::kInvalid);
    // So long that the length of its records, the last one whole, has no 64 bits.
    const auto huge = fixed_file_length(100, UINT64_MAX);
    CHECK(code_of(peer.seal(TestFile{}, huge.records, huge.bytes, component::Tail{huge.records, huge.bytes, 0, 0},
                            huge)) == Code::kInvalid);
    REQUIRE_OK(peer.seal(TestFile{}, 0, 0));
  });
}

// Files as a writer through descriptors may leave them: what it says of them is compared with what they are.
TEST_CASE("what was written through descriptors is sealed only if its files are as long as is said") {
  for (const char* suffix : {".dat", ".sum", ".idx", ".isum"}) {
    with_node([&](Peer& peer, Node& node) {
      const auto file = variable(7);
      std::vector<std::string> rows(600, "123456789");
      REQUIRE_OK(peer.write(file, 0, rows.size(), variable_body(rows)));
      REQUIRE_OK(peer.attach_new(file));  // its rows are in the files now
      const auto path = component::stem(node.root(), FileId(7)) + suffix;
      auto harmed = component::make_memory_storage(node.disk)->open(path, component::OpenMode::kWrite).value();
      const auto size = harmed->size().value();
      const component::Tail tail{600, 5400, 1, 2};
      REQUIRE_OK(harmed->resize(size - 1));
      CHECK(code_of(peer.seal(file, 600, 5400, tail)) == Code::kBusy);  // we have it open
      harmed.reset();
      CHECK(code_of(peer.seal(file, 600, 5400, tail)) == Code::kInvalid);
    });
  }
}

TEST_CASE("settling, listing and checking say what cannot be done, and list what cannot be read") {
  with_node([](Peer& peer, Node& node) {
    for (std::uint64_t id = 7; id < 10; ++id) {
      TestFile file;
      file.id = id;
      REQUIRE_OK(peer.put(file, pattern(20'000, 1)));
    }
    TestFile open;
    open.id = 11;
    REQUIRE_OK(peer.write(open, 0, 1, pattern(100, 1)));
    const auto check = [](std::uint64_t id) {
      return [id](proto::Envelope& e) { e.mutable_check_component()->set_file(id); };
    };
    CHECK(asked(peer, 0, kMayManage, check(7)) == Code::kOk);
    CHECK(asked(peer, 0, kMayManage, check(10)) == Code::kNotFound);
    CHECK(asked(peer, 0, kMayManage, check(11)) == Code::kInvalid);
    node.disk->flip_bit(component::stem(node.root(), FileId(8)) + ".dat", 5000, 1);
    auto request = peer.request(0, kMayManage);
    request.envelope.mutable_check_component()->set_file(8);
    request.envelope.mutable_check_component()->set_sums(true);
    const auto checked = peer.call(std::move(request)).value().envelope.check_component_reply();
    CHECK(checked.damages_size() == 1);
    CHECK(checked.bytes() == 20'000);
    const auto list = [&](std::uint64_t after, std::uint32_t limit) {
      auto packet = peer.request(0, kMayManage);
      packet.envelope.mutable_list_components()->set_after(after);
      packet.envelope.mutable_list_components()->set_limit(limit);
      return peer.call(std::move(packet)).value().envelope.list_components_reply();
    };
    CHECK(list(0, 2).more());
    CHECK(list(0, 2).components(1).shape().file() == 8);
    CHECK_FALSE(list(8, 2).more());
    CHECK(list(8, 0).components_size() == 1);
    CHECK(list(UINT64_MAX, 2).components_size() == 0);
    CHECK_FALSE(list(UINT64_MAX, 2).more());
    auto store = kv::open_memory(node.catalogue);
    auto transaction = store->write().value();
    REQUIRE_OK(transaction->put(0, std::string("\0\0\0\0\0\0\0\x09", 8), "rotten"));
    REQUIRE_OK(transaction->commit());
    const auto rotten = list(8, 2);
    REQUIRE(rotten.components_size() == 1);
    CHECK(rotten.components(0).shape().file() == 9);
    CHECK(rotten.components(0).rows() == 0);
  });
}

TEST_CASE("a removal of what cannot be looked up says so, and does not count as done") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    node.kill();
    auto store = kv::open_memory(node.catalogue);
    auto transaction = store->write().value();
    REQUIRE_OK(transaction->put(0, std::string("\0\0\0\0\0\0\0\x07", 8), "rotten"));
    REQUIRE_OK(transaction->commit());
    node.start();
    CHECK(code_of(peer.settle({}, {7})) == Code::kCorrupt);
    TestFile open;
    open.id = 8;
    REQUIRE_OK(peer.write(open, 0, 1, pattern(100, 1)));
    REQUIRE_OK(peer.settle({}, {8}));
    CHECK(code_of(peer.seal(open, 1, 100)) == Code::kStaleFile);
    open.id = 9;
    REQUIRE_OK(peer.write(open, 0, 1, pattern(100, 1)));
    REQUIRE_OK(peer.settle({9}, {}));  // without what is not sealed
    CHECK(code_of(peer.seal(open, 1, 100)) == Code::kNotFound);
  });
}

TEST_CASE("overwrites in part are of one fixed record, inside of it") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(550, 1)));
    REQUIRE_OK(peer.put_variable(variable(8), {"one", "three"}));
    CHECK(code_of(peer.overwrite(7, 0, 2, "abc", 1, 3)) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(7, 0, 1, "abc", 1, 2)) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(7, 5, 1, pattern(60, 2), 0, 60)) == Code::kInvalid);  // it has 50
    CHECK(code_of(peer.overwrite(7, 5, 1, "abc", 48, 3)) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(8, 0, 1, variable_body({"ONE"}), 1, 0)) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(8, 0, 1, variable_body({"ONE"}), 0, 1)) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(8, 0, 1, "x")) == Code::kInvalid);
    CHECK(code_of(peer.overwrite(9, 0, 1, pattern(100, 1))) == Code::kNotFound);
    CHECK(code_of(peer.flush()) == Code::kOk);
    CHECK(asked(peer, 7, kMayRead, [](auto& e) { e.mutable_flush(); }) == Code::kBadCapability);
    CHECK(asked(peer, 7, kMayWrite, [](auto& e) { e.mutable_flush(); }) == Code::kBadCapability);
    CHECK(asked(peer, 0, kMayManage, [](auto& e) { e.mutable_flush(); }) == Code::kOk);
    CHECK(peer.read(7, 0, 9).value() == pattern(550, 1));
  });
}
