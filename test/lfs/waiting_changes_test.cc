// Changes of one component that wait for each other go on in the order in which they came.
#include "appender.h"
#include "held_executor.h"

namespace pif::lfs::test {
namespace {

using std::chrono::milliseconds;

// An LFS whose disk is waited for when a test says so, and a file of 10 records of 10 bytes.
struct Held {
  void run(const std::function<void(Peer&, Appender&)>& body) {
    with_node(
        [&](Peer& peer, Node& one) {
          node = &one;
          TestFile file;
          file.format = Format::fixed(10);
          REQUIRE_OK(peer.put(file, pattern(100, 1)));
          Appender appender(peer.self(), {&one}, file);
          appender.known = {10, 100};
          body(peer, appender);
          one.disk->set_fault({});
          CHECK(one.check().value().damages.empty());
        },
        1, [&](Node& one) { one.executor = &executor; });
  }
  // Notes from now on what is made durable: the redo log, or rows.
  void watch() {
    node->disk->set_fault([this](std::string_view call, std::string_view path) {
      if (call != "sync") return Code::kOk;
      if (path.ends_with(".dat")) synced += "rows ";
      if (path.find("/log/") != path.npos) synced += "log ";
      return Code::kOk;
    });
  }
  // What is asked for now waits for the disk.
  net::CallId start_held(Peer& peer, net::Packet packet) {
    executor.hold(1);
    const auto call = peer.start(std::move(packet));
    while (executor.held() == 0) peer.self().pause(milliseconds(1));
    return call;
  }
  // It has come to the LFS before anything that is sent later.
  static net::CallId start(Peer& peer, net::Packet packet) {
    const auto call = peer.start(std::move(packet));
    peer.self().pause(milliseconds(50));
    return call;
  }

  HeldExecutor executor;
  Node* node = nullptr;
  std::string synced;
};

net::Packet rows(Appender& a, const proto::ReserveReply& grant, unsigned i) {
  return a.rows_packet(0, grant, 10 + i, 1, pattern(10, 100 + i));
}

}  // namespace

TEST_CASE("appends that waited for a checkpoint become durable together") {
  Held f;
  f.run([&](Peer& peer, Appender& a) {
    REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(10, 2)));
    const auto grant = a.reserve(5, 50).value();
    auto flush = peer.request(0, kMayManage);
    flush.envelope.mutable_flush();
    std::vector<net::CallId> calls{f.start_held(peer, std::move(flush))};
    for (unsigned i = 0; i < 5; ++i) calls.push_back(f.start(peer, rows(a, grant, i)));
    f.watch();
    f.executor.release();
    for (const auto call : calls) REQUIRE_OK(peer.wait(call));
    CHECK(f.synced.starts_with("rows "));  // the checkpoint
    CHECK(f.synced.substr(f.synced.find_last_of('g') + 1) == " rows ");
    REQUIRE_OK(a.done(grant));
    CHECK(peer.read(7, 14, 1).value() == pattern(10, 104));
  });
}

TEST_CASE("an overwrite that waits for an append goes before appends that come after it, and the other way round") {
  Held f;
  f.run([&](Peer& peer, Appender& a) {
    const auto grant = a.reserve(3, 30).value();
    f.watch();
    std::vector<net::CallId> calls{f.start_held(peer, rows(a, grant, 0))};
    calls.push_back(f.start(peer, peer.overwrite_request(7, 0, 1, pattern(10, 2))));
    calls.push_back(f.start(peer, rows(a, grant, 1)));
    f.executor.release();
    for (const auto call : calls) REQUIRE_OK(peer.wait(call));
    CHECK(f.synced == "rows log rows ");

    f.synced.clear();
    calls = {f.start_held(peer, peer.overwrite_request(7, 1, 1, pattern(10, 3)))};
    calls.push_back(f.start(peer, rows(a, grant, 2)));
    calls.push_back(f.start(peer, peer.overwrite_request(7, 2, 1, pattern(10, 4))));
    f.executor.release();
    for (const auto call : calls) REQUIRE_OK(peer.wait(call));
    CHECK(f.synced == "log rows log ");
    REQUIRE_OK(a.done(grant));
    CHECK(peer.read(7, 0, 3).value() == pattern(10, 2) + pattern(10, 3) + pattern(10, 4));
  });
}

}  // namespace pif::lfs::test
