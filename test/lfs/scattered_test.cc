// Components that are filled in pieces, in any order, and read back before they are sealed; pieces of committed ones.
#include "pieces.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

net::Packet write_request(Peer& peer, const proto::ComponentShape& shape, const std::vector<Piece>& pieces) {
  auto packet = peer.request(shape.file(), kMayCreate | kMayRead);
  proto::WritePieces& write = *packet.envelope.mutable_write_pieces();
  *write.mutable_shape() = shape;
  write.set_run_bytes(static_cast<std::uint32_t>(runs_of(pieces).size()));
  packet.body = buffer_of(piece_body(pieces));
  return packet;
}

Status write_pieces(Peer& peer, const TestFile& file, const std::vector<Piece>& pieces) {
  PIF_TRY(peer.call(write_request(peer, file.shape(), pieces)));
  return {};
}

// What a reply has of them; of a file being created, or of a committed one.
Result<std::string> read_pieces(Peer& peer, const TestFile& file, const std::vector<Piece>& pieces, bool creating) {
  auto packet = peer.request(file.id, creating ? kMayCreate : kMayRead);
  proto::ReadPieces& read = *packet.envelope.mutable_read_pieces();
  read.set_file(file.id);
  if (creating) *read.mutable_creating() = file.shape();
  packet.body = buffer_of(runs_of(pieces));
  PIF_TRY_VALUE(auto reply, peer.call(std::move(packet)));
  return bytes_of(reply.body);
}

Result<proto::ComponentState> seal(Peer& peer, const proto::ComponentShape& shape, std::uint64_t bytes) {
  const auto length = fixed_file_length(shape.format().record_length(), bytes);
  auto packet = peer.request(shape.file(), kMayCreate | kMayRead);
  proto::Seal& seal = *packet.envelope.mutable_seal();
  *seal.mutable_shape() = shape;
  seal.set_rows(length.records);
  seal.set_bytes(length.bytes);
  seal.mutable_file()->set_records(length.records);
  seal.mutable_file()->set_bytes(length.bytes);
  seal.set_scattered(true);
  PIF_TRY_VALUE(auto reply, peer.call(std::move(packet)));
  return reply.envelope.seal_reply().state();
}

// Its records as the LFS has them once it is committed.
std::string committed(Peer& peer, const TestFile& file, std::uint64_t bytes) {
  REQUIRE_OK(seal(peer, file.shape(), bytes));
  REQUIRE_OK(peer.settle({file.id}, {}));
  const auto read = peer.read(file.id, 0, bytes / file.format.record_length + 1);
  REQUIRE_OK(read);
  return *read;
}

std::string model_of(const std::vector<Piece>& pieces, std::size_t bytes) {
  std::string model(bytes, '\0');
  apply(model, pieces);
  return model;
}

}  // namespace

