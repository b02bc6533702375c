// Appending by several clients at once to files over several LFSs: no gaps, no loss of what was acknowledged.
#include <set>

#include "appender.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

struct Batch {
  std::vector<std::string> records;
  bool acknowledged = false;
};

// Record i of batch `batch` of client `client`; of a length of its own when variable.
std::string record_of(const Format& format, unsigned client, unsigned batch, unsigned i) {
  auto text = "c" + std::to_string(client) + "b" + std::to_string(batch) + "r" + std::to_string(i) + ".";
  if (!format.is_fixed()) return text + std::string((client * 7 + batch * 3 + i) % 23, 'x');
  text.resize(format.record_length, '_');
  return text;
}

// What one client does: appends batches, sometimes dying on the way.
void append_batches(sim::Actor& self, std::vector<Node*> nodes, const TestFile& file, unsigned client, bool may_die,
                    std::vector<Batch>& all) {
  Appender appender(self, std::move(nodes), file);
  for (unsigned b = 0; b < 8; ++b) {
    Batch batch;
    std::uint64_t bytes = 0;
    const auto count = 1 + self.world().pick(5);
    for (unsigned i = 0; i < count; ++i) {
      batch.records.push_back(record_of(file.format, client, b, i));
      bytes += batch.records.back().size();
    }
    all.push_back(batch);
    auto& mine = all.back();
    const auto self_index = all.size() - 1;
    (void)mine;
    for (unsigned attempt = 0; attempt < 20; ++attempt) {
      const auto grant = appender.reserve(count, bytes);
      if (!grant) {
        self.pause(std::chrono::milliseconds(200));
        continue;
      }
      const bool dies = may_die && self.world().pick(6) == 0;
      const auto lfss = dies ? static_cast<std::uint32_t>(self.world().pick(appender.width())) : appender.width();
      const auto spread = appender.spread(*grant, all[self_index].records, lfss);
      if (dies) return;
      if (!spread) continue;
      const auto done = appender.done(*grant);
      if (done) {
        all[self_index].acknowledged = true;
        break;
      }
      if (done.error().code != Code::kRetry) break;  // unknown: it may be there or not, but must not be twice
    }
  }
}

std::vector<std::string> read_records(Appender& appender) {
  const auto file_length = appender.length();
  std::vector<std::string> out(file_length.records);
  std::uint64_t bytes = 0;
  for (std::uint32_t lfs = 0; lfs < appender.width(); ++lfs) {
    for (std::uint64_t n = lfs; n < file_length.records; n += appender.width()) {
      const auto row = appender.peer(lfs).read(appender.file().id, n / appender.width(), 1);
      REQUIRE_OK(row);
      out[n] = appender.file().format.is_fixed() ? *row : row->substr(4);
      bytes += out[n].size();
    }
  }
  CHECK(bytes == file_length.bytes);
  return out;
}

// Every record of the file is of a whole batch, in order; every acknowledged batch is there once.
void check_file(const std::vector<std::string>& records, const std::vector<Batch>& batches) {
  std::map<std::string, const Batch*> by_first;
  for (const auto& batch : batches) by_first[batch.records[0]] = &batch;
  std::set<const Batch*> seen;
  for (std::size_t n = 0; n < records.size();) {
    const auto at = by_first.find(records[n]);
    INFO("record " << n << ": " << records[n]);
    REQUIRE(at != by_first.end());
    CHECK(seen.insert(at->second).second);
    for (const auto& expected : at->second->records) {
      REQUIRE(n < records.size());
      CHECK(records[n++] == expected);
    }
  }
  for (const auto& batch : batches) {
    if (batch.acknowledged) CHECK(seen.contains(&batch));
  }
}

struct Story {
  Format format;
  bool clients_die = false;
  bool lfss_restart = false;
};

void run_story(std::uint64_t seed, const Story& story) {
  sim::World world(seed);
  Node first(world, "lfs0", 1);
  Node second(world, "lfs1", 2);
  Node third(world, "lfs2", 3);
  const std::vector<Node*> nodes = {&first, &second, &third};
  for (auto* node : nodes) node->start();
  TestFile file;
  file.format = story.format;
  file.nodes = {1, 2, 3};
  std::vector<Batch> batches;
  batches.reserve(1000);
  unsigned left = 4;
  for (unsigned client = 0; client < 4; ++client) {
    world.spawn_main("client" + std::to_string(client), [&, client](sim::Actor& self) {
      append_batches(self, nodes, file, client, story.clients_die, batches);
      --left;
    });
  }
  world.spawn_main("fate", [&](sim::Actor& self) {
    while (left > 0) {
      self.pause(std::chrono::milliseconds(300 + self.world().pick(3000)));
      if (!story.lfss_restart || left == 0) continue;
      auto* node = nodes[self.world().pick(3)];
      self.world().pick(2) ? node->crash() : node->kill();
      self.pause(std::chrono::milliseconds(self.world().pick(200)));
      node->start();
    }
    Appender appender(self, nodes, file);
    check_file(read_records(appender), batches);
    for (auto* node : nodes) {
      node->kill();
      CHECK(node->check().value().damages.empty());
    }
  });
  INFO("seed " << seed);
  world.run();
}

}  // namespace

