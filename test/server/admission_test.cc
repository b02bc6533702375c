// Who may serve, and whether this server may: docs/FORMAT.md "Who is how old".
#include <set>

#include "fixture.h"
#include "pif/wire/file_states.h"
#include "pif/wire/values.h"

namespace pif::server::testing {
namespace {

using enum wire::BeatStage;
using enum wire::Verdict;

// An LFS as the server sees it. Copy it, and there is one that was restored from a snapshot.
struct Lfs {
  std::uint32_t id = 1;
  std::uint64_t incarnation = 0;
  std::uint64_t number = 0;
  proto::Moment told;

  proto::HeartbeatReply beat(World& world, wire::BeatStage stage = kServes) {
    Envelope request = world.heartbeat(id);
    proto::Heartbeat& beat = *request.mutable_heartbeat();
    beat.mutable_node()->set_uuid(std::string(32, static_cast<char>('0' + id)));
    beat.mutable_node()->set_incarnation(incarnation);
    beat.mutable_node()->set_number(number);
    *beat.mutable_kept() = told;
    beat.set_stage(stage);
    world.messenger->sent.clear();
    world.messenger->deliver(world.lfs_peer(id), request);
    world.run();
    const auto answer = world.reply(world.lfs_peer(id), 1);
    REQUIRE(answer);
    REQUIRE(answer->has_heartbeat_reply());
    if (answer->heartbeat_reply().verdict() <= kAdmitted) told = answer->heartbeat_reply().moment();
    return answer->heartbeat_reply();
  }
  void start(World& world) {
    const auto offer = beat(world, kAsks);
    REQUIRE(offer.verdict() == kAdmitted);
    incarnation = offer.incarnation();
    ++number;
    REQUIRE(beat(world, kConfirms).verdict() == kGoOn);
  }
  // Something durable happens, and the server hears of it and writes it down.
  void change(World& world) {
    ++number;
    REQUIRE(beat(world).verdict() == kGoOn);
    world.advance(2);
  }
};

// A server whose only LFS has been admitted.
struct OneLfs {
  OneLfs() { lfs.start(world); }
  void restart(std::shared_ptr<kv::MemoryState> state) {
    world.state = std::move(state);
    world.start();
  }
  std::shared_ptr<kv::MemoryState> snapshot() const { return kv::copy_memory_state(*world.state); }
  Code create_code(Client& client) {
    const auto made = client.create("/x");
    return made ? Code::kOk : made.error().code;
  }

