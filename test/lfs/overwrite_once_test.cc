// An overwrite is done once, however often it is sent, and whatever becomes of the LFS in between.
#include "../../lfs/src/store/catalogue.h"
#include "held_executor.h"
#include "node.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

constexpr std::uint64_t kFile = 7;

// A client with a session, of file 7 with ten records of 100 bytes.
struct Client {
  Client(Peer& peer_in, Node& node, std::uint64_t session) : peer(peer_in) {
    credential =
        mint(node.key, Credential{SessionId(session), 1000, {1000}, peer.self().clock().wall_seconds() + 6000});
  }

  net::Packet request(std::uint64_t id, const std::string& bytes) {
    auto packet = peer.overwrite_request(kFile, 0, 1, bytes, 10, 5);
    packet.envelope.set_id(id);
    packet.envelope.set_credential(credential);
    return packet;
  }
  Code send(std::uint64_t id, const std::string& bytes) {
    peer.credential = credential;
    return code_of(peer.call(request(id, bytes)));
  }

  Peer& peer;
  std::string credential;
};

std::string read(Peer& peer) {
  peer.credential.clear();
  return peer.read(kFile, 0, 1).value().substr(10, 5);
}

void wait_for(Peer& peer, const HeldExecutor& executor, std::size_t held) {
  while (executor.held() < held) peer.self().pause(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("an overwrite whose LFS dies between sync and answer is not done again after somebody else's") {
  for (const bool power_loss : {false, true}) {
    for (const bool checkpoint : {false, true}) {
      with_node([&](Peer& peer, Node& node) {
        REQUIRE_OK(peer.put(TestFile{}, pattern(1000, 1)));
        Client a(peer, node, 1), b(peer, node, 2);
        CHECK(a.send(1001, "first") == Code::kOk);  // but the answer never came
        if (checkpoint) REQUIRE_OK(peer.flush());
        power_loss ? node.crash() : node.kill();
        node.start();
        CHECK(b.send(1001, "other") == Code::kOk);
        CHECK(a.send(1001, "first") == Code::kOk);
        CHECK(read(peer) == "other");
        node.restart();
        CHECK(a.send(1001, "first") == Code::kOk);
        CHECK(b.send(1001, "other") == Code::kOk);
        CHECK(a.send(1002, "later") == Code::kOk);
        CHECK(read(peer) == "later");
      });
    }
  }
}

TEST_CASE("an overwrite that is not in the log when its LFS dies is done when it is sent again") {
  HeldExecutor executor;
  with_node(
      [&](Peer& peer, Node& node) {
        REQUIRE_OK(peer.put(TestFile{}, pattern(1000, 1)));
        Client a(peer, node, 1);
        executor.hold();
        const net::CallId lost = peer.start(a.request(1001, "first"));
        wait_for(peer, executor, 1);  // the batch is not written
        node.crash();
        node.executor = nullptr;
        node.start();
        CHECK_FALSE(peer.wait(lost).has_value());
        CHECK(read(peer) == pattern(1000, 1).substr(10, 5));
        CHECK(a.send(1001, "first") == Code::kOk);
        CHECK(read(peer) == "first");
      },
      1, [&](Node& node) { node.executor = &executor; });
}

TEST_CASE("an overwrite that is sent again while the first is under way is done once, in front of what came between") {
  HeldExecutor executor;
  with_node(
      [&](Peer& peer, Node& node) {
        REQUIRE_OK(peer.put(TestFile{}, pattern(1000, 1)));
        Peer elsewhere(peer.self(), node);  // another connection; its answers go to whoever waits in this actor
        Client a(peer, node, 1), b(peer, node, 2), c(peer, node, 3);
        // The first is in the batch that is being logged, or waits for the next one.
        for (const bool waits : {false, true}) {
          const std::uint64_t id = waits ? 2001 : 1001;
          executor.hold(1);
          std::vector<net::CallId> calls;
          if (waits) {
            calls.push_back(peer.start(c.request(id + 2, "start")));
            wait_for(peer, executor, 1);
          }
          calls.push_back(peer.start(a.request(id, "first")));
          wait_for(peer, executor, 1);
          calls.push_back(peer.start(b.request(id + 1, "other")));
          peer.self().pause(std::chrono::milliseconds(50));
          (void)elsewhere.start(a.request(id, "first"));
          peer.self().pause(std::chrono::milliseconds(50));
          executor.release();
          for (const auto call : calls) REQUIRE_OK(peer.wait(call));
          peer.self().pause(std::chrono::milliseconds(50));  // what comes again is handled, too
          CHECK(read(peer) == "other");
        }
      },
      1, [&](Node& node) { node.executor = &executor; });
}

TEST_CASE("an overwrite that is sent again after so long that it is not known is refused, and not done") {
  for (const bool restarted : {false, true}) {
    with_node([&](Peer& peer, Node& node) {
      REQUIRE_OK(peer.put(TestFile{}, pattern(1000, 1)));
      Client a(peer, node, 1), b(peer, node, 2);
      CHECK(a.send(1001, "first") == Code::kOk);
      CHECK(b.send(1001, "other") == Code::kOk);
      peer.self().pause(std::chrono::seconds(61));
      CHECK(b.send(1002, "third") == Code::kOk);  // nothing is forgotten while nothing happens
      if (restarted) {
        REQUIRE_OK(peer.flush());
        node.restart();
      }
      CHECK(a.send(1001, "first") == Code::kOutcomeUnknown);
      CHECK(a.send(1000, "early") == Code::kOutcomeUnknown);
      CHECK(read(peer) == "third");
      CHECK(a.send(1002, "later") == Code::kOk);
      CHECK(read(peer) == "later");
    });
  }
}

TEST_CASE("an overwrite whose log failed to sync, and over which rows were appended, is not said to be done") {
  with_node([&](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(1000, 1)));
    Client a(peer, node, 1);
    node.disk->set_fault([](std::string_view call, std::string_view path) {
      return call == "sync" && path.find("/redo.") != std::string_view::npos ? Code::kIo : Code::kOk;
    });
    CHECK(a.send(1001, "first") == Code::kIo);
    node.disk->set_fault({});
    peer.credential.clear();
    // As rows that are appended do: what the log has of the component is of no use any more.
    node.kill();
    const auto store = kv::open_memory(node.catalogue);
    auto state = **lfs::catalogue::get(*store, FileId(kFile));
    state.set_log_applied(1000);
    auto transaction = store->write().value();
    REQUIRE_OK(lfs::catalogue::put(*transaction, state));
    REQUIRE_OK(transaction->commit());
    node.start();
    const Code again = a.send(1001, "first");
    const bool is_there = read(peer) == "first";
    CHECK((again == Code::kOutcomeUnknown || is_there));
  });
}
