// Components of files whose LFSs keep parity (form 1): what is stored, and what they refuse.
#include "appender.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

// LFS 0 of a file over two bevies of two. Records 1, 4, 9, 12, ... are here: LFS 1 has record 0.
TestFile protected_file(std::uint64_t id = 7) {
  TestFile file;
  file.id = id;
  file.nodes = {kNode, 2, 3, 4};
  file.bevies = {2, 2};
  file.form = 1;
  return file;
}

}  // namespace

TEST_CASE("rows of a file with parity are stored one after another, under sums with stamps") {
  with_node([](Peer& peer, Node& node) {
    const auto bytes = pattern(100 * 100, 1);
    REQUIRE_OK(peer.write(protected_file(), 0, 100, bytes));
    REQUIRE_OK(peer.seal(protected_file(), 100, 10'000, {}, FileLength{400, 40'000}));
    REQUIRE_OK(peer.settle({7}, {}));
    CHECK(peer.read(7, 0, 200).value() == bytes);
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 200).value() == bytes);
    const auto report = node.check().value();
    for (const auto& damage : report.damages)  // nobody gathered parity
      CHECK(damage.find("checksum") == std::string::npos);
  });
}

TEST_CASE("rows of a file with parity cannot be overwritten in place") {
  with_node([](Peer& peer, Node&) {
    const auto bytes = pattern(200, 1);
    REQUIRE_OK(peer.write(protected_file(), 0, 2, bytes));
    REQUIRE_OK(peer.seal(protected_file(), 2, 200, {}, FileLength{8, 800}));
    REQUIRE_OK(peer.settle({7}, {}));
    const auto refused = peer.overwrite(7, 0, 1, pattern(100, 2));
    REQUIRE(!refused);
    CHECK(refused.error().code == Code::kUnsupported);
    CHECK(refused.error().text ==
          "protected: file 7 has parity, and this version cannot overwrite in place; put it anew or copy it with "
          "--bevy 0");
    CHECK(peer.read(7, 0, 2).value() == bytes);
  });
}

TEST_CASE("a form that this LFS does not know is refused, and one that the layout cannot have") {
  with_node([](Peer& peer, Node&) {
    TestFile newer = protected_file();
    newer.form = 2;
    CHECK(code_of(peer.write(newer, 0, 1, pattern(100, 1))) == Code::kVersion);
    TestFile without_bevies;
    without_bevies.form = 1;
    CHECK(code_of(peer.write(without_bevies, 0, 1, pattern(100, 1))) == Code::kInvalid);
  });
}

TEST_CASE("no range is given out before the deputy was asked") {
  with_node([](Peer& peer, Node& node) {
    Appender a(peer.self(), {&node}, protected_file());
    CHECK(a.length() == FileLength());
    a.known = {1, 100};
    // Nobody knows here where the deputy is, without whom no range is given out.
    CHECK(code_of(a.reserve(1, 100)) == Code::kRetry);
    CHECK(a.length() == FileLength{1, 100});  // its component is there, though
    (void)node;
  });
}

TEST_CASE("a length that LFS 0 should have rows of, or that no file has, makes no component") {
  with_node([](Peer& peer, Node& node) {
    Appender lost(peer.self(), {&node}, protected_file(7));
    lost.known = {2, 200};
    CHECK(code_of(lost.reserve(1, 100)) == Code::kNotFound);
    Appender wrong(peer.self(), {&node}, protected_file(8));
    wrong.known = {1, 150};
    CHECK(code_of(wrong.reserve(1, 100)) == Code::kInvalid);
    TestFile plain;
    plain.id = 9;
    Appender unprotected(peer.self(), {&node}, plain);
    unprotected.known = {1, 100};
    CHECK(code_of(unprotected.reserve(1, 100)) == Code::kStaleNode);
  });
}