TEST_CASE("clients that append at once leave no gaps") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    run_story(seed, {Format::fixed(20)});
    run_story(seed, {Format::variable()});
  }
}

TEST_CASE("clients that die while they append never leave a gap") {
  for (std::uint64_t seed = 11; seed <= 20; ++seed) {
    run_story(seed, {Format::fixed(20), true});
    run_story(seed, {Format::variable(), true});
  }
}

TEST_CASE("LFSs that crash while clients append lose nothing that was acknowledged") {
  for (std::uint64_t seed = 31; seed <= 45; ++seed) {
    run_story(seed, {Format::fixed(20), seed % 2 == 0, true});
    run_story(seed, {Format::variable(), seed % 2 == 0, true});
  }
}

TEST_CASE("rows that come before their time wait; rows of a cancelled range are refused and leave nothing") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    file.format = Format::fixed(10);
    Appender a(peer.self(), {&node}, file);
    Appender dead(peer.self(), {&node}, file);
    const auto lost = dead.reserve(2, 20).value();
    const auto mine = a.reserve(1, 10).value();
    CHECK(code_of(a.rows(0, mine, 2, 1, "mine......")) == Code::kRetry);  // rows 0 and 1 never come
    CHECK(code_of(a.done(mine)) == Code::kRetry);
    const auto again = a.reserve(1, 10).value();
    CHECK(again.start().records() == 0);
    CHECK(again.generation() > lost.generation());
    REQUIRE_OK(a.rows(0, again, 0, 1, "again....."));
    CHECK(code_of(a.rows(0, lost, 0, 2, "lost 1....lost 2....")) == Code::kRetry);
    REQUIRE_OK(a.rows(0, again, 0, 1, "again....."));  // a repeated request
    REQUIRE_OK(a.done(again));
    REQUIRE_OK(a.done(again));
    CHECK(a.length() == FileLength{1, 10});
    CHECK(peer.read(7, 0, 1).value() == "again.....");
  });
}

TEST_CASE(
    "one who asks again and again for the end of an append is told when it is enough, and the others hear of the end") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    file.format = Format::fixed(10);
    Appender a(peer.self(), {&node}, file);
    const auto before = a.reserve(1, 10).value(), grant = a.reserve(1, 10).value();
    std::vector<net::CallId> asked;
    for (int i = 0; i < 17; ++i) asked.push_back(peer.start(a.done_packet(grant)));
    CHECK(code_of(peer.wait(asked.back())) == Code::kBusy);
    REQUIRE_OK(a.rows(0, before, 0, 1, "before...."));
    REQUIRE_OK(a.rows(0, grant, 1, 1, "mine......"));
    asked.back() = peer.start(a.done_packet(before));
    for (const auto call : asked) CHECK(peer.wait(call).has_value());
  });
}

TEST_CASE("rows of one user that wait for others have a limit, in bytes, and all else goes on") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    constexpr std::uint64_t kLength = 64u << 10, kMost = (128u << 20) / kLength;
    file.format = Format::fixed(kLength);
    Appender a(peer.self(), {&node}, file);
    const auto grant = a.reserve(kMost + 2, (kMost + 2) * kLength).value();
    const std::string row(kLength, 'r');
    std::vector<net::CallId> asked;
    for (std::uint64_t i = 1; i <= kMost + 1; ++i) {
      asked.push_back(peer.start(a.rows_packet(0, grant, i, 1, row)));
      if (i % 64 == 0) peer.self().pause(std::chrono::milliseconds(1));  // not more than a connection holds
    }
    const auto over = peer.wait(asked.back());
    CHECK(code_of(over) == Code::kRetry);
    CHECK(over.error().text.find("128 MiB of rows waiting") != std::string::npos);
    REQUIRE_OK(a.rows(0, grant, 0, 1, row));  // what they wait for
    asked.pop_back();
    for (const auto call : asked) REQUIRE_OK(peer.wait(call));
    REQUIRE_OK(a.rows(0, grant, kMost + 1, 1, row));
    REQUIRE_OK(a.done(grant));
    CHECK(a.length().records == kMost + 2);
  });
}

