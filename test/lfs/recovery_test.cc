// What a start does to the root of an LFS that died: every call of it may fail, and it is done again.
#include "node.h"

#include "../../lfs/src/redo/recovery.h"
#include "../../lfs/src/redo/redo_log.h"
#include "../../lfs/src/store/catalogue.h"
#include "../../lfs/src/store/root.h"
#include "older_log.h"
#include "pif/kv/value.h"
#include "sim/faults.h"

using namespace pif;
using namespace pif::lfs;
using namespace pif::lfs::test;

namespace {

// What the process that starts sees of a node's disk and catalogue.
struct Start {
  explicit Start(Node& node_in) : node(node_in) {
    node.disk->set_fault([this](std::string_view call, std::string_view path) { return faults->ask(call, path); });
  }
  ~Start() { node.disk->set_fault({}); }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  Status claim() { return claim_root(*storage, *store, node.root(), {"c0ffee", node.id(), node.name(), ""}); }
  Status make() { return make_root(*storage, *store, node.root(), {"c0ffee", node.id(), node.name(), ""}); }
  Status replay() {
    log.emplace(*storage, log_folder(node.root()), node.log_bytes);
    return replay_log(*storage, *store, node.root(), *log);
  }
  Status clear() { return clear_leftovers(*storage, *store, node.root(), 1000); }
  void put_state(const proto::ComponentState& state) {
    auto transaction = store->write().value();
    REQUIRE_OK(catalogue::put(*transaction, state));
    REQUIRE_OK(transaction->commit());
  }
  void put_rotten_state(std::uint64_t file) { put_rotten_entry(kv::key_u64(file)); }
  void put_rotten_entry(const std::string& key) {
    auto transaction = store->write().value();
    REQUIRE_OK(transaction->put(0, key, "rotten"));
    REQUIRE_OK(transaction->commit());
  }
  proto::ComponentState state(std::uint64_t file) { return **catalogue::get(*store, FileId(file)); }

  Node& node;
  std::shared_ptr<sim::Faults> faults = std::make_shared<sim::Faults>();
  std::unique_ptr<component::Storage> storage = component::make_memory_storage(node.disk);
  std::unique_ptr<kv::Store> store =
      sim::make_faulty_store("catalogue", kv::open_memory(node.catalogue), faults, [] { return false; });
  std::optional<RedoLog> log;
};

// Does `work` again and again, each time with power loss before it and its next call failing, until no call is left.
// Returns how many there were.
std::uint64_t with_each_call_failing(Node& node, const std::function<Status(Start&)>& work) {
  for (std::uint64_t call = 0;; ++call) {
    node.disk->crash();
    Start start(node);
    start.faults->fail_at(call, sim::Fault::kIoError, false);
    const auto done = work(start);
    INFO("call " << call << ": " << start.faults->failed_call());
    CHECK(code_of(done) == (start.faults->has_failed() ? Code::kIo : Code::kOk));
    if (!start.faults->has_failed()) return call;
  }
}

// As lfs.toml says.
int format_of_root(Node& node) {
  const auto file =
      component::make_memory_storage(node.disk)->open(node.root() + "/lfs.toml", component::OpenMode::kRead);
  std::string text(300, '\0');
  text.resize(file.value()->read(0, std::as_writable_bytes(std::span(text))).value());
  return std::stoi(text.substr(text.find("format = ") + 9));
}

// File 7 of 500 bytes on a node that was killed, and its entry of the catalogue.
void with_killed(const std::function<void(Peer&, Node&, Start&, proto::ComponentState state)>& body) {
  with_node([&](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    node.kill();
    Start start(node);
    body(peer, node, start, start.state(7));
  });
}

// A client's file 7 and 8 of 13,030 bytes, and what they must read as: overwritten, all of it only in the log.
void with_log(const std::function<void(Peer&, Node&, const std::string& wanted)>& body) {
  with_node([&](Peer& peer, Node& node) {
    auto bytes = pattern(13030, 1);
    TestFile other;
    other.id = 8;
    for (const auto& file : {TestFile{}, other}) REQUIRE_OK(peer.put(file, bytes));
    for (const std::uint64_t first : {std::uint64_t{3}, std::uint64_t{39}, std::uint64_t{130}}) {
      const auto fresh = pattern(first == 130 ? 30 : 200, 50 + static_cast<unsigned>(first));
      for (const std::uint64_t id : {7, 8}) REQUIRE_OK(peer.overwrite(id, first, first == 130 ? 1 : 2, fresh));
      bytes.replace(first * 100, fresh.size(), fresh);
    }
    node.crash();
    body(peer, node, bytes);
  });
}

}  // namespace