TEST_CASE("a component filled in pieces is what they say, in whatever order they came, and its sums hold") {
  with_node([](Peer& peer, Node& node) {
    const std::vector<Piece> pieces = {{50'017, lfs::test::pattern(3000, 1)},
                                       {7, lfs::test::pattern(64, 2)},
                                       {20'000, lfs::test::pattern(1, 3)},
                                       {30, lfs::test::pattern(100, 4)},
                                       {4096, lfs::test::pattern(4096, 5)}};
    for (const Piece& piece : pieces) REQUIRE_OK(write_pieces(peer, TestFile{}, {piece}));
    CHECK(committed(peer, TestFile{}, 53'017) == model_of(pieces, 53'017));
    node.kill();
    const auto report = node.check();
    REQUIRE_OK(report);
    CHECK(report->damages.empty());
  });
}

TEST_CASE("what was written in pieces is read back before it is sealed, with zeros where nobody wrote") {
  with_node([](Peer& peer, Node&) {
    const std::vector<Piece> pieces = {{10, lfs::test::pattern(300, 1)}, {9000, lfs::test::pattern(64, 2)}};
    const std::vector<Piece> wanted = {{0, std::string(400, 'x')}, {8999, std::string(70, 'x')}, {1 << 20, "12345"}};
    const auto before = read_pieces(peer, TestFile{}, wanted, true);  // nothing is here yet
    REQUIRE_OK(before);
    CHECK(*before == std::string(475, '\0'));
    REQUIRE_OK(write_pieces(peer, TestFile{}, pieces));
    const auto read = read_pieces(peer, TestFile{}, wanted, true);
    REQUIRE_OK(read);
    const std::string model = model_of(pieces, 10'000);
    CHECK(*read == model.substr(0, 400) + model.substr(8999, 70) + std::string(5, '\0'));
  });
}

TEST_CASE("rows that came in order before are kept when pieces follow, and can be read back") {
  with_node([](Peer& peer, Node&) {
    const std::string rows = lfs::test::pattern(10'000, 1);
    REQUIRE_OK(peer.write(TestFile{}, 0, 100, rows));
    const auto read = read_pieces(peer, TestFile{}, {{50, std::string(100, 'x')}}, true);
    REQUIRE_OK(read);
    CHECK(*read == rows.substr(50, 100));
    REQUIRE_OK(peer.write(TestFile{}, 100, 1, lfs::test::pattern(100, 2)));  // still rows
    REQUIRE_OK(write_pieces(peer, TestFile{}, {{5, "hello"}}));
    CHECK(code_of(peer.write(TestFile{}, 101, 1, lfs::test::pattern(100, 3))) == Code::kInvalid);
    CHECK(committed(peer, TestFile{}, 10'100) ==
          model_of({{0, rows}, {10'000, lfs::test::pattern(100, 2)}, {5, "hello"}}, 10'100));
  });
}

TEST_CASE("a component that was filled in pieces is sealed as such only") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(write_pieces(peer, TestFile{}, {{0, lfs::test::pattern(100, 1)}}));
    CHECK(code_of(peer.seal(TestFile{}, 1, 100)) == Code::kInvalid);
    CHECK(code_of(seal(peer, TestFile{}.shape(), 250)) == Code::kOk);  // where nobody wrote there are zeros
    CHECK(code_of(seal(peer, TestFile{}.shape(), 250)) == Code::kOk);  // asked again
    CHECK(code_of(write_pieces(peer, TestFile{}, {{0, "x"}})) == Code::kExists);
    CHECK(code_of(read_pieces(peer, TestFile{}, {{0, "x"}}, true)) == Code::kExists);
  });
}

TEST_CASE("pieces of a committed component are read in one request, as many as fit it") {
  with_node([](Peer& peer, Node&) {
    const std::string all = lfs::test::pattern(3'000'000, 1);
    for (std::uint64_t row = 0; row < 30'000; row += 1000)
      REQUIRE_OK(peer.write(TestFile{}, row, 1000, all.substr(row * 100, 100'000)));
    REQUIRE_OK(peer.seal(TestFile{}, 30'000, all.size()));
    REQUIRE_OK(peer.settle({7}, {}));
    std::vector<Piece> wanted;
    std::string expected;
    for (std::uint64_t at = 33; at + 10 < all.size(); at += 997) {
      wanted.push_back({at, std::string(10, 'x')});
      expected += all.substr(at, 10);
    }
    const auto read = read_pieces(peer, TestFile{}, wanted, false);
    REQUIRE_OK(read);
    CHECK(*read == expected);
    const auto much = read_pieces(peer, TestFile{}, {{1, std::string(2'000'000, 'x')}}, false);
    REQUIRE_OK(much);
    CHECK((!much->empty() && much->size() < 2'000'000));
    CHECK(*much == all.substr(1, much->size()));
    CHECK(code_of(read_pieces(peer, TestFile{}, {{2'999'999, "ab"}}, false)) == Code::kEndOfFile);
  });
}

TEST_CASE("an LFS that was started again since a file was begun takes nothing of it") {
  with_node([](Peer& peer, Node&) {
    proto::ComponentShape shape = TestFile{}.shape();
    shape.set_incarnation(99);  // this one has none, as it knows of no server: all are taken
    CHECK(peer.call(write_request(peer, shape, {{0, "x"}})));
  });
}

TEST_CASE("runs that cannot be are refused, and change nothing") {
  with_node([](Peer& peer, Node&) {
    const auto asked = [&](std::uint32_t run_bytes, const std::string& body) {
      auto packet = peer.request(7, kMayCreate | kMayRead);
      proto::WritePieces& write = *packet.envelope.mutable_write_pieces();
      *write.mutable_shape() = TestFile{}.shape();
      write.set_run_bytes(run_bytes);
      packet.body = buffer_of(body);
      return code_of(peer.call(std::move(packet)));
    };
    const std::string good = runs_of({{5, "abc"}});
    const auto size = static_cast<std::uint32_t>(good.size());
    CHECK(asked(size, good + "ab") == Code::kInvalid);
    CHECK(asked(size, good + "abcd") == Code::kInvalid);
    CHECK(asked(0, "") == Code::kInvalid);
    CHECK(asked(size + 10, good + "abc") == Code::kInvalid);
    CHECK(asked(1, std::string(1, '\xff')) == Code::kInvalid);
    CHECK(asked(size, good + "abc") == Code::kOk);
    auto packet = peer.request(7, kMayCreate);
    *packet.envelope.mutable_read_pieces()->mutable_creating() = TestFile{}.shape();
    CHECK(code_of(peer.call(std::move(packet))) == Code::kInvalid);  // no runs
    TestFile lines = variable(8);
    CHECK(code_of(write_pieces(peer, lines, {{0, "x"}})) == Code::kUnsupported);
  });
}

namespace {

Status preallocate(Peer& peer, const TestFile& file, std::uint64_t bytes) {
  auto packet = peer.request(file.id, kMayCreate);
  *packet.envelope.mutable_preallocate()->mutable_shape() = file.shape();
  packet.envelope.mutable_preallocate()->set_bytes(bytes);
  PIF_TRY(peer.call(std::move(packet)));
  return {};
}

}  // namespace

TEST_CASE("what has room is written on a disk that is full by now; other files are not") {
  with_node([](Peer& peer, Node& node) {
    node.disk->set_capacity(64u << 20);
    const std::string bytes = lfs::test::pattern(4 << 20, 1);
    REQUIRE_OK(preallocate(peer, TestFile{}, bytes.size()));
    REQUIRE_OK(preallocate(peer, TestFile{}, bytes.size()));  // takes nothing more
    const std::uint64_t used = node.disk->used();
    CHECK(used >= bytes.size());
    CHECK(used < bytes.size() + (1u << 20));
    node.disk->set_capacity(used);
    TestFile other;
    other.id = 8;
    CHECK(code_of(write_pieces(peer, other, {{0, "x"}})) == Code::kNoSpace);
    CHECK(code_of(preallocate(peer, other, 1)) == Code::kNoSpace);
    for (std::uint64_t at = 0; at < bytes.size(); at += 1 << 16)
      REQUIRE_OK(write_pieces(peer, TestFile{}, {{at, bytes.substr(at, 1 << 16)}}));
    CHECK(code_of(write_pieces(peer, TestFile{}, {{bytes.size(), "x"}})) == Code::kNoSpace);
    REQUIRE_OK(peer.attach_new(TestFile{}));
    REQUIRE_OK(seal(peer, TestFile{}.shape(), bytes.size()));
    CHECK(node.disk->used() == used);
  });
}

TEST_CASE("room that is not written reads as zeros, has sums that hold, and behind the end is given back by the seal") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(preallocate(peer, TestFile{}, 1 << 20));
    const auto before = read_pieces(peer, TestFile{}, {{0, std::string(400, 'x')}}, true);
    REQUIRE_OK(before);
    CHECK(*before == std::string(400, '\0'));
    REQUIRE_OK(write_pieces(peer, TestFile{}, {{20'000, "hello"}}));
    CHECK(committed(peer, TestFile{}, 20'050) == model_of({{20'000, "hello"}}, 20'050));
    CHECK(node.disk->used() < 100'000);
    node.kill();
    const auto report = node.check();
    REQUIRE_OK(report);
    CHECK(report->damages.empty());
  });
}

// A committer that does not know of a member who joined a moment ago says that nothing is here.
TEST_CASE("no room takes nothing away: what somebody wrote stays until the file is committed without it") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(write_pieces(peer, TestFile{}, {{50, "hello"}}));
    REQUIRE_OK(preallocate(peer, TestFile{}, 0));
    const auto read = read_pieces(peer, TestFile{}, {{50, "xxxxx"}}, true);
    REQUIRE_OK(read);
    CHECK(*read == "hello");
  });
}

TEST_CASE("room is taken of a file being created, with fixed records; a disk that cannot take it is no error") {
  with_node([](Peer& peer, Node& node) {
    CHECK(code_of(preallocate(peer, variable(8), 100)) == Code::kUnsupported);
    CHECK(code_of(preallocate(peer, TestFile{}, UINT64_MAX)) == Code::kTooLarge);
    node.disk->set_capacity(64u << 20);
    CHECK(code_of(preallocate(peer, TestFile{}, 64u << 20)) == Code::kNoSpace);
    node.disk->set_fault(
        [](std::string_view call, std::string_view) { return call == "reserve" ? Code::kUnsupported : Code::kOk; });
    REQUIRE_OK(preallocate(peer, TestFile{}, 1000));
    node.disk->set_fault([](std::string_view call, std::string_view path) {
      return call == "reserve" && path.ends_with(".sum") ? Code::kNoSpace : Code::kOk;
    });
    CHECK(code_of(preallocate(peer, TestFile{}, 1000)) == Code::kNoSpace);
    node.disk->set_fault({});
    REQUIRE_OK(seal(peer, TestFile{}.shape(), 250));
    CHECK(code_of(preallocate(peer, TestFile{}, 1000)) == Code::kExists);
  });
}

TEST_CASE("what is synced before it is sealed stays invisible, and is gone with its LFS like all that was not sealed") {
  with_node([](Peer& peer, Node& node) {
    const auto sync = [&] {
      auto packet = peer.request(7, kMayCreate);
      *packet.envelope.mutable_sync_component()->mutable_shape() = TestFile{}.shape();
      return code_of(peer.call(std::move(packet)));
    };
    CHECK(sync() == Code::kOk);  // nothing is here
    REQUIRE_OK(write_pieces(peer, TestFile{}, {{0, lfs::test::pattern(1000, 1)}}));
    CHECK(sync() == Code::kOk);
    CHECK(code_of(peer.read(7, 0, 1)) != Code::kOk);
    node.restart();
    const auto read = read_pieces(peer, TestFile{}, {{0, "xx"}}, true);
    REQUIRE_OK(read);
    CHECK(*read == std::string(2, '\0'));
  });
}

TEST_CASE("a component that is sealed as of one length of the file is not sealed as of another") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    file.nodes = {kNode, kNode + 1};
    const auto seal_as_of = [&](std::uint64_t records) {
      auto packet = peer.request(file.id, kMayCreate | kMayRead);
      proto::Seal& seal = *packet.envelope.mutable_seal();
      *seal.mutable_shape() = file.shape();
      seal.set_rows(1);
      seal.set_bytes(100);
      seal.mutable_file()->set_records(records);
      seal.mutable_file()->set_bytes(records * 100);
      seal.set_scattered(true);
      return code_of(peer.call(std::move(packet)));
    };
    REQUIRE_OK(write_pieces(peer, file, {{0, lfs::test::pattern(100, 1)}}));
    CHECK(seal_as_of(1) == Code::kOk);
    CHECK(seal_as_of(1) == Code::kOk);      // asked again
    CHECK(seal_as_of(2) == Code::kExists);  // here it is as long, and the file is not
  });
}

TEST_CASE("a component that is being filled goes when its file is committed without it") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(write_pieces(peer, TestFile{}, {{0, lfs::test::pattern(100, 1)}}));
    REQUIRE_OK(peer.settle({7}, {}));
    const auto read = read_pieces(peer, TestFile{}, {{0, "xx"}}, true);
    REQUIRE_OK(read);
    CHECK(*read == std::string(2, '\0'));
  });
}

TEST_CASE("a request has no more pieces to be written than an LFS takes at once") {
  with_node([](Peer& peer, Node&) {
    const auto pieces_of = [](std::size_t count) {
      std::vector<Piece> pieces(count);
      for (std::size_t i = 0; i < count; ++i) pieces[i] = {i * 2, "x"};
      return pieces;
    };
    CHECK(code_of(write_pieces(peer, TestFile{}, pieces_of(patterns::kWrittenPiecesMax))) == Code::kOk);
    CHECK(code_of(write_pieces(peer, TestFile{}, pieces_of(patterns::kWrittenPiecesMax + 1))) == Code::kInvalid);
  });
}

TEST_CASE("a read of pieces in long chunks ends when so much was read for it, with what it has") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    file.format = Format::fixed(1u << 20);
    std::vector<Piece> wanted;
    for (std::uint64_t i = 0; i < 12; ++i) wanted.push_back({(i << 20) + 5, "xy"});
    REQUIRE_OK(write_pieces(peer, file, wanted));
    REQUIRE_OK(seal(peer, file.shape(), 12u << 20));
    REQUIRE_OK(peer.settle({7}, {}));
    const auto read = read_pieces(peer, file, wanted, false);
    REQUIRE_OK(read);
    CHECK(*read == "xyxyxyxy");  // 4 MiB
  });
}
