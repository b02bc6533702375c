// Files that the catalogue does not know: put aside at a start, and kept until the PIF Server has said what they are.
#include "../../lfs/src/store/aside.h"
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
    (void)peer.self().pause(3min);
    CHECK(aside(f.node) == 2);
    f.node.restart();
    (void)peer.self().pause(5min);
    CHECK(aside(f.node) == 2);
    auto length = peer.request(kFile, kMayRead);
    length.envelope.mutable_length()->set_file(kFile);
    CHECK(code_of(peer.call(std::move(length))) == Code::kCorrupt);  // and not 0 records
    auto list = peer.request(0, kMayManage);
    list.envelope.mutable_list_components()->set_quarantined(true);
    const auto listed = peer.call(std::move(list)).value().envelope.list_components_reply();
    REQUIRE(listed.components_size() == 1);
    CHECK(listed.components(0).shape().file() == kFile);
    CHECK(listed.components(0).bytes() > 0);
    f.server.states[kFile] = wire::kFileRemoved;
    (void)peer.self().pause(5min);
    CHECK(aside(f.node) == 0);
  });
}

TEST_CASE("files that the server knows nothing of go when space is short") {
  with_lost_entry(wire::kFileUnknown, [](ReportingFixture& f, Peer& peer) {
    (void)peer.self().pause(2min);
    CHECK(aside(f.node) == 2);
    f.node.disk->set_capacity(f.node.disk->used() + 1000);
    (void)peer.self().pause(3min);
    CHECK(aside(f.node) == 0);
  });
}

TEST_CASE("how long files stay aside is by what the server said of their file") {
  using Word = Aside::Word;
  constexpr std::int64_t kDay = 24 * 3600;
  const auto is_over = [](std::optional<Word> word, const Aside::Moment& moment, bool is_here) {
    Aside all;
    all.add({FileId(kFile), 1000});
    if (word) all.learn(FileId(kFile), *word);
    return !all.over(moment, 10, [is_here](FileId) { return is_here; }).empty();
  };
  const Aside::Moment early{1000 + kDay - 1, false, true}, late{1000 + kDay + 1, false, true}, full{1001, true, true};
  const Aside::Moment alone{1000 + kDay + 1, false, false};
  CHECK(is_over(Word::kGone, early, false));
  CHECK(!is_over(Word::kUnknown, early, false));
  CHECK(is_over(Word::kUnknown, late, false));
  CHECK(is_over(Word::kUnknown, full, false));
  CHECK(!is_over(Word::kCommitted, late, false));  // perhaps the only copy
  CHECK(!is_over(Word::kCommitted, full, false));
  CHECK(!is_over(Word::kCommitted, early, true));
  CHECK(is_over(Word::kCommitted, late, true));
  CHECK(!is_over(std::nullopt, late, false));
  CHECK(is_over(std::nullopt, alone, false));
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
    (void)peer.self().pause(3min);
    CHECK(aside(f.node) == 2);
    f.server.states[kFile] = wire::kFileGivenUp;
    (void)peer.self().pause(5min);
    CHECK(aside(f.node) == 0);
  });
}

TEST_CASE(
    "files of a file that was still being made go when it is committed: they are of a writer that did not count") {
  with_lost_entry(wire::kFilePending, [](ReportingFixture& f, Peer& peer) {
    (void)peer.self().pause(3min);
    CHECK(aside(f.node) == 2);
    f.server.states[kFile] = wire::kFileCommitted;
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