TEST_CASE("whichever call fails while the log is replayed, that is said, and the next start replays all of it") {
  with_log([](Peer& peer, Node& node, const std::string& wanted) {
    CHECK(with_each_call_failing(node, [](Start& start) { return start.replay(); }) > 30);
    CHECK(Start(node).state(7).log_applied() == 9);
    CHECK(Start(node).state(8).log_applied() == 10);
    node.start();
    CHECK(peer.read(7, 0, 200).value() == wanted);
    CHECK(peer.read(8, 0, 200).value() == wanted);
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("whichever call fails while leftovers are put aside, that is said, and the next start does it") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    node.kill();
    const auto orphan = component::stem(node.root(), FileId(0x99907)) + ".dat";
    const auto foreign = node.root() + "/data/07/not-ours";
    const auto storage = component::make_memory_storage(node.disk);
    for (const auto& path : {orphan, foreign}) REQUIRE_OK(storage->open(path, component::OpenMode::kCreate));
    for (const char* folder : {"", "/07"}) REQUIRE_OK(storage->sync_folder(node.root() + "/data" + folder));
    CHECK(with_each_call_failing(node, [](Start& start) { return start.clear(); }) >= 6);
    const auto left = node.disk->files(node.root() + "/data");
    CHECK(std::count(left.begin(), left.end(), orphan) == 0);
    // Where the power failed between the two folders of the rename, this disk has the file under both names.
    const auto aside = node.disk->files(node.root() + "/aside");
    CHECK(!aside.empty());
    for (const auto& path : aside) CHECK(path.ends_with("/0000000000099907.dat"));
    CHECK(std::count(left.begin(), left.end(), foreign) == 1);
    node.start();
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
  });
}

TEST_CASE("whichever call fails while a root is made, that is said, and the next start makes it") {
  for (const char* name : {"lfs0", "disks/lfs0"}) {
    sim::World world(1);
    Node node(world, name);
    const auto storage = component::make_memory_storage(node.disk);
    REQUIRE_OK(storage->make_folder("/disks"));
    REQUIRE_OK(storage->sync_folder("/"));
    CHECK(with_each_call_failing(node, [](Start& start) { return start.make(); }) > 10);
    CHECK(with_each_call_failing(node, [](Start& start) { return start.make(); }) > 1);  // one that is there
    CHECK(with_each_call_failing(node, [](Start& start) { return start.claim(); }) >
          5);  // at every start of its daemon
    CHECK(read_identity(*component::make_memory_storage(node.disk), node.root()).value().cluster == "c0ffee");
  }
}

namespace {

// Makes it what a release of that format left: an overwrite of the first record in redo.log, none in redo.N.
void make_older(Node& node, unsigned format, const std::string& overwritten) {
  const auto storage = component::make_memory_storage(node.disk);
  const auto store = kv::open_memory(node.catalogue);
  const auto toml = storage->open(node.root() + "/lfs.toml", component::OpenMode::kWrite).value();
  std::string text(300, '\0');
  text.resize(toml->read(0, std::as_writable_bytes(std::span(text))).value());
  const std::string digit = std::to_string(format);
  REQUIRE_OK(toml->write(text.find("format = ") + 9, std::as_bytes(std::span(digit))));
  REQUIRE_OK(toml->sync());
  auto transaction = store->write().value();
  REQUIRE_OK(transaction->put(1, "format", kv::seal_value(kv::key_u64(format))));
  REQUIRE_OK(transaction->commit());
  for (const char* name : {"/redo.0", "/redo.1"}) REQUIRE_OK(storage->remove(log_folder(node.root()) + name));
  OlderLog log(*storage, older_log_path(node.root()));
  const auto number = catalogue::numbers(*store)->number();
  log.head(3, number);
  log.entry({FileId(7), 0, TestFile{}.shape().chunk_bytes(), std::as_bytes(std::span(overwritten))}, number + 1);
}

// All that an LFS does with its root before it serves.
Status come_up(Start& start) {
  PIF_TRY(start.claim());
  PIF_TRY(start.replay());
  return start.clear();
}

}  // namespace

