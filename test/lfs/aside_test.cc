// Files that the catalogue does not know: put aside at a start, and kept until the PIF Server has said what they are.
#include "../../lfs/src/store/catalogue.h"
#include "fake_server.h"
#include "pif/wire/file_states.h"

namespace pif::lfs::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFile = 7;

std::size_t aside(const Node& node) { return node.disk->files(node.root() + "/aside").size(); }

// File 7 was committed; its entry is lost, and from now on the server says `answer` of it.
void with_lost_entry(std::uint32_t answer, const std::function<void(ReportingFixture&, Peer&)>& body) {
  ReportingFixture f;
  f.server.states[kFile] = wire::kFileCommitted;
  f.start_server();
  f.run([&](Peer& peer) {
    ReportingFixture::seal_one(peer, kFile);
    f.node.kill();
    const auto store = kv::open_memory(f.node.catalogue);
    auto change = store->write();
    REQUIRE_OK(catalogue::erase(**change, FileId(kFile)));
    REQUIRE_OK((*change)->commit());
    f.server.states[kFile] = answer;
    f.node.start();
    (void)peer.self().pause(1ms);  // it has opened its root, and has asked nobody yet
    CHECK(f.node.disk->files(f.node.root() + "/data").empty());
    CHECK(aside(f.node) == 2);  // .dat and .sum
    body(f, peer);
  });
}

}  // namespace

TEST_CASE("files that may be the only copy stay, whatever time goes by") {
  with_lost_entry(wire::kFileCommitted, [](ReportingFixture& f, Peer& peer) {
    (void)peer.self().pause(25h);
    CHECK(aside(f.node) == 2);
    f.node.restart();
    (void)peer.self().pause(5min);
    CHECK(aside(f.node) == 2);
    auto length = peer.request(kFile, kMayRead);
    length.envelope.mutable_length()->set_file(kFile);
    CHECK(code_of(peer.call(std::move(length))) == Code::kCorrupt);  // and not 0 records
    f.server.states[kFile] = wire::kFileRemoved;
    (void)peer.self().pause(5min);
    CHECK(aside(f.node) == 0);
  });
}

TEST_CASE("files whose component was made again go after a day") {
  with_lost_entry(wire::kFileCommitted, [](ReportingFixture& f, Peer& peer) {
    ReportingFixture::seal_one(peer, kFile);
    (void)peer.self().pause(23h);
    CHECK(aside(f.node) == 2);
    (void)peer.self().pause(2h);
    CHECK(aside(f.node) == 0);
    CHECK(peer.read(kFile, 0, 5).value() == pattern(500, 1));
  });
}

TEST_CASE("files that the server knows nothing of go after a day, or when space is short") {
  with_lost_entry(wire::kFileUnknown, [](ReportingFixture& f, Peer& peer) {
    (void)peer.self().pause(23h);
    CHECK(aside(f.node) == 2);
    SECTION("a day") { (void)peer.self().pause(2h); }
    SECTION("no space") {
      f.node.disk->set_capacity(f.node.disk->used() + 1000);
      (void)peer.self().pause(5min);
    }
    CHECK(aside(f.node) == 0);
  });
}

TEST_CASE("files of a file that was given up in the server's run, or removed, go soon") {
  const auto answer = GENERATE(as<std::uint32_t>(), wire::kFileGivenUp, wire::kFileRemoved);
  with_lost_entry(answer, [](ReportingFixture& f, Peer& peer) {
    (void)peer.self().pause(3min);
    CHECK(aside(f.node) == 0);
    CHECK(f.node.disk->files(f.node.root() + "/data").empty());
  });
}

TEST_CASE("files of a file that is still being made stay until it is known what becomes of it") {
  with_lost_entry(wire::kFilePending, [](ReportingFixture& f, Peer& peer) {
    (void)peer.self().pause(25h);
    CHECK(aside(f.node) == 2);
    f.server.states[kFile] = wire::kFileGivenUp;
    (void)peer.self().pause(5min);
    CHECK(aside(f.node) == 0);
  });
}

TEST_CASE("no copy takes the place of another, though they are of one second") {
  with_lost_entry(wire::kFileCommitted, [](ReportingFixture& f, Peer& peer) {
    for (int i = 0; i < 3; ++i) {
      f.node.kill();
      const auto storage = component::make_memory_storage(f.node.disk);
      REQUIRE_OK(storage->open(component::stem(f.node.root(), FileId(kFile)) + ".dat", component::OpenMode::kCreate));
      f.node.start();
      (void)peer.self().pause(1ms);
      CHECK(!f.node.open_error);
    }
    CHECK(aside(f.node) == 5);
  });
}

}  // namespace pif::lfs::test
