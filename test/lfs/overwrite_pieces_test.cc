// Pieces of committed components, overwritten: where they belong, old or new after any crash, and each chunk logged
// once however many change it.
#include "../../lfs/src/overwrite/images.h"

#include "held_executor.h"
#include "pieces.h"
#include "pif/component/extents.h"

using namespace pif;
using namespace pif::lfs::test;
using lfs::ChunkRange;
using lfs::have_common;
using lfs::OverwriteTarget;

namespace {

// Every n-th piece of `size` bytes from byte `first` on, up to `end`.
std::vector<Piece> strided(std::uint64_t first, std::size_t size, std::uint64_t stride, std::uint64_t end,
                           unsigned seed) {
  std::vector<Piece> pieces;
  for (std::uint64_t at = first; at + size <= end; at += stride)
    pieces.push_back({at, lfs::test::pattern(size, seed + static_cast<unsigned>(at))});
  return pieces;
}

std::uint64_t log_bytes(Peer& peer) {
  net::Packet request;
  request.envelope.mutable_stats();
  return peer.call(std::move(request)).value().envelope.stats_reply().log_bytes();
}

// A file of records of that length, 7, as long as `bytes`.
void put_large(Peer& peer, const TestFile& file, const std::string& bytes) {
  const std::uint64_t at_once = (100u << 10) / file.format.record_length * file.format.record_length;
  for (std::uint64_t at = 0; at < bytes.size(); at += at_once) {
    const std::string some = bytes.substr(at, at_once);
    REQUIRE_OK(peer.write(file, at / file.format.record_length, some.size() / file.format.record_length, some));
  }
  REQUIRE_OK(peer.seal(file, bytes.size() / file.format.record_length, bytes.size()));
  REQUIRE_OK(peer.settle({file.id}, {}));
}

std::string read_all(Peer& peer, const TestFile& file, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += peer.read(file.id, out.size() / file.format.record_length, UINT32_MAX).value();
  return out;
}

}  // namespace