TEST_CASE("whichever call fails while a root of an earlier release is taken over, its log is replayed once, and goes") {
  for (const unsigned format : {2u, 3u}) {
    with_node([&](Peer& peer, Node& node) {
      auto bytes = pattern(500, 1);
      REQUIRE_OK(peer.put(TestFile{}, bytes));
      node.kill();
      bytes.replace(0, 100, pattern(100, 2));
      make_older(node, format, bytes);
      CHECK(with_each_call_failing(node, come_up) > 30);
      CHECK(format_of_root(node) == 4);
      CHECK(catalogue::version(*kv::open_memory(node.catalogue)).value() == 4);
      CHECK(node.disk->files(log_folder(node.root())) ==
            std::vector<std::string>{node.root() + "/log/redo.0", node.root() + "/log/redo.1"});
      node.start();
      CHECK(peer.read(7, 0, 5).value() == bytes);
      REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 3)));
      node.crash();
      node.start();
      CHECK(peer.read(7, 0, 5).value() == bytes.replace(0, 100, pattern(100, 3)));
      CHECK(node.check().value().damages.empty());
    });
  }
}

TEST_CASE("the format of a root is raised before its log is touched, so that no older program can read half of it") {
  with_node([&](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    node.kill();
    make_older(node, 2, pattern(500, 2));
    bool is_raised = false;
    Start start(node);
    node.disk->set_fault([&](std::string_view call, std::string_view path) {
      is_raised = is_raised || call == "rename";  // of lfs.toml.new
      if (path.find("/log/") != std::string_view::npos) CHECK(is_raised);
      return Code::kOk;
    });
    REQUIRE_OK(come_up(start));
    CHECK(is_raised);
    CHECK(format_of_root(node) == 4);
  });
}

TEST_CASE("a root is of format 4 from its beginning, and one of a newer format is refused") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    CHECK(format_of_root(node) == 4);
    node.kill();
    make_older(node, 5, pattern(500, 2));
    const auto refused = Start(node).claim();
    REQUIRE(code_of(refused) == Code::kVersion);
    CHECK(refused.error().text == "/lfs0/lfs.toml has format 5, this program knows 4: use a newer one");
  });
}

TEST_CASE("a root that is not there, is empty, or is another one is refused, and nothing is made of it") {
  sim::World world(1);
  Node node(world);
  CHECK(code_of(Start(node).claim()) == Code::kNotFound);
  CHECK(node.disk->files("/").empty());
  const auto storage = component::make_memory_storage(node.disk);
  const auto store = kv::open_memory(node.catalogue);
  const RootIdentity ours{"c0ffee", node.id(), node.name(), "11"};
  REQUIRE_OK(make_root(*storage, *store, node.root(), ours));
  CHECK(code_of(claim_root(*storage, *store, node.root(), ours)) == Code::kOk);
  for (const RootIdentity& other :
       {RootIdentity{"c0ffee", node.id(), node.name(), "22"}, RootIdentity{"c0ffee", 9, "lfs8", "11"},
        RootIdentity{"beef", node.id(), node.name(), "11"}}) {
    const auto refused = claim_root(*storage, *store, node.root(), other);
    REQUIRE(code_of(refused) == Code::kInvalid);
    CHECK_THAT(refused.error().text, Catch::Contains("is the right disk mounted?"));
    CHECK(code_of(make_root(*storage, *store, node.root(), other)) == Code::kInvalid);
  }
  const auto wiped = kv::open_memory(kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size())));
  CHECK(code_of(claim_root(*storage, *wiped, node.root(), ours)) == Code::kCorrupt);
  const auto swapped_state = kv::make_memory_state(static_cast<unsigned>(kCatalogueTables.size()));
  const auto swapped = kv::open_memory(swapped_state);
  REQUIRE_OK(catalogue::begin(*swapped, "22"));
  CHECK(code_of(claim_root(*storage, *swapped, node.root(), ours)) == Code::kCorrupt);
}

TEST_CASE("a root is not made where the catalogue cannot be counted") {
  sim::World world(1);
  Node node(world);
  node.catalogue = kv::make_memory_state(0);
  CHECK(code_of(Start(node).make()) == Code::kInternal);
  CHECK(node.disk->files(node.root()).empty());
}