  World world{0};
  Lfs lfs;
};

TEST_CASE("every transaction raises the index, and every start begins a run") {
  OneLfs one;
  Client client(one.world);
  const auto before = client.nodes().moment();
  REQUIRE(client.mkdir("/a"));
  const auto after = client.nodes().moment();
  CHECK(after.run() == before.run());
  CHECK(after.index() == before.index() + 1);
  one.restart(one.world.state);
  const auto again = Client(one.world).nodes().moment();
  CHECK(again.run() != after.run());
  CHECK(again.index() > after.index());
  require_sound(one.world);
}

TEST_CASE("what an LFS said before its end is no harm when it is heard after what the next process says") {
  OneLfs one;
  const Lfs ended = one.lfs;
  Lfs next = one.lfs;
  const auto offer = next.beat(one.world, kAsks);
  REQUIRE(offer.verdict() == kAdmitted);
  next.incarnation = offer.incarnation();
  ++next.number;
  Lfs late = ended;
  const auto again = late.beat(one.world, kAsks);
  REQUIRE(again.verdict() == kAdmitted);
  CHECK(again.incarnation() == offer.incarnation());
  CHECK(next.beat(one.world, kConfirms).verdict() == kGoOn);
  Lfs restarted = next;
  restarted.start(one.world);
  CHECK(restarted.incarnation > next.incarnation);
  require_sound(one.world);
}

TEST_CASE("two histories of one directory never give out the same id") {
  OneLfs one;
  const auto old = one.snapshot();
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 50; ++i) ids.insert(Client(one.world).put("/a" + std::to_string(i)));
  one.restart(old);
  one.world.advance(1);
  Lfs fresh = one.lfs;
  fresh.told.Clear();  // it has not heard of what was lost
  REQUIRE(fresh.beat(one.world).verdict() == kGoOn);
  for (int i = 0; i < 50; ++i) CHECK(ids.insert(Client(one.world).put("/b" + std::to_string(i))).second);
  require_sound(one.world);
}

TEST_CASE(
    "an LFS that comes back younger than it was heard is stale, until a person takes it back; the newer root is not") {
  OneLfs one;
  Lfs old = one.lfs;
  one.lfs.change(one.world);
  one.restart(one.world.state);
  const auto refused = old.beat(one.world, kAsks);
  CHECK(refused.verdict() == kIsStale);
  CHECK_THAT(refused.text(), Catch::Contains("pif node accept-stale lfs0"));
  Client client(one.world);
  one.world.advance(4);
  old.beat(one.world, kAsks);
  CHECK(client.nodes().nodes(0).state() == 5);
  CHECK_THAT(client.nodes().nodes(0).trouble(), Catch::Contains("is older than it has been"));
  Lfs newer = one.lfs;
  newer.start(one.world);
  one.world.advance(4);
  CHECK(old.beat(one.world, kAsks).verdict() == kIsStale);
  one.world.advance(8);
  old.beat(one.world, kAsks);
  Envelope accept;
  accept.mutable_accept_stale()->set_node(1);
  CHECK(Client(one.world, 1000).ask(accept).error().code == Code::kPermission);
  REQUIRE(client.ask(accept));
  CHECK(client.nodes().nodes(0).state() != 5);  // at once
  CHECK(!client.ask(accept));
  old.start(one.world);
  CHECK(newer.beat(one.world).verdict() == kIsStale);
}

TEST_CASE("how far an LFS's clock is from the server's is told") {
  World world;
  Lfs lfs;
  lfs.start(world);
  for (const std::int64_t ahead : {0, 40, -3}) {
    Envelope request = world.heartbeat(lfs.id);
    request.mutable_heartbeat()->mutable_node()->set_uuid(std::string(32, '1'));
    request.mutable_heartbeat()->mutable_node()->set_incarnation(lfs.incarnation);
    request.mutable_heartbeat()->mutable_node()->set_number(lfs.number);
    request.mutable_heartbeat()->set_wall(world.clock.wall_seconds() + ahead);
    world.messenger->deliver(world.lfs_peer(lfs.id), request);
    world.run();
    Client client(world);
    CHECK(client.nodes().nodes(0).clock_ahead() == ahead);
  }
}

TEST_CASE("an older incarnation is stale, though its number is higher") {
  OneLfs one;
  Lfs old = one.lfs;
  one.lfs.start(one.world);
  old.number += 100;
  CHECK(old.beat(one.world, kAsks).verdict() == kIsStale);
  CHECK(one.lfs.beat(one.world).verdict() == kGoOn);
}

TEST_CASE("starts that end between offer, keeping and confirmation raise no alarm") {
  OneLfs one;
  for (int i = 0; i < 3; ++i) REQUIRE(one.lfs.beat(one.world, kAsks).verdict() == kAdmitted);  // offered, not kept
  const auto offer = one.lfs.beat(one.world, kAsks);
  one.lfs.incarnation = offer.incarnation();  // kept, not confirmed
  ++one.lfs.number;
  REQUIRE(one.lfs.beat(one.world, kAsks).verdict() == kAdmitted);
  REQUIRE(one.lfs.beat(one.world, kAsks).verdict() == kAdmitted);
  one.restart(one.world.state);
  one.lfs.start(one.world);
}

TEST_CASE("a confirmation that is not of the last offer is none") {
  OneLfs one;
  REQUIRE(one.lfs.beat(one.world, kAsks).verdict() == kAdmitted);
  CHECK(one.lfs.beat(one.world, kConfirms).verdict() == kIsStale);
}

TEST_CASE(
    "a directory that an LFS knows to be newer serves nobody and removes nothing, also when that LFS comes late") {
  OneLfs one;
  const auto old = one.snapshot();
  Client(one.world).put("/acknowledged");
  one.lfs.change(one.world);
  one.restart(old);
  Client early(one.world);
  CHECK(one.create_code(early) != Code::kStaleServer);  // it cannot know yet
  CHECK(one.lfs.beat(one.world).verdict() == kServerBehind);
  CHECK(one.create_code(early) == Code::kStaleServer);
  CHECK(early.list("/").error().code == Code::kStaleServer);
  CHECK_THAT(early.nodes().refused(), Catch::Contains("pif server accept-old"));
  Envelope states;
  states.set_capability(one.world.manage());
  states.mutable_file_states()->add_files(7);
  CHECK(early.ask(states).error().code == Code::kStaleServer);
  one.world.advance(100);
  CHECK(one.world.settles({}).empty());
}

TEST_CASE("another directory's LFS stops the server as well, and one of an earlier moment does not") {
  OneLfs one;
  Lfs early = one.lfs;
  Client(one.world).put("/a");
  one.restart(one.world.state);
  CHECK(early.beat(one.world).verdict() == kGoOn);
  early.told.set_run(4711);
  CHECK(early.beat(one.world).verdict() == kServerBehind);
}

TEST_CASE("an old directory says how far it has heard each LFS, and which of them is older still") {
  World world{0};
  Lfs newer, older;
  older.id = 2;
  newer.start(world);
  older.start(world);
  Lfs backup = older;
  older.change(world);
  const auto old = kv::copy_memory_state(*world.state);
  const std::uint64_t heard = newer.number;
  newer.change(world);
  newer.change(world);  // hears of the moment that knows of the first
  world.state = old;
  world.start();
  CHECK(newer.beat(world, kAsks).verdict() == kServerBehind);
  CHECK(backup.beat(world, kAsks).verdict() == kServerBehind);
  const auto nodes = Client(world).nodes();
  CHECK(!nodes.refused().empty());
  CHECK(nodes.nodes(0).number() == heard);
  CHECK(nodes.nodes(0).trouble().empty());
  CHECK(nodes.nodes(1).number() == older.number);
  CHECK(nodes.nodes(1).state() == 5);
  CHECK_THAT(nodes.nodes(1).trouble(), Catch::Contains("is older than it has been"));
  Envelope done;
  done.mutable_adopt_files()->set_done(true);
  REQUIRE(Client(world).ask(done));
  CHECK(Client(world).nodes().nodes(1).state() != 5);
  CHECK(backup.beat(world, kAsks).verdict() == kAdmitted);
}

TEST_CASE("a moment that was another run's first is of that run alone") {
  OneLfs one;
  proto::Moment last = Client(one.world).nodes().moment();
  one.restart(one.world.state);
  Lfs at_end = one.lfs, beyond = one.lfs;
  at_end.told = last;
  CHECK(at_end.beat(one.world).verdict() == kGoOn);
  last.set_index(last.index() + 1);
  beyond.told = last;
  CHECK(beyond.beat(one.world).verdict() == kServerBehind);
}

TEST_CASE(
    "an old directory that is kept serves again, names what LFSs have under /lost+found, and is never behind for that "
    "again") {
  OneLfs one;
  const auto old = one.snapshot();
  const auto lost = Client(one.world).put("/lost");
  one.lfs.change(one.world);
  one.lfs.change(one.world);
  one.restart(old);
  REQUIRE(one.lfs.beat(one.world).verdict() == kServerBehind);
  Client owner(one.world);
  Envelope adopt;
  proto::AdoptFiles::One& file = *adopt.mutable_adopt_files()->add_files();
  file.set_file(lost);
  file.mutable_format()->set_kind(1);
  file.mutable_format()->set_record_length(100);
  file.mutable_layout()->add_nodes(1);
  file.mutable_file_length()->set_records(10);
  file.mutable_file_length()->set_bytes(1000);
  file.set_owner(1000);
  CHECK(Client(one.world, 1000).ask(adopt).error().code == Code::kPermission);
  REQUIRE(owner.ask(adopt));
  CHECK(owner.list("/").error().code == Code::kStaleServer);  // not yet
  Envelope done;
  done.mutable_adopt_files()->set_done(true);
  REQUIRE(owner.ask(done));
  const auto found = owner.list("/lost+found");
  REQUIRE(found);
  REQUIRE(found->entries.size() == 1);
  CHECK(found->entries[0].id() == lost);
  CHECK(found->entries[0].attributes().owner() == 1000);
  CHECK(found->entries[0].file_length().records() == 10);
  CHECK(Client(one.world, 1000).list("/lost+found").error().code == Code::kPermission);
  CHECK(one.lfs.beat(one.world).verdict() == kGoOn);
  const std::uint64_t before = one.lfs.incarnation;
  one.lfs.start(one.world);
  CHECK(one.lfs.incarnation > before);
  one.restart(one.world.state);
  CHECK(one.lfs.beat(one.world).verdict() == kGoOn);
  require_sound(one.world);
}

TEST_CASE("after a start the server waits for its LFSs, and no longer than it may") {
  OneLfs one;
  one.world.gather_max = std::chrono::seconds(3);
  one.restart(one.world.state);
  Client client(one.world);
  const auto id = client.post(Client::folder_request("/waits"));
  one.world.run();
  CHECK_FALSE(one.world.reply(client.peer(), id));
  one.world.advance(1);
  CHECK(one.world.reply(client.peer(), id, true));  // a sign of life
  REQUIRE(one.lfs.beat(one.world).verdict() == kGoOn);
  CHECK(client.answer(id));
  one.restart(one.world.state);
  Client late(one.world);
  const auto other = late.post(Client::folder_request("/waits-too"));
  one.world.run();
  CHECK_FALSE(one.world.reply(late.peer(), other));
  one.world.advance(3);
  CHECK(late.answer(other));
}

TEST_CASE("files are made when the LFSs that were asked are admitted: they are of these incarnations") {
  OneLfs one;
  const auto old = one.snapshot();
  one.lfs.change(one.world);
  one.lfs.change(one.world);
  one.world.gather_max = std::chrono::seconds(3);
  const bool is_old = GENERATE(false, true);
  one.restart(is_old ? old : one.world.state);
  if (!is_old) REQUIRE(one.lfs.beat(one.world, kAsks).verdict() == kAdmitted);
  if (is_old) {
    REQUIRE(one.lfs.beat(one.world, kAsks).verdict() == kServerBehind);
    Client owner(one.world);
    Envelope done;
    done.mutable_adopt_files()->set_done(true);
    REQUIRE(owner.ask(done));
  }
  Client client(one.world);
  const auto id = client.post(Client::create_request("/x"));
  one.world.run();
  CHECK_FALSE(one.world.reply(client.peer(), id));
  SECTION("one that is admitted") {
    one.lfs.start(one.world);
    const auto made = client.answer(id);
    REQUIRE(made);
    CHECK(made->create_reply().nodes(0).incarnation() == one.lfs.incarnation);
  }
  SECTION("one that is not heard any more is not waited for long") {
    one.world.advance(3);
    CHECK(client.answer(id).error().code == Code::kUnavailable);
  }
}

TEST_CASE("marked files are opened by who asks for stale ones, and a new file of the name is not marked") {
  OneLfs one;
  Client client(one.world);
  const auto file = client.put("/f");
  Envelope mark;
  mark.mutable_mark_files()->add_files(file);
  mark.mutable_mark_files()->add_files(4711);  // gone: passed over
  mark.mutable_mark_files()->mutable_mark()->set_node(1);
  mark.mutable_mark_files()->mutable_mark()->set_kind(1);
  CHECK(Client(one.world, 1000).ask(mark).error().code == Code::kPermission);
  REQUIRE(client.ask(mark));
  REQUIRE(client.ask(mark));
  REQUIRE(client.stat("/f")->marks_size() == 1);
  CHECK(client.stat("/f")->marks(0).since() > 0);
  CHECK(client.list("/")->entries[0].marks_size() == 1);
  CHECK(client.open("/f").error().code == Code::kStaleData);
  Envelope open;
  open.mutable_open()->set_path("/f");
  open.mutable_open()->set_rights(kMayRead);
  open.mutable_open()->set_stale(true);
  CHECK(client.ask(open));
  client.put("/f");
  CHECK(client.stat("/f")->marks_size() == 0);
  CHECK(client.open("/f"));
}

TEST_CASE("a file that is being created with a root that is gone is given up") {
  OneLfs one;
  Client client(one.world);
  const auto made = client.create("/f");
  REQUIRE(made);
  Envelope mark;
  mark.mutable_mark_files()->add_files(made->file());
  mark.mutable_mark_files()->mutable_mark()->set_node(1);
  mark.mutable_mark_files()->mutable_mark()->set_kind(2);
  REQUIRE(client.ask(mark));
  CHECK(client.ask(Client::commit_request(made->file())).error().code == Code::kStaleFile);
}

TEST_CASE("a replaced root is admitted as new, and the one before is not") {
  OneLfs one;
  one.lfs.change(one.world);
  Client client(one.world);
  Envelope replace;
  replace.mutable_replace_node()->set_node(1);
  replace.mutable_replace_node()->set_uuid(std::string(32, 'f'));
  CHECK(client.ask(replace).error().code == Code::kBusy);
  one.world.advance(20);
  REQUIRE(client.ask(replace));
  REQUIRE(client.ask(replace));
  CHECK(one.lfs.beat(one.world, kAsks).verdict() == kIsStale);
  CHECK_THAT(one.lfs.beat(one.world, kAsks).text(), Catch::Contains("is the right disk mounted?"));
}

TEST_CASE("while commits are held names can be read, changes wait, and nothing is written") {
  OneLfs one;
  Client client(one.world);
  REQUIRE(client.mkdir("/a"));
  Envelope hold;
  hold.mutable_hold()->set_for_ms(10'000);
  REQUIRE(client.ask(hold));
  const auto moment = client.nodes().moment();
  const auto id = client.post(Client::folder_request("/b"));
  one.world.run();
  CHECK_FALSE(one.world.reply(client.peer(), id));
  CHECK(client.exists("/a"));
  ++one.lfs.number;
  CHECK(one.lfs.beat(one.world).verdict() == kGoOn);
  one.world.advance(5);
  CHECK(client.nodes().moment().index() == moment.index());
  Client other(one.world);
  CHECK(other.ask(hold).error().code == Code::kBusy);
  SECTION("until who holds them says so") {
    Envelope release;
    release.mutable_hold();
    REQUIRE(client.ask(release));
  }
  SECTION("until the time is over") { one.world.advance(10); }
  SECTION("until who holds them is gone") {
    client.close();
    CHECK_FALSE(other.exists("/b"));
    return;
  }
  CHECK(other.exists("/b"));
}

TEST_CASE("an abort is told as such, and what was given up is unknown to who asks") {
  OneLfs one;
  Client client(one.world);
  const auto made = client.create("/f");
  REQUIRE(made);
  Envelope abort;
  abort.mutable_abort()->set_file(made->file());
  REQUIRE(client.ask(abort));
  Envelope states;
  states.set_capability(one.world.manage());
  states.mutable_file_states()->add_files(made->file());
  CHECK(client.ask(states)->file_states_reply().states(0) == wire::kFileGivenUp);
}

}  // namespace
}  // namespace pif::server::testing