TEST_CASE("a byte append fills up a short last record") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    file.format = Format::fixed(10);
    REQUIRE_OK(peer.put(file, "0123456789abcd"));
    Appender a(peer.self(), {&node}, file);
    CHECK(code_of(a.reserve(1, 10)) == Code::kInvalid);
    const auto one = a.reserve(0, 3, true).value();
    CHECK(one.start().bytes() == 14);
    REQUIRE_OK(a.rows(0, one, 1, 1, "efg", 4));
    REQUIRE_OK(a.done(one));
    const auto two = a.reserve(0, 15, true).value();
    REQUIRE_OK(a.rows(0, two, 1, 3, "hijklmnopqrstuv", 7));
    REQUIRE_OK(a.done(two));
    CHECK(a.length() == FileLength{4, 32});
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 9).value() == "0123456789abcdefghijklmnopqrstuv");
    CHECK(a.length() == FileLength{4, 32});
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("overwrites and appends of the same component do not disturb each other") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    auto bytes = pattern(1000, 1);
    REQUIRE_OK(peer.put(file, bytes));
    Appender a(peer.self(), {&node}, file);
    for (unsigned i = 0; i < 30; ++i) {
      const auto fresh = pattern(100, 100 + i);
      REQUIRE_OK(peer.overwrite(7, 9 + i, 1, fresh));  // in the chunk that the append goes on with
      bytes.replace((9 + i) * 100, 100, fresh);
      const auto grant = a.reserve(1, 100).value();
      const auto more = pattern(100, 200 + i);
      REQUIRE_OK(a.rows(0, grant, 10 + i, 1, more));
      REQUIRE_OK(a.done(grant));
      bytes += more;
      if (i % 7 == 3) {
        node.crash();
        node.start();
      }
      CHECK(peer.read(7, 0, 100).value() == bytes);
    }
    node.crash();
    CHECK(node.check().value().damages.empty());
  });
}

namespace {

// An overwrite fails at a call on the redo log; rows are appended to its chunk; an overwrite that works follows if the
// log does.
void check_after_failed_overwrite(std::string_view failing, bool power_loss) {
  with_node([&](Peer& peer, Node& node) {
    TestFile file;
    auto bytes = pattern(1000, 1);
    REQUIRE_OK(peer.put(file, bytes));
    node.disk->set_fault([&](std::string_view call, std::string_view path) {
      return call == failing && path.find("/redo.") != std::string_view::npos ? Code::kIo : Code::kOk;
    });
    CHECK(code_of(peer.overwrite(7, 0, 1, pattern(100, 2))) == Code::kIo);
    node.disk->set_fault({});
    Appender a(peer.self(), {&node}, file);
    const auto grant = a.reserve(2, 200).value();
    bytes += pattern(200, 3);
    REQUIRE_OK(a.rows(0, grant, 10, 2, bytes.substr(1000)));
    REQUIRE_OK(a.done(grant));
    if (peer.overwrite(7, 5, 1, pattern(100, 4))) bytes.replace(500, 100, pattern(100, 4));
    power_loss ? node.crash() : node.kill();
    node.start();
    CHECK(peer.read(7, 0, 12).value() == bytes);
    CHECK(node.check().value().damages.empty());
    REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 5)));
    node.crash();
    node.start();
    CHECK(peer.read(7, 0, 12).value() == bytes.replace(0, 100, pattern(100, 5)));
  });
}

}  // namespace

TEST_CASE(
    "an overwrite that failed in the redo log is not replayed over rows appended since; overwrites after those are") {
  for (const auto* failing : {"write", "sync"})
    for (const bool power_loss : {false, true}) check_after_failed_overwrite(failing, power_loss);
}