TEST_CASE("whichever call fails while a root is checked, it is not called sound") {
  with_log([](Peer&, Node& node, const std::string&) {
    REQUIRE_OK(Start(node).replay());
    const auto check = [](Start& start) { return check_root(*start.storage, *start.store, start.node.root(), true); };
    bool failed = true;
    for (std::uint64_t call = 0; failed; ++call) {
      Start start(node);
      start.faults->fail_at(call, sim::Fault::kIoError, false);
      const auto report = check(start);
      failed = start.faults->has_failed();
      INFO("call " << call << ": " << start.faults->failed_call());
      CHECK((report && report->damages.empty()) == !failed);
    }
  });
}

TEST_CASE("the checker names what no start would mend: impossible shapes, lengths, names, and rotten entries") {
  with_log([](Peer&, Node& node, const std::string&) {
    Start start(node);
    REQUIRE_OK(start.replay());
    const auto before = start.state(7);
    const auto damages = [&] { return check_root(*start.storage, *start.store, node.root(), true).value().damages; };
    const auto with = [&](const std::function<void(proto::ComponentState&)>& change) {
      auto state = before;
      change(state);
      start.put_state(state);
      return damages();
    };
    CHECK(with([](auto&) {}).empty());
    CHECK(with([](auto& s) { s.mutable_shape()->mutable_format()->set_kind(9); }).size() == 1);
    CHECK(with([](auto& s) { s.mutable_published()->set_records(1); }).size() == 1);
    const auto appended = [](auto& s) {
      s.mutable_published()->set_records(1);
      s.set_generation(3);
    };
    CHECK(with(appended).empty());  // rows of an append that did not come to its end
    const auto of_two = [](auto& s) {
      s.mutable_published()->set_records(1);
      s.mutable_shape()->mutable_layout()->add_nodes(2);
    };
    CHECK(with(of_two).empty());  // only LFS 0 of the file knows its length, and of that the server speaks
    CHECK(with([&](auto& s) {
            of_two(s);
            s.mutable_shape()->set_index(1);
          }).empty());
    start.put_state(before);
    REQUIRE_OK(start.storage->open(node.root() + "/data/07/not-ours", component::OpenMode::kCreate));
    CHECK(damages().size() == 1);
    REQUIRE_OK(start.storage->remove(node.root() + "/data/07/not-ours"));
    start.put_rotten_state(8);
    CHECK(damages().size() == 1);
  });
}

TEST_CASE("the checker says once what it finds under the last id there may be, and under keys that are no ids") {
  with_killed([](Peer&, Node& node, Start& start, proto::ComponentState state) {
    state.mutable_shape()->set_file(UINT64_MAX);
    start.put_state(state);
    start.put_rotten_state(9);
    start.put_rotten_entry("short");
    const auto report = check_root(*start.storage, *start.store, node.root(), false).value();
    CHECK(report.components == 2);
    CHECK(report.damages.size() == 3);  // the last one's file is missing
  });
}

