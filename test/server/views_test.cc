// Who takes part: the states of nodes, who declares them, and what LFSs are told. docs/PROTOCOL.md "Views".
#include "../../server/src/context/views.h"

#include <map>
#include <set>

#include "views_fixture.h"

namespace pif::server::testing {
namespace {

constexpr ViewState kStates[] = {kViewMember, kViewLost, kViewRebuilding, kViewReturning};

Code code_of(const Result<Envelope>& result) { return result ? Code::kOk : result.error().code; }

TEST_CASE("each state follows those that it may, and no others") {
  const std::set<std::pair<ViewState, ViewState>> allowed = {
      {kViewMember, kViewLost},     {kViewRebuilding, kViewLost},      {kViewReturning, kViewLost},
      {kViewLost, kViewRebuilding}, {kViewRebuilding, kViewReturning}, {kViewLost, kViewReturning},
      {kViewReturning, kViewMember}};
  for (const ViewState from : kStates) {
    for (const ViewState to : kStates) {
      INFO(view_state_name(from) << " to " << view_state_name(to));
      CHECK(may_move(from, to) == allowed.contains({from, to}));
    }
  }
}

TEST_CASE("an era rises at loss and return only, and those absent are ordered by when they were lost") {
  Views views;
  CHECK(views.view().nodes_size() == 0);
  views.move(5, kViewLost, 10);
  views.move(2, kViewLost, 11);
  CHECK(views.absent() == std::vector<std::uint32_t>{5, 2});
  views.move(5, kViewRebuilding, 12);
  CHECK(views.of(5).era == 1);
  CHECK(views.absent() == std::vector<std::uint32_t>{5, 2});
  views.move(5, kViewReturning, 13);
  CHECK(views.of(5).era == 2);
  CHECK(views.of(5).is_incomplete);
  CHECK(views.absent() == std::vector<std::uint32_t>{2});
  views.move(5, kViewLost, 14);
  CHECK(views.absent() == std::vector<std::uint32_t>{2, 5});
  views.move(5, kViewReturning, 15);
  views.move(5, kViewMember, 16);
  CHECK(views.of(5).era == 4);
  CHECK_FALSE(views.of(5).is_incomplete);
  CHECK(views.index() == 16);
  REQUIRE(views.view().nodes_size() == 2);
  CHECK(views.view().nodes(0).node() == 2);
  CHECK(views.view().nodes(1).state() == kViewMember);
}

TEST_CASE("what is stored of a node is what it was, and what cannot be is refused") {
  for (const ViewState state : kStates) {
    Views views;
    views.move(3, kViewLost, 7);
    if (state == kViewRebuilding) views.move(3, state, 8);
    if (state == kViewReturning || state == kViewMember) views.move(3, kViewReturning, 8);
    if (state == kViewMember) views.move(3, state, 9);
    proto::StoredNode row;
    views.describe(3, row);
    Views again;
    REQUIRE(again.load(3, row));
    CHECK(again.view().SerializeAsString() == views.view().SerializeAsString());
    CHECK(again.of(3).is_incomplete == views.of(3).is_incomplete);
    CHECK_FALSE(Views().load(4, row));
    row.mutable_view()->set_state(5);
    CHECK_FALSE(Views().load(3, row));
  }
}

TEST_CASE("a node is declared lost once its lease is over, by the owner only, and once") {
  Some some(3);
  CHECK(code_of(some.lost(9)) == Code::kNotFound);
  CHECK(code_of(some.lost(1)) == Code::kBusy);
  CHECK(code_of(some.lost(1, true)) == Code::kBusy);  // it is up
  some.live(6, {2, 3});
  CHECK(code_of(some.lost(1, true)) == Code::kBusy);  // it may act alone yet
  some.live(1, {2, 3});
  Envelope request;
  request.mutable_node_lost()->set_node(1);
  CHECK(code_of(Client(some.world, 1000).ask(request)) == Code::kPermission);
  const auto before = some.owner->nodes().view();
  REQUIRE(some.lost(1));
  CHECK(some.state(1) == kViewLost);
  CHECK(some.owner->nodes().view() > before);
  CHECK(code_of(some.lost(1)) == Code::kInvalid);
  const auto made = some.owner->create("/f");
  INFO((made ? "" : made.error().text));
  REQUIRE(made);
  CHECK(made->view() == some.owner->nodes().view());
  require_sound(some.world);
}

TEST_CASE("a server that starts counts a lease from then") {
  Some some(2);
  some.live(20, {2});
  some.restart();
  some.live(6, {2});
  CHECK(code_of(some.lost(1)) == Code::kBusy);
  some.live(1, {2});
  CHECK(code_of(some.lost(1)) == Code::kOk);
}

TEST_CASE("a second loss that may concern the same files needs a person who says so") {
  SECTION("where the server makes no pairs, of any other node") {
    Some some(3);
    some.live(8, {3});
    REQUIRE(some.lost(1));
    const auto refused = some.lost(2);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kInvalid);
    CHECK_THAT(refused.error().text, Catch::StartsWith("lfs0 is lost already") && Catch::Contains("--force"));
    CHECK(some.lost(2, true));
  }
  SECTION("where it does, of a companion") {
    Some some(8, 2);  // pairs 1 to 4 and 5 to 8
    some.live(8, {4, 7, 8});
    REQUIRE(some.lost(1));
    CHECK(some.lost(5));
    CHECK(code_of(some.lost(2)) == Code::kInvalid);
    CHECK_THAT(some.lost(6).error().text, Catch::Contains("lfs4 is lost"));
  }
}

TEST_CASE("the view is told, is durable, and is told of no turn that failed") {
  Some some(2);
  CHECK_FALSE(some.lfs(2).beat(some.world).has_view());  // nothing ever happened
  some.live(8, {2});
  some.world.store->commits_to_fail = 1;
  CHECK(code_of(some.lost(1)) == Code::kIo);
  CHECK(some.state(1) == kViewMember);
  CHECK_FALSE(some.lfs(2).beat(some.world).has_view());
  REQUIRE(some.lost(1));
  const proto::View view = some.view(2);
  REQUIRE(view.nodes_size() == 1);
  CHECK(view.nodes(0).node() == 1);
  CHECK(view.nodes(0).state() == kViewLost);
  CHECK(view.nodes(0).era() == 1);
  CHECK(view.nodes(0).lost_order() == 1);
  some.restart();
  CHECK(some.view(2).SerializeAsString() == view.SerializeAsString());
  some.lfs(2).adopted = view.index();
  CHECK_FALSE(some.lfs(2).beat(some.world).has_view());
}

TEST_CASE("a lost node that is heard again is rebuilding, whatever it has, and a member when it says that it has all") {
  Some some(2);
  some.live(8, {2});
  REQUIRE(some.lost(1));
  SECTION("that was only not heard") {
    const auto reply = some.lfs(1).beat(some.world);
    CHECK(reply.has_view());
    CHECK(reply.lease_ms() == 0);
  }
  SECTION("that was started again") { some.lfs(1).start(some.world); }
  SECTION("while the server was") {
    some.restart();
    some.lfs(1).start(some.world);
  }
  CHECK(some.state(1) == kViewRebuilding);
  CHECK(some.view(2).nodes(0).era() == 1);
  some.restart();
  CHECK(some.state(1) == kViewRebuilding);
  some.lfs(1).start(some.world);
  CHECK(some.state(1) == kViewRebuilding);
  REQUIRE(some.rebuilt(1, kViewReturning));
  CHECK(some.lfs(1).beat(some.world).lease_ms() == 0);
  REQUIRE(some.rebuilt(1, kViewMember));
  CHECK(some.lfs(1).beat(some.world).lease_ms() == 6000);
  CHECK(some.view(2).nodes(0).era() == 2);
  require_sound(some.world);
}

TEST_CASE("a lost node that is older than it was stays lost") {
  Some some(2);
  Lfs old = some.lfs(1);
  some.lfs(1).start(some.world);
  some.live(12, {2});
  REQUIRE(some.lost(1));
  CHECK(old.beat(some.world, kAsks).verdict() == kIsStale);
  CHECK(some.state(1) == kViewLost);
}

TEST_CASE("an empty root is rebuilt before its node is a member, whatever happens meanwhile") {
  Some some(2);
  some.live(5, {2});
  REQUIRE(some.replace(1));
  CHECK(some.lfs(1).beat(some.world, kAsks).verdict() == kNotYet);  // the root before may act alone yet
  CHECK(some.state(1) == kViewMember);
  some.live(3, {2});
  some.lfs(1).start(some.world);
  CHECK(some.state(1) == kViewRebuilding);
  CHECK(some.lfs(1).beat(some.world).lease_ms() == 0);
  CHECK(some.owner->create("/f")->nodes_size() == 2);  // new files have rows there
  some.restart();
  CHECK(some.state(1) == kViewRebuilding);
  some.lfs(1).start(some.world);
  CHECK(some.state(1) == kViewRebuilding);
  SECTION("until it has all but what comes meanwhile, then that") {
    REQUIRE(some.rebuilt(1, kViewReturning));
    REQUIRE(some.rebuilt(1, kViewReturning));
    CHECK(some.state(1) == kViewReturning);
    CHECK(some.lfs(1).beat(some.world).lease_ms() == 0);
    CHECK(code_of(some.rebuilt(1, kViewRebuilding)) == Code::kInvalid);
  }
  SECTION("until it has all") {}
  SECTION("until it has all, though it is lost in between") {
    some.live(8, {2});
    REQUIRE(some.lost(1));
    CHECK(some.lfs(1).beat(some.world).verdict() == kGoOn);
    CHECK(some.state(1) == kViewRebuilding);
  }
  REQUIRE(some.rebuilt(1, kViewMember));
  REQUIRE(some.rebuilt(1, kViewMember));
  CHECK(some.state(1) == kViewMember);
  CHECK(some.lfs(1).beat(some.world).lease_ms() > 0);
  require_sound(some.world);
}

TEST_CASE("an empty root that has nothing to get is a member at once, of a later era") {
  Some some(2);
  some.live(4, {2});
  REQUIRE(some.replace(1));
  REQUIRE(some.rebuilt(1, kViewMember));
  some.lfs(1).start(some.world);
  CHECK(some.state(1) == kViewMember);
  CHECK(some.view(1).nodes(0).era() == 2);
}

TEST_CASE("nobody is rebuilt who is not there, and of two companions the one lost later returns first") {
  Some some(4, 2);
  some.live(8, {3, 4});
  CHECK(code_of(some.rebuilt(1, kViewRebuilding)) == Code::kInvalid);  // a member
  REQUIRE(some.lost(1));
  CHECK(code_of(some.rebuilt(1, kViewMember)) == Code::kInvalid);
  CHECK(code_of(some.rebuilt(1, kViewLost)) == Code::kInvalid);
  REQUIRE(some.lost(2, true));
  REQUIRE(some.replace(1));
  REQUIRE(some.replace(2));
  some.lfs(1).start(some.world);
  some.lfs(2).start(some.world);
  const auto refused = some.rebuilt(1, kViewMember);  // by who believes that it lost nothing
  CHECK_THAT(refused.error().text, Catch::Contains("lfs1 was lost after lfs0"));
  REQUIRE(some.rebuilt(2, kViewReturning));
  CHECK(code_of(some.rebuilt(1, kViewReturning)) == Code::kBusy);  // one after the other
  REQUIRE(some.rebuilt(2, kViewMember));
  REQUIRE(some.rebuilt(1, kViewReturning));
}

TEST_CASE("an LFS that was lost first may return without what only the other has, and nobody is lost just then") {
  Some some(4, 2);
  some.live(8, {3, 4});
  REQUIRE(some.lost(1));
  REQUIRE(some.lost(2, true));
  REQUIRE(some.lfs(1).beat(some.world).verdict() == kGoOn);
  REQUIRE(some.rebuilt(1, kViewReturning));
  some.live(8, {1, 4});
  CHECK(code_of(some.lost(3, true)) == Code::kBusy);
  REQUIRE(some.rebuilt(1, kViewMember));
  CHECK(code_of(some.lost(3)) == Code::kInvalid);  // lfs1 is lost
  CHECK(some.lost(3, true));
}

TEST_CASE("an order of loss is never given twice, for a file may remember it") {
  Views views;
  views.move(1, kViewLost, 2);
  CHECK(views.of(1).lost_order == 1);
  views.move(1, kViewReturning, 3);
  views.move(1, kViewMember, 4);
  proto::StoredNode row;
  views.describe(1, row);
  Views again;
  REQUIRE(again.load(1, row));
  again.move(2, kViewLost, 5);
  CHECK(again.of(2).lost_order == 2);
}

TEST_CASE("where a loss is accepted the node that was lost first returns first, and the order is durable") {
  Some some(8, 2);  // pairs 1 to 4 and 5 to 8
  some.live(8, {3, 4, 6, 7, 8});
  const auto accept = [&](std::uint32_t node) {
    Envelope request;
    request.mutable_accept_loss()->set_node(node);
    return some.owner->ask(request);
  };
  CHECK(code_of(accept(9)) == Code::kNotFound);
  CHECK(code_of(accept(3)) == Code::kInvalid);  // a member
  REQUIRE(some.lost(1));
  CHECK(code_of(accept(1)) == Code::kInvalid);  // nobody waits for it
  REQUIRE(some.lost(5));
  REQUIRE(some.lost(2, true));
  REQUIRE(some.lfs(1).beat(some.world).verdict() == kGoOn);
  CHECK_THAT(some.rebuilt(1, kViewMember).error().text, Catch::Contains("pif node accept-loss lfs1"));
  Envelope request;
  request.mutable_accept_loss()->set_node(2);
  CHECK(code_of(Client(some.world, 1000).ask(request)) == Code::kPermission);
  some.world.store->commits_to_fail = 1;
  CHECK(code_of(accept(2)) == Code::kIo);
  CHECK(code_of(some.rebuilt(1, kViewMember)) == Code::kBusy);
  const auto before = some.owner->nodes().view();
  REQUIRE(accept(2));
  CHECK(some.owner->nodes().view() > before);
  REQUIRE(accept(2));
  some.restart();
  std::map<std::uint32_t, std::uint32_t> order;
  const proto::View view = some.view(3);
  for (const auto& node : view.nodes()) order[node.node()] = node.lost_order();
  CHECK(order == std::map<std::uint32_t, std::uint32_t>{{1, 2}, {2, 1}, {5, 3}});
  REQUIRE(some.rebuilt(1, kViewReturning));
  REQUIRE(some.rebuilt(1, kViewMember));
  REQUIRE(some.lfs(2).beat(some.world).verdict() == kGoOn);
  REQUIRE(some.rebuilt(2, kViewReturning));
  require_sound(some.world);
}

TEST_CASE("a file with parity is committed in the view that it was written in, or not") {
  Some some(4, 2);
  const auto made = some.owner->create("/f"), other = some.owner->create("/g"), plain = some.owner->create("/h");
  REQUIRE(made);
  const auto commit = [&](const proto::CreateReply& file, std::uint64_t view) {
    Envelope request = Client::commit_request(file.file());
    request.mutable_commit()->set_view(view);
    return some.owner->ask(request);
  };
  some.live(8, {2, 3, 4});
  REQUIRE(some.lost(1));
  const auto refused = commit(*made, made->view() + 1);
  CHECK(code_of(refused) == Code::kOldView);
  CHECK_THAT(refused.error().text, Catch::Contains("write it again"));
  const auto newest = some.owner->nodes().view();
  REQUIRE(commit(*made, newest));
  REQUIRE(commit(*made, 1));   // again: it is done
  REQUIRE(commit(*other, 0));  // of a library that does not say
  Some bare(3);
  const auto old = bare.owner->create("/f");
  Envelope request = Client::commit_request(old->file());
  request.mutable_commit()->set_view(4711);
  CHECK(bare.owner->ask(request));
  CHECK(plain);
}

TEST_CASE("how far a node is that is being rebuilt is shown") {
  Some some(2);
  some.live(8, {2});
  REQUIRE(some.lost(1));
  Envelope beat = some.lfs(1).request(some.world, kServes);
  beat.mutable_heartbeat()->mutable_node()->set_rebuilt_percent(42);
  some.world.messenger->deliver(some.world.lfs_peer(1), beat);
  some.world.run();
  CHECK(some.owner->nodes().nodes(0).rebuilt_percent() == 42);
}

TEST_CASE("a server that may declares nodes lost that are silent, but not two that may be companions, nor at once") {
  Some some(8, 2);  // pairs 1 to 4 and 5 to 8
  some.world.declares_lost = true;
  some.restart();
  CHECK(Config().declares_lost);
  some.live(9, {3, 4, 6, 7, 8});
  CHECK(some.state(1) == kViewMember);
  some.live(2, {3, 4, 6, 7, 8});
  CHECK(some.state(1) == kViewLost);
  CHECK(some.state(2) == kViewMember);
  CHECK(some.state(5) == kViewLost);
  SECTION("when it was stopped itself it reads first what came meanwhile") {
    some.world.clock.advance(std::chrono::seconds(60));
    some.world.run();
    CHECK(some.state(3) == kViewMember);
  }
  SECTION("a node that is heard within ten seconds is not lost") {
    some.live(9, {3, 4, 6, 7});
    some.live(1, {3, 4, 6, 7, 8});
    some.live(9, {3, 4, 6, 7});
    CHECK(some.state(8) == kViewMember);
  }
  SECTION("unless that is how it is left to do it") {
    some.world.declares_lost = false;
    some.restart();
    some.live(20, {3, 4, 6, 7});
    CHECK(some.state(8) == kViewMember);
  }
}

TEST_CASE(
    "a node whose disk fails is shown, gets no new files and no lease, and is lost as a silent one is, and ends") {
  Some some(8, 2);  // pairs 1 to 4 and 5 to 8
  some.world.declares_lost = true;
  some.restart();
  const std::set<std::uint32_t> all = {1, 2, 3, 4, 5, 6, 7, 8};
  some.live(8, all);
  Lfs& failing = some.lfs(1);
  failing.trouble = "its disk fails: cannot sync /disk1/f: Input/output error";
  some.live(1, all);
  CHECK(some.shown(1).state() == kStateFailing);
  CHECK(some.shown(1).trouble() == failing.trouble);
  CHECK(failing.beat(some.world).lease_ms() == 6000);  // it may be over in a moment
  const auto made = some.owner->create("/f");
  REQUIRE(made);
  for (const std::uint32_t node : made->layout().nodes()) CHECK(node > 4);
  some.live(3, all);
  CHECK(failing.beat(some.world).lease_ms() == 0);
  CHECK(some.state(1) == kViewMember);
  SECTION("if it goes on") {
    for (int i = 0; i < 20 && some.state(1) == kViewMember; ++i) {
      some.world.advance(1);
      for (const std::uint32_t id : all) some.lfs(id).beat(some.world);
    }
    CHECK(some.state(1) == kViewLost);
    const auto reply = failing.beat(some.world);
    CHECK(reply.verdict() == kEnd);
    CHECK_THAT(reply.text(), Catch::Contains("lfs0 is lost") && Catch::Contains(failing.trouble));
    CHECK(failing.beat(some.world).verdict() == kEnd);
    CHECK(some.state(1) == kViewLost);
    CHECK(some.shown(1).trouble() == failing.trouble);
    failing.trouble.clear();
    failing.start(some.world);  // by a person, who has mended it
    CHECK(some.state(1) == kViewRebuilding);
    CHECK(failing.beat(some.world).verdict() == kGoOn);
  }
  SECTION("not if it ceases") {
    failing.trouble.clear();
    some.live(20, all);
    CHECK(failing.beat(some.world).lease_ms() == 6000);
    CHECK(some.state(1) == kViewMember);
    CHECK(some.shown(1).state() == kStateUp);
    CHECK(some.shown(1).trouble().empty());
  }
}

TEST_CASE("a node whose disk fails is not lost by itself, and keeps its lease, where that would cost files") {
  SECTION("its companion is absent") {
    Some some(4, 2);
    some.world.declares_lost = true;
    some.restart();
    some.live(20, {2, 3, 4});
    REQUIRE(some.state(1) == kViewLost);
    some.lfs(3).trouble = "its disk fails";
    some.live(30, {2, 3, 4});
    CHECK(some.state(3) == kViewMember);
    CHECK(some.lfs(3).beat(some.world).lease_ms() == 6000);
  }
  SECTION("files have no parity") {
    Some some(4);
    some.world.declares_lost = true;
    some.restart();
    some.lfs(3).trouble = "its disk fails";
    some.live(30, {1, 2, 3, 4});
    CHECK(some.state(3) == kViewMember);
    CHECK(some.lfs(3).beat(some.world).lease_ms() == 6000);
  }
}

TEST_CASE("a node that is up is lost by a person's word when its lease is over, and ends") {
  Some some(4, 2);
  some.live(3, {1, 2, 3, 4});
  CHECK(some.lfs(1).beat(some.world).lease_ms() == 6000);
  CHECK(code_of(some.lost(1)) == Code::kBusy);
  CHECK(some.lfs(1).beat(some.world).lease_ms() == 0);
  some.live(6, {1, 2, 3, 4});
  CHECK(some.state(1) == kViewMember);
  some.world.advance(1);
  for (const std::uint32_t id : {2, 3, 4}) REQUIRE(some.lfs(id).beat(some.world).verdict() == kGoOn);
  some.lfs(1).beat(some.world);
  CHECK(some.state(1) == kViewLost);
  REQUIRE(some.lost(1));  // asked again
  CHECK(some.lfs(1).beat(some.world).verdict() == kEnd);
  CHECK(some.state(1) == kViewLost);
  some.lfs(1).start(some.world);
  CHECK(some.state(1) == kViewRebuilding);
  CHECK(code_of(some.lost(3)) == Code::kInvalid);  // its companion is absent: nothing has changed for it
  CHECK(some.lfs(3).beat(some.world).lease_ms() == 6000);
}

TEST_CASE("a directory that is kept though it is old has a newer view than all that LFSs have adopted") {
  Some some(2);
  const auto old = kv::copy_memory_state(*some.world.state);
  some.live(8, {2});
  REQUIRE(some.lost(1));
  const std::uint64_t adopted = some.view(2).index();
  some.world.state = old;
  some.restart();
  some.lfs(2).adopted = adopted;
  some.lfs(2).number = (std::uint64_t{7} << kEraShift) + 3;
  some.lfs(2).told.set_run(4711);
  some.lfs(2).told.set_index(adopted);
  REQUIRE(some.lfs(2).beat(some.world).verdict() == kServerBehind);
  Envelope done;
  done.mutable_adopt_files()->set_done(true);
  REQUIRE(some.owner->ask(done));
  const proto::View view = some.view(2);
  CHECK(view.index() > adopted);
  REQUIRE(view.nodes_size() == 1);
  CHECK(view.nodes(0).state() == kViewMember);
  CHECK(view.nodes(0).era() == 8);
}

TEST_CASE("an LFS is told how others are reached: all at first, then what changed") {
  Some some(3);
  Lfs& lfs = some.lfs(1);
  auto reply = lfs.beat(some.world);
  CHECK(reply.peers_size() == 3);
  CHECK(reply.peers(2).endpoints().unix_path() == "sock3");
  lfs.peers = reply.peers_count();
  CHECK(lfs.beat(some.world).peers_size() == 0);
  Envelope moved = some.lfs(3).request(some.world, kServes);
  moved.mutable_heartbeat()->mutable_node()->mutable_endpoints()->set_tcp("tcp://there:1");
  some.world.messenger->deliver(some.world.lfs_peer(3), moved);
  some.world.run();
  reply = lfs.beat(some.world);
  REQUIRE(reply.peers_size() == 1);
  CHECK(reply.peers(0).endpoints().tcp() == "tcp://there:1");
  CHECK(reply.peers_count() == lfs.peers + 1);
}

TEST_CASE("many peers come in parts") {
  World world(300);
  Lfs lfs(1);
  std::set<std::uint32_t> known;
  for (int i = 0; i < 3; ++i) {
    Envelope request = world.heartbeat(1);
    request.mutable_heartbeat()->set_peers(lfs.peers);
    world.messenger->sent.clear();
    world.messenger->deliver(world.lfs_peer(1), request);
    world.run();
    const auto reply = world.reply(world.lfs_peer(1), 1)->heartbeat_reply();
    CHECK(reply.peers_size() <= 128);
    for (const auto& peer : reply.peers()) known.insert(peer.id());
    lfs.peers = reply.peers_count();
  }
  CHECK(known.size() == 300);
}

}  // namespace
}  // namespace pif::server::testing