TEST_CASE("rows are overwritten once LFS 0 says that they are published, and others never") {
  sim::World world(1);
  Node first(world, "lfs0", 1);
  Node second(world, "lfs1", 2);
  for (auto* other : {&first, &second}) {
    auto& info = second.peers.emplace_back();
    info.set_id(other->id());
    info.set_name(other->name());
    info.mutable_endpoints()->set_unix_path("sim:" + other->name());
    info.mutable_endpoints()->set_ipc("sim:" + other->name());
  }
  first.start();
  second.start();
  TestFile file;
  file.nodes = {1, 2};
  world.spawn_main("client", [&](sim::Actor& self) {
    Appender a(self, {&first, &second}, file);
    const auto overwrite = [&](std::size_t lfs) { return code_of(a.peer(lfs).overwrite(7, 0, 1, pattern(100, 2))); };
    const auto grant = a.reserve(2, 200);
    REQUIRE_OK(grant);
    REQUIRE_OK(a.spread(*grant, {pattern(100, 1), pattern(100, 1)}, 2));
    CHECK(overwrite(0) == Code::kEndOfFile);
    CHECK(overwrite(1) == Code::kEndOfFile);
    REQUIRE_OK(a.done(*grant));
    CHECK(overwrite(0) == Code::kOk);
    CHECK(overwrite(1) == Code::kOk);
    CHECK(a.peer(1).read(7, 0, 1).value() == pattern(100, 2));
    first.kill();
    CHECK(overwrite(1) == Code::kRetry);
    first.start();
    CHECK(overwrite(1) == Code::kOk);
  });
  world.run();
}

TEST_CASE("rows that come without a grant's generation are refused, and are not there") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    const auto bytes = pattern(1000, 1);
    REQUIRE_OK(peer.put(file, bytes));
    Appender a(peer.self(), {&node}, file);
    proto::ReserveReply none;
    none.mutable_base()->set_records(10);
    none.mutable_base()->set_bytes(1000);
    CHECK(code_of(a.rows(0, none, 10, 1, pattern(100, 2))) == Code::kInvalid);
    node.kill();
    const auto report = node.check().value();
    CHECK(report.damages.empty());
    CHECK(report.bytes == 1000);
  });
}

TEST_CASE("a base whose records and bytes do not fit each other is refused, and the LFS goes on") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    REQUIRE_OK(peer.put(file, pattern(1000, 1)));
    Appender a(peer.self(), {&node}, file);
    auto grant = a.reserve(1, 100).value();
    const FileLength huge = fixed_file_length(100, UINT64_MAX);
    // More is missing of the last record than it has; it has more than all; there is none; the records' bytes have
    // no 64 bits.
    for (const auto& base : {FileLength{10, 1}, FileLength{10, 1100}, FileLength{10, 0}, FileLength{0, 5}, huge}) {
      auto lie = grant;
      lie.mutable_base()->set_records(base.records);
      lie.mutable_base()->set_bytes(base.bytes);
      CHECK(code_of(a.rows(0, lie, 10, 1, pattern(100, 2))) == Code::kInvalid);
    }
    REQUIRE_OK(a.rows(0, grant, 10, 1, pattern(100, 2)));
    REQUIRE_OK(a.done(grant));
    CHECK(peer.read(7, 10, 1).value() == pattern(100, 2));
  });
}

TEST_CASE("an append makes no component where published rows should be") {
  with_node([](Peer& peer, Node&) {
    TestFile file;
    file.nodes = {2, 1};
    file.index = 1;
    const auto append = [&](std::uint64_t base) {
      auto packet = peer.request(7, kMayRead | kMayWrite);
      auto& asked = *packet.envelope.mutable_append_rows();
      asked.set_file(7);
      asked.set_first(base / 2);
      asked.set_count(1);
      asked.set_generation(1);
      asked.mutable_base()->set_records(base);
      asked.mutable_base()->set_bytes(base * 100);
      *asked.mutable_shape() = file.shape();
      packet.body = buffer_of(pattern(100, 1));
      return code_of(peer.call(std::move(packet)));
    };
    CHECK(append(20) == Code::kNotFound);  // removed while it was absent, say
    CHECK(append(0) == Code::kOk);
  });
}

TEST_CASE("an LFS that has fewer rows than were published says so instead of going on") {
  with_node([](Peer& peer, Node& node) {
    TestFile file;
    REQUIRE_OK(peer.put(file, pattern(1000, 1)));
    Appender a(peer.self(), {&node}, file);
    auto grant = a.reserve(1, 100).value();
    grant.mutable_base()->set_records(20);
    grant.mutable_base()->set_bytes(2000);
    CHECK(code_of(a.rows(0, grant, 20, 1, pattern(100, 1))) == Code::kCorrupt);
    grant.clear_base();
    auto packet = peer.request(7, kMayWrite);
    packet.envelope.mutable_append_rows()->set_file(7);
    packet.envelope.mutable_append_rows()->set_count(1);
    CHECK(code_of(peer.call(std::move(packet))) == Code::kInvalid);  // no base
  });
}