TEST_CASE("pieces are overwritten wherever they are, before and after power loss") {
  with_node([](Peer& peer, Node& node) {
    auto bytes = pattern(100 * 333 + 50, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    const auto put = [&](const std::vector<Piece>& pieces) {
      REQUIRE_OK(overwrite_pieces(peer, 7, pieces));
      apply(bytes, pieces);
      CHECK(peer.read(7, 0, 400).value() == bytes);
    };
    put({{0, "a"}});
    put({{3990, pattern(20, 2)}, {8000, pattern(4000, 3)}, {12'001, "b"}});  // over a chunk's edge, a whole one
    put({{33'340, pattern(10, 4)}});                                         // the end of the short last record
    put({{50, pattern(33'300, 5)}});                                         // all but both ends
    put(strided(7, 3, 64, bytes.size(), 6));
    put(strided(4000, 1, 8000, bytes.size(), 7));  // every other chunk
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 400).value() == bytes);
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("pieces that cannot be overwritten are refused, and change nothing") {
  with_node([](Peer& peer, Node&) {
    const auto bytes = pattern(550, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    const auto asked = [&](std::uint32_t run_bytes, const std::string& body) {
      auto packet = peer.request(7, kMayRead | kMayWrite);
      packet.envelope.mutable_overwrite_pieces()->set_file(7);
      packet.envelope.mutable_overwrite_pieces()->set_run_bytes(run_bytes);
      packet.body = buffer_of(body);
      return code_of(peer.call(std::move(packet)));
    };
    const std::string runs = runs_of({{5, "abc"}});
    const auto size = static_cast<std::uint32_t>(runs.size());
    CHECK(asked(0, "") == Code::kInvalid);
    CHECK(asked(0, "abc") == Code::kInvalid);
    CHECK(asked(size, runs) == Code::kInvalid);
    CHECK(asked(size, runs + "ab") == Code::kInvalid);
    CHECK(asked(size, runs + "abcd") == Code::kInvalid);
    CHECK(asked(size + 9, runs + "abc") == Code::kInvalid);
    CHECK(asked(1, std::string(1, '\xff')) == Code::kInvalid);
    CHECK(code_of(overwrite_pieces(peer, 7, {{0, "x"}, {548, "xyz"}})) == Code::kEndOfFile);
    CHECK(code_of(overwrite_pieces(peer, 7, {{std::uint64_t{1} << 61, "x"}})) == Code::kEndOfFile);
    CHECK(code_of(overwrite_pieces(peer, 9, {{0, "x"}})) == Code::kNotFound);
    CHECK(peer.read(7, 0, 6).value() == bytes);
    REQUIRE_OK(peer.put_variable(variable(8), {"one", "", "three"}));
    CHECK(code_of(overwrite_pieces(peer, 8, {{0, "x"}})) == Code::kUnsupported);
    auto packet = overwrite_pieces_request(peer, 7, {{0, "x"}});
    packet.envelope.set_capability(peer.mint_rights(7, kMayRead));
    CHECK(code_of(peer.call(std::move(packet))) == Code::kBadCapability);
  });
}

TEST_CASE("pieces of a file with parity are refused with the same words as its rows") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    file.nodes = {1, 2, 3, 4};
    file.bevies = {2, 2};
    REQUIRE_OK(peer.write(file, 0, 2, pattern(200, 1)));
    REQUIRE_OK(peer.seal(file, 2, 200, {}, FileLength{8, 800}));
    REQUIRE_OK(peer.settle({7}, {}));
    const auto rows = peer.overwrite(7, 0, 1, pattern(100, 2));
    const auto pieces = overwrite_pieces(peer, 7, {{0, "x"}});
    REQUIRE(code_of(pieces) == Code::kUnsupported);
    CHECK(pieces.error().text == rows.error().text);
  });
}

TEST_CASE("the pieces of one request are in no more chunks than may be logged for it") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    file.format = Format::fixed(4096);
    auto bytes = pattern(component::kTouchedBytesMax + 4096, 1);
    put_large(peer, file, bytes);
    const auto all = strided(17, 1, 4096, bytes.size(), 2);
    CHECK(code_of(overwrite_pieces(peer, 7, all)) == Code::kTooLarge);
    const std::vector<Piece> but_one(all.begin() + 1, all.end());
    REQUIRE_OK(overwrite_pieces(peer, 7, but_one));
    apply(bytes, but_one);
    CHECK((read_all(peer, file, bytes.size()) == bytes));
  });
  with_node(
      [](Peer& local, Node& node) {                 // of long records it may be one
        Peer peer(local.self(), node, 1000, true);  // for long messages
        peer.credential =
            mint(node.key, Credential{SessionId(1), 1000, {1000}, local.self().clock().wall_seconds() + 600});
        TestFile file;
        file.format = Format::fixed(5 << 20);
        REQUIRE_OK(peer.write(file, 0, 1, pattern(5 << 20, 1)));
        REQUIRE_OK(peer.write(file, 1, 1, pattern(5 << 20, 2)));
        REQUIRE_OK(peer.seal(file, 2, 10 << 20));
        REQUIRE_OK(peer.settle({7}, {}));
        REQUIRE_OK(overwrite_pieces(peer, 7, {{5 << 20, "x"}, {(5 << 20) + 9000, "y"}}));
        CHECK(code_of(overwrite_pieces(peer, 7, {{0, "x"}, {5 << 20, "y"}})) == Code::kTooLarge);
      },
      1, [](Node& node) { node.log_bytes = 64u << 20; });
}

TEST_CASE("pieces that are sent again after they were acknowledged do not undo what came later") {
  with_node([](Peer& local, Node& node) {
    REQUIRE_OK(local.put(TestFile{}, pattern(500, 1)));
    Peer peer(local.self(), node, 1000, true);  // a credential names its session
    peer.credential = mint(node.key, Credential{SessionId(1), 1000, {1000}, local.self().clock().wall_seconds() + 600});
    const auto send = [&](std::uint64_t id, const std::string& bytes) {
      auto packet = overwrite_pieces_request(peer, 7, {{10, bytes}});
      packet.envelope.set_id(id);
      return code_of(peer.call(std::move(packet)));
    };
    CHECK(send(1001, "first") == Code::kOk);
    CHECK(send(1002, "later") == Code::kOk);
    CHECK(send(1001, "first") == Code::kOk);
    CHECK(peer.read(7, 0, 1).value().substr(10, 5) == "later");
  });
}

TEST_CASE("four who write pieces that lie between one another's log each chunk once") {
  HeldExecutor executor;
  with_node(
      [&](Peer& peer, Node& node) {
        constexpr std::uint64_t kBytes = 24u << 20;  // three batches
        constexpr std::uint64_t kPart = 384u << 10;  // of it, for one request
        TestFile file;
        file.format = Format::fixed(64);
        auto bytes = pattern(kBytes, 1);
        put_large(peer, file, bytes);
        executor.hold(1);
        std::vector<net::CallId> calls = {peer.start(peer.overwrite_request(7, 0, 1, bytes.substr(0, 64)))};
        while (executor.held() == 0) peer.self().pause(std::chrono::milliseconds(1));
        const std::uint64_t before = log_bytes(peer);
        for (unsigned client = 0; client < 4; ++client) {  // all of one come before all of the next
          for (std::uint64_t at = 0; at < kBytes; at += kPart) {
            const auto pieces = strided(at + client * 64, 64, 256, at + kPart, client);
            calls.push_back(peer.start(overwrite_pieces_request(peer, 7, pieces)));
            apply(bytes, pieces);
          }
        }
        peer.self().pause(std::chrono::milliseconds(500));
        executor.release();
        for (const auto id : calls) REQUIRE_OK(peer.wait(id));
        const std::uint64_t logged = log_bytes(peer) - before;
        INFO(logged << " bytes were logged for chunks of " << kBytes);
        CHECK(logged < kBytes * 13 / 10);
        CHECK(logged > kBytes);
        CHECK((read_all(peer, file, kBytes) == bytes));
        node.crash();
        node.start();
        CHECK((read_all(peer, file, kBytes) == bytes));
      },
      1,
      [&](Node& node) {
        node.log_bytes = 256u << 20;
        node.executor = &executor;
      });
}

TEST_CASE("the log takes what changes of chunks, and not what lies between, also of rows") {
  with_node([](Peer& peer, Node& node) {
    auto bytes = pattern(100 * 10'000, 1);
    put_large(peer, TestFile{}, bytes);
    const auto few = strided(1000, 64, 8192, bytes.size(), 2);  // in every other chunk
    REQUIRE_OK(overwrite_pieces(peer, 7, few));
    apply(bytes, few);
    CHECK(log_bytes(peer) < few.size() * 200);
    const std::uint64_t before = log_bytes(peer);
    const auto row = pattern(100, 3);
    REQUIRE_OK(peer.overwrite(7, 500, 1, row));
    bytes.replace(50'000, 100, row);
    CHECK(log_bytes(peer) - before < 300);
    CHECK((read_all(peer, TestFile{}, bytes.size()) == bytes));
    node.crash();
    node.start();
    CHECK((read_all(peer, TestFile{}, bytes.size()) == bytes));
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("damage beside bytes that the log replays is still found") {
  with_node([](Peer& peer, Node& node) {
    const auto bytes = pattern(100 * 400, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    REQUIRE_OK(overwrite_pieces(peer, 7, {{5000, "x"}}));
    node.crash();
    node.disk->flip_bit("/lfs0/data/07/0000000000000007.dat", 8000, 2);  // of the same chunk
    node.start();
    CHECK(code_of(peer.read(7, 80, 1)) == Code::kCorrupt);
    CHECK(node.check().value().damages.size() == 1);
  });
}

TEST_CASE("who is taken along by a full batch does not overtake what came before and changes the same chunk") {
  HeldExecutor executor;
  with_node(
      [&](Peer& peer, Node& node) {
        constexpr std::uint64_t kPart = 384u << 10;
        TestFile file;
        file.format = Format::fixed(64);
        auto bytes = pattern(40 * kPart, 1);
        put_large(peer, file, bytes);
        executor.hold(1);
        std::vector<net::CallId> calls = {peer.start(peer.overwrite_request(7, 0, 1, bytes.substr(0, 64)))};
        while (executor.held() == 0) peer.self().pause(std::chrono::milliseconds(1));
        const auto start = [&](const std::vector<Piece>& pieces) {
          calls.push_back(peer.start(overwrite_pieces_request(peer, 7, pieces)));
          apply(bytes, pieces);
        };
        for (std::uint64_t part = 0; part < 22; ++part)  // fills a batch
          start(strided(part * kPart, 64, 256, (part + 1) * kPart, 2));
        start({{10, "first"}, {30 * kPart, "x"}, {31 * kPart, "x"}, {32 * kPart, "x"}});  // has no room
        start({{10, "later"}});
        peer.self().pause(std::chrono::milliseconds(500));
        executor.release();
        for (const auto id : calls) REQUIRE_OK(peer.wait(id));
        CHECK(bytes.substr(10, 5) == "later");
        CHECK((read_all(peer, file, bytes.size()) == bytes));
        node.crash();
        node.start();
        CHECK((read_all(peer, file, bytes.size()) == bytes));
      },
      1,
      [&](Node& node) {
        node.log_bytes = 256u << 20;
        node.executor = &executor;
      });
}

TEST_CASE("overwrites of rows and of pieces that meet in one batch stand in the order in which they came") {
  HeldExecutor executor;
  with_node(
      [&](Peer& peer, Node& node) {
        auto bytes = pattern(100 * 1000, 1);
        REQUIRE_OK(peer.put(TestFile{}, bytes));
        executor.hold(1);
        std::vector<net::CallId> calls = {peer.start(peer.overwrite_request(7, 0, 1, bytes.substr(0, 100)))};
        while (executor.held() == 0) peer.self().pause(std::chrono::milliseconds(1));
        for (unsigned i = 0; i < 60; ++i) {
          if (i % 2 == 0) {
            const auto fresh = pattern(100 * 50, 100 + i);
            calls.push_back(peer.start(peer.overwrite_request(7, i * 13, 50, fresh)));
            bytes.replace(i * 1300, fresh.size(), fresh);
          } else {
            const auto pieces = strided(i * 7, 40, 90 + i, i * 1500, 200 + i);
            calls.push_back(peer.start(overwrite_pieces_request(peer, 7, pieces)));
            apply(bytes, pieces);
          }
        }
        peer.self().pause(std::chrono::milliseconds(100));
        executor.release();
        for (const auto id : calls) REQUIRE_OK(peer.wait(id));
        CHECK(peer.read(7, 0, 1000).value() == bytes);
        node.crash();
        node.start();
        CHECK(peer.read(7, 0, 1000).value() == bytes);
      },
      1, [&](Node& node) { node.executor = &executor; });
}

TEST_CASE("an overwrite that reads a damaged chunk fails alone: others of its batch stand, and none of it is there") {
  HeldExecutor executor;
  with_node(
      [&](Peer& peer, Node& node) {
        auto bytes = pattern(100 * 400, 1);
        REQUIRE_OK(peer.put(TestFile{}, bytes));
        node.disk->flip_bit("/lfs0/data/07/0000000000000007.dat", 8100, 2);  // of chunk 2
        executor.hold(1);
        const auto first = peer.start(peer.overwrite_request(7, 390, 1, bytes.substr(39'000, 100)));
        while (executor.held() == 0) peer.self().pause(std::chrono::milliseconds(1));
        const auto good = peer.start(overwrite_pieces_request(peer, 7, {{0, "good"}}));
        const auto bad = peer.start(overwrite_pieces_request(peer, 7, {{2, "BAD"}, {8090, "BAD"}, {12'000, "BAD"}}));
        const auto mend = peer.start(peer.overwrite_request(7, 80, 40, bytes.substr(8000, 4000)));  // all of chunk 2
        peer.self().pause(std::chrono::milliseconds(100));
        executor.release();
        for (const auto id : {first, good, mend}) REQUIRE_OK(peer.wait(id));
        CHECK(code_of(peer.wait(bad)) == Code::kCorrupt);
        apply(bytes, {{0, "good"}});
        CHECK(peer.read(7, 0, 400).value() == bytes);
      },
      1, [&](Node& node) { node.executor = &executor; });
}

TEST_CASE("pieces whose file is deleted while they are logged are told so") {
  HeldExecutor executor;
  with_node(
      [&](Peer& peer, Node&) {
        REQUIRE_OK(peer.put(TestFile{}, pattern(1000, 1)));
        executor.hold(1);
        const auto call = peer.start(overwrite_pieces_request(peer, 7, {{0, "x"}, {500, "y"}}));
        while (executor.held() == 0) peer.self().pause(std::chrono::milliseconds(1));
        REQUIRE_OK(peer.settle({}, {7}));
        executor.release();
        CHECK(code_of(peer.wait(call)) == Code::kStaleFile);
      },
      1, [&](Node& node) { node.executor = &executor; });
}

TEST_CASE("after a failed sync of the log pieces are refused until the LFS is started again") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(1000, 1)));
    node.disk->set_fault([](std::string_view call, std::string_view path) {
      return call == "sync" && path.find("/redo.") != std::string_view::npos ? Code::kIo : Code::kOk;
    });
    CHECK(code_of(overwrite_pieces(peer, 7, {{0, "x"}})) == Code::kIo);
    node.disk->set_fault({});
    CHECK(code_of(overwrite_pieces(peer, 7, {{1, "y"}})) == Code::kIo);
    CHECK(peer.read(7, 1, 9).value() == pattern(1000, 1).substr(100));
    node.restart();
    REQUIRE_OK(overwrite_pieces(peer, 7, {{1, "y"}}));
  });
}

namespace {

// Overwrites pieces until the `failing`-th call of the disk fails, crashes, and looks. False: there are fewer calls.
bool old_or_new_after(unsigned failing, bool power_loss) {
  bool reached = false;
  with_node(
      [&](Peer& peer, Node& node) {
        auto sure = pattern(100 * 130 - 30, 1);
        REQUIRE_OK(peer.put(TestFile{}, sure));
        unsigned calls = 0;
        node.disk->set_fault([&](std::string_view, std::string_view) {
          reached = reached || calls == failing;
          return calls++ == failing ? Code::kIo : Code::kOk;
        });
        std::optional<std::string> unsure;
        for (unsigned i = 0; i < 5 && !unsure; ++i) {
          auto next = sure;
          const auto pieces = strided(i * 30, 60, 150 + 4000 * (i % 2), sure.size(), 50 + i);
          apply(next, pieces);
          if (overwrite_pieces(peer, 7, pieces))
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
        for (std::size_t row = 0; row < 130; ++row) {
          const auto got = read->substr(row * 100, 100);
          CHECK((got == sure.substr(row * 100, 100) || (unsure && got == unsure->substr(row * 100, 100))));
        }
        CHECK(node.check().value().damages.empty());
      },
      1, [](Node& node) { node.log_bytes = 32u << 10; });
  return reached;
}

}  // namespace

TEST_CASE("whatever call of the disk fails while pieces are overwritten, each record is old or new afterwards") {
  for (const bool power_loss : {true, false})
    for (unsigned failing = 0; failing < 400 && old_or_new_after(failing, power_loss); ++failing) continue;
}

namespace {

std::vector<ChunkRange> touched_by(const std::vector<Piece>& pieces, std::uint64_t bytes) {
  const std::string runs = runs_of(pieces);
  const auto decoder = patterns::RunDecoder::make(std::as_bytes(std::span(runs)), {}).value();
  const std::vector<std::byte> payload(decoder.payload());
  return lfs::touched_chunks(OverwriteTarget(decoder, payload), 100, bytes).value();
}

}  // namespace

TEST_CASE("the chunks that pieces change are told apart: those that change whole, and those that do in part") {
  const auto piece = [](std::uint64_t offset, std::size_t size) { return Piece{offset, std::string(size, 'x')}; };
  CHECK(touched_by({piece(0, 100)}, 1000) == std::vector<ChunkRange>{{0, 1, false}});
  CHECK(touched_by({piece(0, 99)}, 1000) == std::vector<ChunkRange>{{0, 1, true}});
  CHECK(touched_by({piece(1, 99)}, 1000) == std::vector<ChunkRange>{{0, 1, true}});
  CHECK(touched_by({piece(50, 300)}, 1000) == std::vector<ChunkRange>{{0, 1, true}, {1, 2, false}, {3, 1, true}});
  CHECK(touched_by({piece(900, 30)}, 930) == std::vector<ChunkRange>{{9, 1, false}});  // all that there is of it
  CHECK(touched_by({piece(900, 29)}, 930) == std::vector<ChunkRange>{{9, 1, true}});
  CHECK(touched_by({piece(10, 5), piece(20, 5), piece(90, 5), piece(99, 102), piece(300, 100), piece(510, 1)}, 1000) ==
        std::vector<ChunkRange>{{0, 1, true}, {1, 1, false}, {2, 1, true}, {3, 1, false}, {5, 1, true}});
  CHECK(touched_by({piece(10, 100), piece(120, 100)}, 1000) == std::vector<ChunkRange>{{0, 3, true}});
}

TEST_CASE("chunks that two overwrites have in common are found") {
  using Ranges = std::vector<ChunkRange>;
  CHECK_FALSE(have_common(Ranges{}, Ranges{{0, 5}}));
  CHECK_FALSE(have_common(Ranges{{0, 5}, {10, 1}}, Ranges{{5, 5}, {11, 1}}));
  CHECK(have_common(Ranges{{0, 5}, {10, 1}}, Ranges{{5, 6}}));
  CHECK(have_common(Ranges{{7, 1}}, Ranges{{0, 1}, {2, 1}, {4, 1}, {6, 9}}));
}