TEST_CASE("the checker stops where nobody reads on") {
  with_killed([](Peer&, Node& node, Start& start, proto::ComponentState state) {
    for (std::uint64_t file = 100; file < 11'000; ++file) {
      state.mutable_shape()->set_file(file);
      start.put_state(state);
    }
    const auto report = check_root(*start.storage, *start.store, node.root(), false).value();
    CHECK(report.damages.size() > 10'000);
    CHECK(report.damages.size() < 10'900);
  });
}

TEST_CASE("an lfs.toml with a line that cannot be read, or without one it needs, is refused; comments are nothing") {
  const auto read = [](const std::string& text) {
    const auto storage = component::make_memory_storage(component::MemoryDisk::make());
    REQUIRE_OK(storage->make_folder("/lfs0"));
    const auto file = storage->open("/lfs0/lfs.toml", component::OpenMode::kCreate).value();
    REQUIRE_OK(file->write(0, std::as_bytes(std::span(text))));
    return code_of(read_identity(*storage, "/lfs0"));
  };
  const std::string good = "format = 2\ncluster = \"c0ffee\"\nnode = 1\n";
  CHECK(read(good) == Code::kOk);
  CHECK(read("format = 3\ncluster = \"c0ffee\"\nnode = 1\n") == Code::kOk);
  CHECK(read("format = 5\nlater = \"x\"\n") == Code::kVersion);
  CHECK(read("format = 1\ncluster = \"c0ffee\"\nnode = 1\n") == Code::kVersion);
  CHECK(read("# a comment\n\n \n" + good + "name = \"lfs0\"") == Code::kOk);
  CHECK(read("cluster = \"c0ffee\"\nnode = 1\n") == Code::kInvalid);
  CHECK(read("format = 2\nnode = 1\n") == Code::kInvalid);
  CHECK(read("format = 2\ncluster = \"c0ffee\"\n") == Code::kInvalid);
  for (const char* line :
       {"node =", "node = one", "node = 1x", "name = lfs0", "name = \"", "name = \"lfs0", "name", "color = 3"})
    CHECK(read(good + line) == Code::kInvalid);
}

TEST_CASE("overwrites of a file that is gone, or whose files are, hold up nobody else's") {
  with_log([](Peer& peer, Node& node, const std::string& wanted) {
    {
      Start start(node);
      REQUIRE_OK(component::remove_files(*start.storage, component::stem(node.root(), FileId(7))));
      REQUIRE_OK(start.replay());
      CHECK(start.state(7).log_applied() == 0);
    }
    node.start();
    CHECK(peer.read(8, 0, 200).value() == wanted);
    REQUIRE_OK(peer.overwrite(8, 0, 1, pattern(100, 9)));
    REQUIRE_OK(peer.settle({}, {8}));
    node.kill();
    REQUIRE_OK(Start(node).replay());
    CHECK(node.check().value().components == 1);
  });
}

TEST_CASE("overwrites of a file whose entry in the catalogue is rotten hold up nobody else's") {
  with_log([](Peer& peer, Node& node, const std::string& wanted) {
    Start(node).put_rotten_state(7);
    node.start();
    CHECK(peer.read(8, 0, 200).value() == wanted);
    CHECK(code_of(peer.read(7, 0, 200)) == Code::kCorrupt);
  });
}

TEST_CASE("a component whose catalogued lengths do not fit each other is not read, but can be removed") {
  with_killed([](Peer& peer, Node& node, Start& start, proto::ComponentState state) {
    state.set_rows(0x3fff);
    state.set_bytes(0);
    start.put_state(state);
    node.start();
    for (const std::uint32_t stride : {1u, 2u}) CHECK(code_of(peer.read(7, 100, 9, stride)) == Code::kCorrupt);
    REQUIRE_OK(peer.settle({}, {7}));
    CHECK(code_of(peer.read(7, 0, 1)) == Code::kStaleFile);
  });
}

TEST_CASE("a log that does not fit the catalogue is not replayed, and kept") {
  with_log([](Peer&, Node& node, const std::string&) {
    Start start(node);
    const auto before = start.state(7);
    auto changed = before;
    changed.mutable_shape()->mutable_format()->set_kind(9);
    start.put_state(changed);
    CHECK(code_of(start.replay()) == Code::kInvalid);
    changed = before;
    changed.mutable_shape()->mutable_format()->set_record_length(50);
    changed.mutable_shape()->set_chunk_bytes(4050);
    start.put_state(changed);
    CHECK(code_of(start.replay()) == Code::kCorrupt);
    start.put_state(before);
    REQUIRE_OK(start.replay());
    CHECK(start.state(7).log_applied() == 9);
  });
}

TEST_CASE("entries past the end of a component that has become shorter are no bytes of it") {
  with_log([](Peer& peer, Node& node, const std::string& wanted) {
    auto state = Start(node).state(7);
    state.set_rows(40);
    state.set_bytes(4000);
    state.set_data_tail_sum(0);
    state.mutable_published()->set_records(40);
    state.mutable_published()->set_bytes(4000);
    Start(node).put_state(state);
    node.start();
    CHECK(peer.read(7, 0, 200).value() == wanted.substr(0, 4000));
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("after its log is lost an LFS gives no number a second time") {
  with_log([](Peer&, Node& node, const std::string&) {
    Start start(node);
    REQUIRE_OK(start.replay());
    for (const char* name : {"/redo.0", "/redo.1"}) REQUIRE_OK(start.storage->remove(log_folder(node.root()) + name));
    REQUIRE_OK(start.replay());
    CHECK(start.log->last_number() == 10);
    REQUIRE_OK(start.replay());  // nothing to do
    CHECK(start.log->last_number() == 10);
  });
}
