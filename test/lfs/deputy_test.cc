// Who sequences the appends of a file with parity while views change. docs/PROTOCOL.md "Append".
#include "../../lfs/src/append/acting.h"
#include "../../lfs/src/store/published_tickets.h"
#include "bevy.h"
#include "fake_server.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"

namespace pif::lfs::test {
namespace {

using States = std::vector<std::pair<LfsIndex, std::uint32_t>>;

constexpr std::uint32_t kBytes = 100;
constexpr LfsIndex kDeputy = 3;  // the first of the second bevy of three
constexpr Duration kBeats = std::chrono::milliseconds(2500);
constexpr Duration kTold = std::chrono::milliseconds(200);  // after it the deputy knows what is published

proto::View view_of(std::uint64_t index, const States& states) {
  proto::View view;
  view.set_index(index);
  for (const auto& [lfs, state] : states) {
    proto::ViewNode& node = *view.add_nodes();
    node.set_node(lfs + 1);
    node.set_state(state);
    node.set_era(1);
    if (wire::is_absent(state)) node.set_lost_order(lfs + 1);
  }
  return view;
}

// Six LFSs, and a PIF Server that tells each the view that the test wants it to have.
class Cluster {
 public:
  explicit Cluster(sim::World& world) : b(world, Format::fixed(kBytes)), world_(world) { server.unknown = 2; }
  ~Cluster() {
    for (auto& node : b.nodes) node->kill();
    if (actor_ && world_.is_alive(*actor_)) world_.kill(*actor_);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // From inside the client's actor. The file has `count` records.
  void begin(sim::Actor& self, std::size_t count) {
    self_ = &self;
    actor_ = world_.spawn("server", [this](sim::Actor& actor) { serve(actor); }, {0, {0}});
    for (auto& node : b.nodes) {
      node->kill();
      node->server.set_unix_path("sim:server");
      node->start();
    }
    pause(kBeats);
    b.connect(self);
    if (count > 0) REQUIRE_OK(b.put(make_records(count, kBytes, 1)));
  }
  void pause(Duration duration) { (void)self_->pause(duration); }
  // Those of `whom` have the view afterwards; nobody named: all.
  void tell(std::uint64_t index, const States& states, std::vector<LfsIndex> whom = {}) {
    if (whom.empty()) whom = {0, 1, 2, 3, 4, 5};
    for (const LfsIndex lfs : whom) views_[lfs + 1] = wire::pack_view(b.nodes[0]->key, view_of(index, states));
    pause(kBeats);
  }

  Result<proto::ReserveReply> reserve_once(LfsIndex lfs, std::uint64_t view, std::uint64_t count = 1) {
    auto packet = b.peers[lfs]->request(b.file.id, kMayRead | kMayWrite);
    auto* asked = packet.envelope.mutable_reserve();
    asked->set_file(b.file.id);
    asked->set_records(count);
    asked->set_bytes(count * kBytes);
    *asked->mutable_shape() = b.at(lfs).shape();
    *asked->mutable_known() = wire::proto_of(known);
    asked->set_view(view);
    PIF_TRY_VALUE(auto reply, b.peers[lfs]->call(std::move(packet)));
    return reply.envelope.reserve_reply();
  }
  // As a client: again, while the sequencer settles.
  proto::ReserveReply reserve(LfsIndex lfs, std::uint64_t view, std::uint64_t count = 1) {
    auto reply = reserve_once(lfs, view, count);
    for (unsigned i = 0; i < 100 && !reply && reply.error().code == Code::kRetry; ++i) {
      pause(std::chrono::milliseconds(20));
      reply = reserve_once(lfs, view, count);
    }
    REQUIRE_OK(reply);
    return *reply;
  }
  net::Packet done_packet(LfsIndex lfs, std::uint64_t view, const proto::ReserveReply& grant) {
    auto packet = b.peers[lfs]->request(b.file.id, kMayRead | kMayWrite);
    auto* asked = packet.envelope.mutable_append_done();
    asked->set_file(b.file.id);
    asked->set_ticket(grant.ticket());
    asked->set_generation(grant.generation());
    asked->set_view(view);
    return packet;
  }
  Status done(LfsIndex lfs, std::uint64_t view, const proto::ReserveReply& grant) {
    PIF_TRY(b.peers[lfs]->call(done_packet(lfs, view, grant)));
    return {};
  }
  // Without rows, which no sequencer looks at.
  proto::ReserveReply append(LfsIndex lfs, std::uint64_t view, std::uint64_t count = 1) {
    const auto grant = reserve(lfs, view, count);
    REQUIRE_OK(done(lfs, view, grant));
    return grant;
  }
  Result<std::uint64_t> length(LfsIndex lfs, std::uint64_t view, bool noted = false) {
    auto packet = b.peers[lfs]->request(b.file.id, kMayRead);
    packet.envelope.mutable_length()->set_file(b.file.id);
    packet.envelope.mutable_length()->set_view(view);
    packet.envelope.mutable_length()->set_noted(noted);
    PIF_TRY_VALUE(const auto reply, b.peers[lfs]->call(std::move(packet)));
    return reply.envelope.length_reply().file_length().records();
  }
  // published: what LFS 0 says that it has published.
  Status note(std::uint64_t view, std::uint64_t generation, std::uint64_t records, std::uint64_t published = 0) {
    auto packet = b.peers[kDeputy]->request(0, kMayManage | kMayRead);
    auto* asked = packet.envelope.mutable_note_length();
    *asked->mutable_shape() = b.at(kDeputy).shape();
    asked->set_generation(generation);
    asked->set_view(view);
    *asked->mutable_noted()->mutable_file_length() = wire::proto_of(FileLength{records, records * kBytes});
    asked->mutable_noted()->set_generation(generation);
    asked->mutable_noted()->set_ticket(1);
    *asked->mutable_published()->mutable_file_length() = wire::proto_of(FileLength{published, published * kBytes});
    PIF_TRY(b.peers[kDeputy]->call(std::move(packet)));
    return {};
  }
  // In its catalogue.
  int components(LfsIndex lfs) {
    auto packet = b.peers[lfs]->request(0, kMayManage);
    packet.envelope.mutable_list_components()->set_limit(100);
    const auto reply = b.peers[lfs]->call(std::move(packet));
    REQUIRE_OK(reply);
    return reply->envelope.list_components_reply().components_size();
  }

  Bevies b;
  FakeServer server;
  FileLength known;  // the directory's

 private:
  void serve(sim::Actor& actor) {
    for (;;) {
      auto delivery = actor.messenger().receive(kNever);
      if (!delivery) return;
      if (!*delivery || (*delivery)->kind != net::Delivery::Kind::kPacket) continue;
      const auto& request = (*delivery)->packet.envelope;
      if (request.has_heartbeat()) server.view = views_[request.heartbeat().node().id()];
      auto reply = server.answer(request);
      if (request.has_list_lost()) reply.envelope.mutable_list_lost_reply();
      if (request.has_node_rebuilt()) reply.envelope.mutable_done();
      (void)actor.messenger().send((*delivery)->peer, std::move(reply));
    }
  }

  sim::World& world_;
  sim::Actor* self_ = nullptr;
  std::optional<sim::ActorId> actor_;
  std::map<std::uint32_t, std::string> views_;  // packed, by node
};

void with_cluster(std::size_t count, const std::function<void(Cluster&)>& body) {
  sim::World world(1);
  Cluster cluster(world);
  world.spawn_main("client", [&](sim::Actor& self) {
    cluster.begin(self, count);
    body(cluster);
    cluster.b.peers.clear();
  });
  world.run();
}

TEST_CASE("LFS 0 sequences, its deputy where that is absent, and nobody where both are") {
  TestFile file;
  file.nodes = {11, 12, 13, 14, 15, 16};
  file.bevies = {3, 3};
  const auto shape = file.shape();
  const auto layout = wire::layout_of(shape.layout()).value();
  ClusterKey key;
  ViewState view(key, 11);
  const auto adopt = [&](std::uint64_t index, std::uint32_t first, std::uint32_t deputy) {
    proto::View next;
    next.set_index(index);
    for (const auto& [node, state] : {std::pair(11u, first), std::pair(14u, deputy)}) {
      next.add_nodes()->set_node(node);
      next.mutable_nodes(next.nodes_size() - 1)->set_state(state);
    }
    view.adopt(next, "");
  };
  CHECK(acting_sequencer(layout, shape, view).value() == 0);
  adopt(1, wire::kViewReturning, wire::kViewMember);
  CHECK(acting_sequencer(layout, shape, view).value() == 0);
  adopt(2, wire::kViewLost, wire::kViewMember);
  CHECK(acting_sequencer(layout, shape, view).value() == 3);
  adopt(3, wire::kViewRebuilding, wire::kViewReturning);
  CHECK(acting_sequencer(layout, shape, view).value() == 3);
  adopt(4, wire::kViewLost, wire::kViewRebuilding);
  const auto nobody = acting_sequencer(layout, shape, view);
  REQUIRE(!nobody);
  CHECK(nobody.error().code == Code::kUnavailable);
  CHECK(nobody.error().text.find("node 11") != std::string::npos);
  CHECK(nobody.error().text.find("node 14") != std::string::npos);
  file.bevies.clear();  // without parity
  const auto plain = file.shape();
  CHECK(acting_sequencer(wire::layout_of(plain.layout()).value(), plain, view).value() == 0);
}

TEST_CASE("the deputy goes on from the noted length, and LFS 0 from the deputy's when it is back") {
  with_cluster(10, [](Cluster& c) {
    const auto first = c.append(0, 0, 5);
    CHECK(first.start().records() == 10);
    c.tell(1, {{0, wire::kViewLost}});
    const auto second = c.append(kDeputy, 1, 2);
    CHECK(second.start().records() == 15);
    CHECK(second.base().records() == 15);
    CHECK(second.generation() > first.generation());
    CHECK(c.length(kDeputy, 0, true).value() == 17);
    CHECK(c.length(kDeputy, 1).value() == 17);
    c.b.nodes[kDeputy]->crash();
    c.b.nodes[kDeputy]->start();
    c.pause(kBeats);
    const auto third = c.append(kDeputy, 1);
    CHECK(third.start().records() == 17);
    CHECK(third.generation() > second.generation());
    c.tell(2, {{0, wire::kViewMember}});
    const auto fourth = c.append(0, 2);
    CHECK(fourth.start().records() == 18);
    CHECK(fourth.generation() > third.generation());
    CHECK(c.length(0, 2).value() == 19);
    c.pause(kTold);
    CHECK(c.length(kDeputy, 2, true).value() == 19);
    for (const auto& one : {first, second, third, fourth}) REQUIRE_OK(c.done(0, 2, one));  // whoever published it
    c.tell(3, {{0, wire::kViewLost}});
    for (const auto& one : {first, second, third, fourth}) REQUIRE_OK(c.done(kDeputy, 3, one));
  });
}

TEST_CASE("what was published so long ago that nobody knows is neither published nor given up") {
  with_cluster(10, [](Cluster& c) {
    const auto first = c.append(0, 0);
    const auto never = c.reserve(0, 0);
    for (std::uint64_t view = 1; view <= 16; ++view) {
      c.tell(view, {{5, wire::kViewLost}});  // each begins a generation
      if (view == 16) CHECK(c.done(0, view, first));
      (void)c.append(0, view);
    }
    CHECK(code_of(c.done(0, 16, never)) == Code::kUnavailable);
    c.tell(17, {{0, wire::kViewLost}});
    CHECK(code_of(c.done(kDeputy, 17, first)) == Code::kUnavailable);
    c.b.nodes[0]->crash();
    c.b.nodes[0]->start();
    c.tell(18, {});
    CHECK(code_of(c.done(0, 18, first)) == Code::kUnavailable);
  });
}

TEST_CASE("a deputy shows what LFS 0 has published, and what is noted once it acts") {
  with_cluster(10, [](Cluster& c) {
    const auto grant = c.append(0, 0);
    c.pause(kTold);
    CHECK(c.length(kDeputy, 0, true).value() == 11);
    REQUIRE_OK(c.note(0, grant.generation(), 20));
    CHECK(code_of(c.length(kDeputy, 0, true)) == Code::kRetry);
    CHECK(c.length(kDeputy, 1, true).error().code == Code::kRetry);  // it has not heard of that view
    c.tell(1, {{5, wire::kViewLost}});
    CHECK(code_of(c.length(kDeputy, 0, true)) == Code::kRetry);
    CHECK(c.length(kDeputy, 1, true).value() == 11);  // an LFS that asks wants what is published
    c.tell(2, {{0, wire::kViewLost}});
    CHECK(c.length(kDeputy, 0, true).value() == 20);
    CHECK(c.append(kDeputy, 2).start().records() == 20);
  });
}

TEST_CASE("the deputy begins with the directory's length of a file that nobody appended to") {
  with_cluster(11, [](Cluster& c) {
    REQUIRE(c.b.layout.rows(kDeputy, 12) == c.b.layout.rows(kDeputy, 11));
    c.tell(1, {{0, wire::kViewRebuilding}});
    c.known = {12, 12 * kBytes};
    CHECK(c.append(kDeputy, 1).start().records() == 12);
    CHECK(c.append(kDeputy, 1).start().records() == 13);
    CHECK(c.length(kDeputy, 0, true).value() == 14);
    c.known = {20, 20 * kBytes};
    CHECK(code_of(c.reserve_once(kDeputy, 1)) == Code::kStaleNode);
  });
}

TEST_CASE("the deputy makes the component of a file that is empty") {
  with_cluster(0, [](Cluster& c) {
    c.tell(1, {{0, wire::kViewLost}});
    CHECK(c.append(kDeputy, 1).start().records() == 0);
    CHECK(c.length(kDeputy, 0, true).value() == 1);
  });
}

// It would have none of the rows and the parity that belong to the length it is told: a scrub takes that for a damage.
// Mostly the file was removed, and whoever asks has not heard of it.
TEST_CASE("where a part of a file belongs that has no component, appends and notes make none") {
  with_cluster(0, [](Cluster& c) {
    REQUIRE(c.b.layout.rows(kDeputy, 1) == 0);  // but the parity of the first record
    REQUIRE(c.b.layout.parity_rows(kDeputy, 1) == 1);
    const std::uint64_t generation = std::uint64_t{1} << 40;
    CHECK(code_of(c.note(0, generation, 1)) == Code::kNotFound);
    CHECK(code_of(c.note(0, generation, 0, 20)) == Code::kNotFound);
    proto::ReserveReply grant;
    grant.set_generation(generation);
    *grant.mutable_base() = wire::proto_of(FileLength{1, kBytes});
    CHECK(code_of(c.b.append_rows(kDeputy, grant, 0, {pattern(kBytes, 1)})) == Code::kNotFound);
    c.tell(1, {{0, wire::kViewLost}});
    for (const std::uint64_t records : {1, 100}) {
      c.known = {records, records * kBytes};
      CHECK(code_of(c.reserve_once(kDeputy, 1)) == Code::kNotFound);
    }
    for (const LfsIndex lfs : {LfsIndex{0}, kDeputy}) CHECK(c.components(lfs) == 0);
  });
}

TEST_CASE("LFS 0 without the component of a file that was removed there takes no length from its deputy") {
  with_cluster(10, [](Cluster& c) {
    (void)c.append(0, 0, 5);
    c.pause(kTold);
    REQUIRE_OK(c.b.peers[0]->settle({}, {c.b.file.id}));
    c.b.nodes[0]->restart();  // which forgets that the file was removed
    c.pause(kBeats);
    Code code = Code::kRetry;
    for (unsigned i = 0; i < 10 && code == Code::kRetry; ++i) {
      code = code_of(c.reserve_once(0, 0));
      c.pause(std::chrono::milliseconds(20));
    }
    CHECK(code == Code::kNotFound);
    CHECK(c.components(0) == 0);
  });
}

TEST_CASE("a note of LFS 0 that has not heard of a file's removal brings nothing of it back at the deputy") {
  with_cluster(10, [](Cluster& c) {
    (void)c.append(0, 0);
    REQUIRE_OK(c.b.peers[kDeputy]->settle({}, {c.b.file.id}));
    c.b.nodes[kDeputy]->restart();
    c.pause(kBeats);  // LFS 0 says what it has published
    CHECK(code_of(c.length(kDeputy, 0, true)) != Code::kRetry);
    CHECK(c.components(kDeputy) == 0);
  });
}

TEST_CASE("who does not sequence in the view grants and finishes nothing") {
  with_cluster(10, [](Cluster& c) {
    c.tell(1, {{5, wire::kViewLost}});
    const auto grant = c.reserve(0, 1);
    CHECK(code_of(c.reserve_once(kDeputy, 1)) == Code::kInvalid);
    CHECK(code_of(c.done(kDeputy, 1, grant)) == Code::kInvalid);
    CHECK(code_of(c.reserve_once(0, 9)) == Code::kRetry);
    CHECK(code_of(c.done(0, 9, grant)) == Code::kOldView);  // not kRetry: it may be published yet
    c.tell(2, {{0, wire::kViewLost}, {5, wire::kViewLost}});
    CHECK(code_of(c.reserve_once(kDeputy, 1)) == Code::kOldView);
    CHECK(code_of(c.reserve_once(0, 2)) == Code::kUnavailable);
    CHECK(code_of(c.done(0, 2, grant)) == Code::kUnavailable);
    CHECK(code_of(c.length(0, 2)) == Code::kUnavailable);
    CHECK(code_of(c.done(kDeputy, 2, grant)) == Code::kRetry);  // it was never published, and will not be
    const auto taken = c.reserve(kDeputy, 2);
    CHECK(taken.start().records() == 10);
    c.tell(3, {{0, wire::kViewReturning}, {5, wire::kViewLost}});
    CHECK(code_of(c.reserve_once(0, 3)) == Code::kRetry);
    CHECK(code_of(c.done(0, 3, grant)) == Code::kOldView);
    CHECK(code_of(c.length(0, 3)) == Code::kUnavailable);
    CHECK(code_of(c.reserve_once(kDeputy, 3)) == Code::kInvalid);
    CHECK(code_of(c.done(kDeputy, 2, taken)) == Code::kOldView);
    CHECK(code_of(c.done(kDeputy, 3, taken)) == Code::kInvalid);
    CHECK(c.length(kDeputy, 3, true).value() == 10);
    c.tell(4, {{0, wire::kViewLost}, {kDeputy, wire::kViewLost}});
    CHECK(code_of(c.reserve_once(kDeputy, 4)) == Code::kUnavailable);
    CHECK(code_of(c.length(kDeputy, 4, true)) == Code::kUnavailable);
    CHECK(code_of(c.note(4, std::uint64_t{1} << 40, 20)) == Code::kUnavailable);
  });
}

TEST_CASE("the deputy takes no notes while it acts, none of another view, and none of an older generation") {
  with_cluster(10, [](Cluster& c) {
    const auto grant = c.append(0, 0);
    CHECK(code_of(c.note(0, grant.generation() - 1, 20)) == Code::kRetry);
    c.tell(1, {{0, wire::kViewLost}});
    CHECK(code_of(c.note(0, std::uint64_t{1} << 40, 20)) == Code::kOldView);
    CHECK(code_of(c.note(1, std::uint64_t{1} << 40, 20)) == Code::kOldView);
    const auto taken = c.append(kDeputy, 1);
    c.tell(2, {{0, wire::kViewMember}});
    CHECK(code_of(c.note(1, std::uint64_t{1} << 40, 20)) == Code::kOldView);
    CHECK(code_of(c.note(3, std::uint64_t{1} << 40, 20)) == Code::kRetry);
    CHECK(code_of(c.note(2, taken.generation(), 20)) == Code::kRetry);  // that is the deputy's own
    CHECK(c.length(kDeputy, 0, true).value() == 12);
    REQUIRE_OK(c.note(2, taken.generation() + 1, 20));
    CHECK(code_of(c.length(kDeputy, 0, true)) == Code::kRetry);
    CHECK(c.length(kDeputy, 2, true).value() == 12);
  });
}

TEST_CASE("a view cancels what was granted, and who waits for it looks for the new one") {
  with_cluster(10, [](Cluster& c) {
    const auto first = c.reserve(0, 0);
    const auto second = c.reserve(0, 0);
    const auto waiting = c.b.peers[0]->start(c.done_packet(0, 0, second));
    c.tell(1, {{5, wire::kViewLost}});
    CHECK(code_of(c.b.peers[0]->wait(waiting)) == Code::kOldView);
    CHECK(code_of(c.done(0, 1, first)) == Code::kRetry);
    CHECK(code_of(c.done(0, 1, second)) == Code::kRetry);
    const auto next = c.append(0, 1);
    CHECK(next.start().records() == 10);
    CHECK(next.generation() > second.generation());
    CHECK(c.length(0, 1).value() == 11);
  });
}

TEST_CASE("a publication whose note was sent is finished when the deputy is lost, and noted when it is back") {
  with_cluster(10, [](Cluster& c) {
    const auto grant = c.reserve(0, 0);
    c.b.nodes[kDeputy]->kill();
    const auto waiting = c.b.peers[0]->start(c.done_packet(0, 0, grant));
    c.pause(std::chrono::seconds(1));
    CHECK(c.length(0, 0).error().code == Code::kUnavailable);  // no lease
    c.tell(1, {{kDeputy, wire::kViewLost}});
    REQUIRE_OK(c.b.peers[0]->wait(waiting));
    CHECK(c.length(0, 0).value() == 11);  // nobody else could answer
    CHECK(c.append(0, 1).start().records() == 11);
    c.b.nodes[kDeputy]->start();
    c.pause(kBeats);
    c.tell(2, {{kDeputy, wire::kViewMember}});
    const auto next = c.reserve(0, 2);
    CHECK(next.start().records() == 12);
    CHECK(c.length(kDeputy, 2, true).value() == 12);
  });
}

TEST_CASE("LFS 0 that goes on with an older view publishes nothing, and says so") {
  with_cluster(10, [](Cluster& c) {
    c.tell(1, {{5, wire::kViewLost}});
    const auto old = c.reserve(0, 1);
    c.tell(2, {{0, wire::kViewLost}, {5, wire::kViewLost}}, {1, 2, 3, 4});
    const auto taken = c.append(kDeputy, 2);
    CHECK(taken.start().records() == 10);
    CHECK(taken.generation() > old.generation());
    CHECK(code_of(c.done(0, 1, old)) == Code::kOldView);
    CHECK(code_of(c.reserve_once(0, 1)) == Code::kOldView);
    CHECK(code_of(c.length(0, 0)) == Code::kUnavailable);  // it has no lease
    CHECK(code_of(c.done(kDeputy, 2, old)) == Code::kRetry);
    c.tell(2, {{0, wire::kViewLost}, {5, wire::kViewLost}}, {0});
    CHECK(code_of(c.reserve_once(0, 2)) == Code::kUnavailable);
    c.tell(3, {{5, wire::kViewLost}});
    CHECK(c.append(0, 3).start().records() == 11);
  });
}

TEST_CASE("LFS 0 that is back waits for a deputy that has not heard of it") {
  with_cluster(10, [](Cluster& c) {
    c.tell(1, {{0, wire::kViewLost}});
    const auto taken = c.reserve(kDeputy, 1);
    c.tell(2, {{0, wire::kViewMember}}, {0, 1, 2, 4, 5});
    CHECK(code_of(c.reserve_once(0, 2)) == Code::kRetry);
    REQUIRE_OK(c.done(kDeputy, 1, taken));  // all of it in the older view
    CHECK(code_of(c.reserve_once(0, 2)) == Code::kRetry);
    c.tell(2, {{0, wire::kViewMember}}, {kDeputy});
    CHECK(c.append(0, 2).start().records() == 11);
    REQUIRE_OK(c.done(0, 2, taken));
  });
}

TEST_CASE("no generation is given out twice, whoever acts and whatever is started again") {
  with_cluster(10, [](Cluster& c) {
    std::uint64_t last = 0;
    std::uint64_t records = 10;
    for (std::uint64_t view = 1; view <= 8; ++view) {
      const bool is_lost = view % 2 == 1;
      c.tell(view, {{0, is_lost ? wire::kViewLost : wire::kViewMember}});
      const LfsIndex acting = is_lost ? kDeputy : 0;
      const auto published = c.append(acting, view);
      CHECK(published.start().records() == records++);
      CHECK(published.generation() > last);
      const auto open = c.reserve(acting, view);  // nobody hears of it any more
      CHECK(open.generation() >= published.generation());
      last = open.generation();
      Node& again = *c.b.nodes[view % 3 == 0 ? kDeputy : 0];
      again.crash();
      again.start();
      c.pause(kBeats);
    }
  });
}

TEST_CASE("nobody takes a generation that no sequencer gives out, and the highest one below ends no LFS") {
  with_cluster(10, [](Cluster& c) {
    proto::ReserveReply grant = c.append(0, 0);
    const auto ask = [&](LfsIndex lfs, std::uint64_t generation) {
      grant.set_generation(generation);
      return code_of(c.b.append_rows(lfs, grant, c.b.layout.rows(lfs, 10), {pattern(kBytes, 9)}));
    };
    c.b.records.push_back(pattern(kBytes, 9));
    for (const std::uint64_t generation : {kGenerationEnd, ~std::uint64_t{0}}) {
      CHECK(ask(0, generation) == Code::kInvalid);
      CHECK(ask(kDeputy, generation) == Code::kInvalid);
      CHECK(code_of(c.b.cover(kDeputy, grant, 10)) == Code::kInvalid);
      CHECK(code_of(c.note(0, generation, 20)) == Code::kInvalid);
    }
    CHECK(c.append(0, 0).start().records() == 11);
    for (const LfsIndex lfs : {LfsIndex{0}, kDeputy}) CHECK(ask(lfs, kGenerationEnd - 1) == Code::kOk);
    c.b.nodes[0]->restart();
    c.pause(kBeats);
    CHECK(c.reserve_once(0, 0).error().code == Code::kRetry);
    c.tell(1, {{0, wire::kViewLost}});
    CHECK(c.reserve_once(kDeputy, 1).error().code == Code::kBusy);
    CHECK(c.length(kDeputy, 1).value() == 12);
  });
}

// Between a publication and the word of it, the first 100 ms, whatever happens.
TEST_CASE("a deputy hears what was published though a view or a restart of LFS 0 comes between, and nobody appends") {
  const bool is_restart = GENERATE(false, true);
  with_cluster(10, [&](Cluster& c) {
    (void)c.append(0, 0);
    if (is_restart) {
      c.b.nodes[0]->restart();
      c.pause(kBeats);
      CHECK(code_of(c.length(kDeputy, 0, true)) == Code::kRetry);
      CHECK(code_of(c.length(0, 0)) == Code::kUnavailable);  // no lease: the deputy is asked
    } else {
      c.b.nodes[kDeputy]->kill();
      c.tell(1, {{5, wire::kViewLost}});
      c.b.nodes[kDeputy]->start();
    }
    c.pause(kBeats);
    CHECK(c.length(kDeputy, 0, true).value() == 11);
  });
}

TEST_CASE("LFS 0 answers for the length with a lease, and the deputy always") {
  with_cluster(10, [](Cluster& c) {
    (void)c.append(0, 0);
    c.pause(kTold);
    CHECK(code_of(c.length(0, 0)) == Code::kUnavailable);
    CHECK(c.length(kDeputy, 0, true).value() == 11);
    c.server.lease_ms = 6000;
    c.pause(kBeats);
    CHECK(c.length(0, 0).value() == 11);
    c.server.lease_ms = 0;
    c.pause(std::chrono::seconds(8));
    CHECK(code_of(c.length(0, 0)) == Code::kUnavailable);
    CHECK(code_of(c.length(kDeputy, 0)) == Code::kInvalid);
    c.tell(1, {{0, wire::kViewLost}});
    CHECK(c.length(kDeputy, 0).value() == 11);
  });
}

}  // namespace
}  // namespace pif::lfs::test
