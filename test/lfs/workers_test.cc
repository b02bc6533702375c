// Workers of a host: what they say, how they end, what is told of it, and how a spawn tree is handed on.
#include "host.h"

#include <array>

#include "pif/base/limits.h"

namespace pif::lfs::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Event = proto::JobWaitReply::Event;

Code code_of(const Result<net::Packet>& answer) { return answer ? Code::kOk : answer.error().code; }

std::vector<Event> events_of(const Result<net::Packet>& answer) {
  REQUIRE(answer);
  const auto& events = answer->envelope.job_wait_reply().events();
  return {events.begin(), events.end()};
}

net::Packet start() {
  net::Packet packet;
  packet.envelope.mutable_worker_start();
  return packet;
}
net::Packet scratch() {
  net::Packet packet;
  packet.envelope.mutable_worker_scratch();
  return packet;
}
net::Packet result(const std::string& bytes) {
  net::Packet packet;
  packet.envelope.mutable_worker_result()->set_result(bytes);
  return packet;
}
net::Packet progress(const std::string& bytes) {
  net::Packet packet;
  packet.envelope.mutable_worker_progress()->set_progress(bytes);
  return packet;
}

// Job 7 with so many workers, and what its client can do.
struct Fixture {
  explicit Fixture(unsigned count = 1) : workers(count) {}

  void run(const std::function<void()>& body) {
    host.run({1000, {1000}}, [&](sim::Actor& actor, net::Caller& calls, net::PeerId to) {
      self = &actor;
      caller = &calls;
      peer = to;
      for (unsigned rank = 0; rank < workers; ++rank) REQUIRE(call(peer, spawn(7, rank)));
      body();
    });
  }
  Result<net::Packet> call(net::PeerId to, net::Packet packet) {
    return caller->call(to, std::move(packet), seconds(5), "host");
  }
  std::vector<Event> events(std::uint64_t seen = 0) { return events_of(call(peer, wait(7, seen))); }
  net::PeerId worker(Spawner::ProcessId process = 1) { return host.worker(*self, process); }
  Time now() { return self->clock().now(); }

  Host host{1000};
  sim::Actor* self = nullptr;
  net::Caller* caller = nullptr;
  net::PeerId peer = 0;

 private:
  unsigned workers;
};

}  // namespace

TEST_CASE("a worker is told its job, its rank, the job's description and where it is") {
  Fixture f(0);
  f.host.config.node = 3;
  f.run([&] {
    net::Packet request = spawn(7, 5);
    request.envelope.mutable_spawn()->set_description("what to do");
    request.envelope.mutable_spawn()->add_arguments("-v");
    request.envelope.mutable_spawn()->set_working_folder("/home/anna");
    REQUIRE(f.call(f.peer, std::move(request)));
    const auto told = f.call(f.worker(), start());
    REQUIRE(told);
    const auto& answer = told->envelope.worker_start_reply();
    CHECK(answer.job() == 7);
    CHECK(answer.rank() == 5);
    CHECK(answer.description() == "what to do");
    CHECK(answer.node().id() == 3);
    CHECK(answer.node().name() == "host");
    CHECK(answer.node().endpoints().unix_path() == "sim:host");
    CHECK(f.host.spawner.orders.at(0).arguments == std::vector<std::string>{"-v"});
    CHECK(f.host.spawner.orders.at(0).working_folder == "/home/anna");
  });
}

TEST_CASE("of a worker's progress the latest is kept, of two workers one each; events that were seen are forgotten") {
  Fixture f(2);
  f.run([&] {
    const auto one = f.worker(1), two = f.worker(2);
    for (const auto* text : {"10 %", "20 %"}) REQUIRE(f.self->messenger().send(one, progress(text)));
    REQUIRE(f.self->messenger().send(two, progress("1 %")));
    REQUIRE(f.call(one, result("done")));
    REQUIRE(f.self->pause(milliseconds(10)));
    const auto events = f.events();
    REQUIRE(events.size() == 3);
    std::map<std::uint32_t, std::string> shown;
    for (const auto& event : events)
      if (event.what_case() == Event::kProgress) shown[event.rank()] = event.progress();
    CHECK(shown == std::map<std::uint32_t, std::string>{{0, "20 %"}, {1, "1 %"}});
    const auto last = events.back().number();
    CHECK(f.events(events.front().number()).size() == 2);
    CHECK(f.events(last).empty());
    CHECK(f.events(0).empty());
  });
}

TEST_CASE("a wait is answered as soon as there is something, when a newer one comes, or after its time") {
  Fixture f;
  f.run([&] {
    const auto worker = f.worker();
    const auto begin = f.now();
    CHECK(f.events().empty());
    CHECK(f.now() - begin >= milliseconds(500));
    net::Packet patient = wait(7);
    patient.envelope.mutable_job_wait()->set_hold_ms(60'000);
    const auto long_wait = f.now();
    CHECK(events_of(f.caller->wait(f.caller->start(f.peer, std::move(patient), seconds(10), "host"))).empty());
    CHECK(f.now() - long_wait < milliseconds(5100));

    const auto older = f.caller->start(f.peer, wait(7), seconds(5), "host");
    const auto newer = f.caller->start(f.peer, wait(7), seconds(5), "host");
    const auto replaced = f.now();
    CHECK(events_of(f.caller->wait(older)).empty());
    CHECK(f.now() - replaced < milliseconds(100));
    REQUIRE(f.call(worker, result("done")));
    const auto events = events_of(f.caller->wait(newer));
    REQUIRE(events.size() == 1);
    CHECK(events[0].result() == "done");
    CHECK(f.now() - replaced < milliseconds(100));
  });
}

TEST_CASE("results that do not fit one reply come in several, and one that is too long is refused") {
  Fixture f(2);
  f.run([&] {
    const auto one = f.worker(1), two = f.worker(2);
    const std::string largest(64u << 10, 'x');
    const auto refused = f.call(one, result(largest + "x"));
    CHECK(code_of(refused) == Code::kTooLarge);
    CHECK(code_of(f.call(one, progress(largest + "x"))) == Code::kTooLarge);
    REQUIRE(f.call(one, result(largest)));
    REQUIRE(f.call(two, result(largest)));
    const auto first = f.events();
    REQUIRE(first.size() == 1);
    CHECK(first[0].rank() == 0);
    CHECK(first[0].result() == largest);
    const auto second = f.events(first[0].number());
    REQUIRE(second.size() == 1);
    CHECK(second[0].rank() == 1);
  });
}

TEST_CASE("what ended a worker is told, with its last words, and its folder goes with it") {
  Fixture f(0);
  f.host.config.endpoints.set_unix_path("/run/pif/lfs0");
  f.run([&] {
    REQUIRE(f.call(f.peer, spawn(7, 0)));
    REQUIRE(f.call(f.peer, spawn(7, 1)));
    const auto storage = component::make_memory_storage(f.host.disk);
    for (const auto& order : f.host.spawner.orders) REQUIRE(storage->make_folder(order.scratch_folder));
    CHECK(f.host.spawner.orders.at(0).scratch_folder == "/run/pif/w0000000000000007-0");
    f.host.spawner.end(1, {false, 3, "no such file"});
    f.host.spawner.end(2, {true, 11, {}});
    const auto first = f.events();
    REQUIRE(!first.empty());
    CHECK(first[0].exited() == 3);
    CHECK(first[0].text() == "no such file");
    const auto all = first.size() == 2 ? first : f.events(first[0].number());
    REQUIRE(!all.empty());
    CHECK(all.back().rank() == 1);
    CHECK(all.back().killed() == 11);
    CHECK(storage->list("/run/pif").value().empty());
  });
}

TEST_CASE("a worker that hangs up and does not end is killed soon, and one that ends is not") {
  Fixture f(2);
  f.run([&] {
    const auto begin = f.now();
    f.self->messenger().disconnect(f.worker(1));
    f.self->messenger().disconnect(f.worker(2));
    f.host.spawner.end(2, {false, 0, {}});
    auto events = f.events();
    REQUIRE(events.size() == 1);
    CHECK(events[0].rank() == 1);
    CHECK(events[0].exited() == 0);
    events = f.events(events[0].number());
    if (events.empty()) events = f.events(1);
    REQUIRE(events.size() == 1);
    CHECK(events[0].killed() == 9);
    CHECK(f.host.spawner.killed == std::set<Spawner::ProcessId>{1});
    CHECK(f.now() - begin > milliseconds(500));
    CHECK(f.now() - begin < milliseconds(700));
  });
}

TEST_CASE("a worker gets a file without a name, or why there is none; who has ended may ask nothing") {
  Fixture f;
  f.run([&] {
    const auto worker = f.worker();
    const auto given = f.call(worker, scratch());
    REQUIRE(given);
    CHECK(given->envelope.has_done());
    CHECK(given->handles.size() == 1);
    f.host.disk->set_fault(
        [](std::string_view call, std::string_view) { return call == "make_nameless" ? Code::kNoSpace : Code::kOk; });
    CHECK(code_of(f.call(worker, scratch())) == Code::kNoSpace);
    f.host.spawner.end(1, {false, 0, {}});
    REQUIRE(f.events().size() == 1);
    CHECK(code_of(f.call(worker, start())) == Code::kUnavailable);  // the connection was closed
    CHECK(code_of(f.call(f.peer, start())) == Code::kPermission);
  });
}

TEST_CASE("a worker that cannot be started is an error that names it and its LFS, the same one when asked again") {
  Fixture f(0);
  f.run([&] {
    f.host.spawner.error = Error{Code::kNoSpace, "too many processes", {}};
    for (int i = 0; i < 2; ++i) {
      const auto failed = f.call(f.peer, spawn(7, 4));
      REQUIRE(code_of(failed) == Code::kNoSpace);
      CHECK(failed.error().text.find("cannot start worker 4: too many processes") != std::string::npos);
      CHECK(failed.error().node == "host");
      f.host.spawner.error.reset();
    }
    CHECK(f.host.spawner.orders.empty());
    f.host.spawner.error = Error{Code::kIo, "broken", "another"};
    CHECK(f.call(f.peer, spawn(7, 5)).error().node == "another");
  });
}

TEST_CASE("a process whose connection cannot be taken is killed") {
  Fixture f(0);
  f.run([&] {
    f.host.spawner.gives_sockets = false;
    CHECK(code_of(f.call(f.peer, spawn(7))) == Code::kInvalid);
    CHECK(f.host.spawner.killed == std::set<Spawner::ProcessId>{1});
  });
}

TEST_CASE("one job has so many workers on one LFS and no more") {
  Fixture f(256);
  f.run([&] {
    const auto refused = f.call(f.peer, spawn(7, 256));
    REQUIRE(code_of(refused) == Code::kBusy);
    CHECK(refused.error().text.find("256 workers run here already") != std::string::npos);
    REQUIRE(f.call(f.peer, spawn(8)));
  });
}

TEST_CASE("all jobs together have so many workers on one LFS and no more") {
  Fixture f(0);
  f.host.world.options().delay_max = f.host.world.options().delay_min;  // no lease ends meanwhile
  f.run([&] {
    for (std::uint64_t job = 7; job < 7 + 16; ++job)
      for (unsigned rank = 0; rank < 256; ++rank) REQUIRE(f.call(f.peer, spawn(job, rank)));
    const auto refused = f.call(f.peer, spawn(23));
    REQUIRE(code_of(refused) == Code::kBusy);
    CHECK(refused.error().text.find("4096 workers") != std::string::npos);
  });
}

namespace {

// Four LFSs; a client asks the first one to start a worker on each.
struct Tree {
  Tree() {
    for (auto* other : others) other->start();
  }
  net::Packet request(std::uint32_t fan_out) const {
    net::Packet packet = spawn(7);
    proto::Spawn& spawn = *packet.envelope.mutable_spawn();
    spawn.set_fan_out(fan_out);
    spawn.set_description("what to do");
    spawn.set_working_folder("/home/anna");
    spawn.add_arguments("-v");
    for (std::uint32_t rank = 1; rank <= 3; ++rank) {
      proto::SpawnNode& node = *spawn.add_subtree();
      node.set_rank(rank);
      *node.mutable_node() = others.at(rank - 1)->info();
    }
    return packet;
  }
  Result<net::Packet> ask(net::Packet packet) {
    Result<net::Packet> answer = fail(Code::kInternal, "not asked");
    root.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
      answer = caller.call(peer, std::move(packet), seconds(60), "host");
    });
    return answer;
  }

  Host root{1000};
  Host one{1000, "lfs1", root.owned}, two{1000, "lfs2", root.owned}, three{1000, "lfs3", root.owned};
  std::array<Host*, 3> others = {&one, &two, &three};
};

}  // namespace

TEST_CASE("a host may run several workers of a job: a part of the tree that begins here is not sent anywhere") {
  Host root{1000};
  net::Packet packet = spawn(7);
  packet.envelope.mutable_spawn()->set_fan_out(2);
  packet.envelope.mutable_spawn()->set_description("what to do");
  for (std::uint32_t rank = 1; rank <= 3; ++rank) {
    proto::SpawnNode& node = *packet.envelope.mutable_spawn()->add_subtree();
    node.set_rank(rank);
    *node.mutable_node() = root.info();
  }
  root.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    const auto answer = caller.call(peer, std::move(packet), seconds(60), "host");
    REQUIRE(answer);
    CHECK(answer->envelope.spawn_reply().started() == 4);
    std::set<std::uint32_t> ranks;
    for (unsigned i = 1; i <= 4; ++i) {
      const auto told = caller.call(root.worker(self, i), start(), seconds(5), "host");
      REQUIRE(told);
      CHECK(told->envelope.worker_start_reply().description() == "what to do");
      ranks.insert(told->envelope.worker_start_reply().rank());
    }
    CHECK(ranks == std::set<std::uint32_t>{0, 1, 2, 3});
  });
}

TEST_CASE("a spawn tree of any shape starts one worker on each LFS, all for the same user and with the same words") {
  for (const std::uint32_t fan_out : {0u, 1u, 2u, 3u, 100u}) {
    Tree tree;
    const auto answer = tree.ask(tree.request(fan_out));
    REQUIRE(answer);
    CHECK(answer->envelope.spawn_reply().started() == 4);
    for (auto* host : tree.others) {
      REQUIRE(host->spawner.orders.size() == 1);
      const auto& order = host->spawner.orders[0];
      CHECK(order.program == "/bin/tool");
      CHECK(order.arguments == std::vector<std::string>{"-v"});
      CHECK(order.working_folder == "/home/anna");
      CHECK(order.uid == 1000);
    }
  }
}

TEST_CASE("an error anywhere in a spawn tree is the answer, in the words of the LFS that failed") {
  for (const std::uint32_t fan_out : {1u, 3u}) {
    Tree tree;
    tree.three.spawner.error = Error{Code::kNoSpace, "too many processes", {}};
    const auto failed = tree.ask(tree.request(fan_out));
    REQUIRE(code_of(failed) == Code::kNoSpace);
    CHECK(failed.error().node == "lfs3");
    CHECK(failed.error().text.find("cannot start worker 3") != std::string::npos);
  }
}

TEST_CASE("what is handed on speaks for its user as long as the credential that it stands for") {
  Host root{1000};
  std::int64_t expiry = 0, handed_on = 0;
  root.world.spawn("lfs1", [&](sim::Actor& self) {
    auto came = self.messenger().receive(kNever);
    if (!came || !*came) return;
    const auto& asked = (*came)->packet.envelope;
    const auto said = verify_credential(root.config.key, asked.credential(), self.clock().wall_seconds());
    handed_on = said && said->uid == 1000 ? said->expiry : -1;
    net::Packet answer = net::reply_to(asked);
    answer.envelope.mutable_spawn_reply()->set_started(1);
    (void)self.messenger().send((*came)->peer, std::move(answer));
  });
  root.run(
      {1000, {1000}},
      [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
        net::Packet packet = spawn(7);
        proto::SpawnNode& node = *packet.envelope.mutable_spawn()->add_subtree();
        node.set_rank(1);
        node.mutable_node()->set_name("lfs1");
        node.mutable_node()->mutable_endpoints()->set_unix_path("sim:lfs1");
        expiry = self.clock().wall_seconds() + 5000;
        packet.envelope.set_credential(mint(root.config.key, Credential{SessionId(1), 1000, {1000}, expiry}));
        CHECK(caller.call(peer, std::move(packet), seconds(5), "host")->envelope.spawn_reply().started() == 2);
      },
      net::Route::kIpc);
  CHECK(handed_on == expiry);
}

TEST_CASE("an LFS of a spawn tree that cannot be reached or goes away is named") {
  SECTION("nobody is there") {
    Tree tree;
    tree.two.stop();
    tree.three.stop();
    const auto failed = tree.ask(tree.request(3));
    REQUIRE(code_of(failed) == Code::kUnavailable);
    CHECK(failed.error().node == "lfs2");
    CHECK(tree.one.spawner.orders.size() == 1);
  }
  SECTION("it goes away") {
    Tree tree;
    tree.root.world.stall(tree.root.world.find("lfs2").value(), seconds(30));
    tree.root.world.spawn("end", [&](sim::Actor& self) {
      if (self.pause(seconds(1))) tree.two.stop();
    });
    const auto failed = tree.ask(tree.request(3));
    REQUIRE(code_of(failed) == Code::kUnavailable);
    CHECK(failed.error().text.find("lfs2") != std::string::npos);
  }
}

TEST_CASE("a spawn is handed on for as long as its sender waits, at most as long as an LFS may be silent") {
  for (const std::uint32_t patience : {2000u, 0u}) {
    Tree tree;
    tree.root.world.stall(tree.root.world.find("lfs2").value(), seconds(30));
    tree.root.run({1000, {1000}}, [&](sim::Actor& self, net::Caller&, net::PeerId peer) {
      net::Packet request = tree.request(3);
      request.envelope.set_version(kProtocolVersion);
      request.envelope.set_id(1);
      request.envelope.set_timeout_ms(patience);
      const Time begin = self.clock().now();
      REQUIRE(self.messenger().send(peer, std::move(request)));
      const auto answer = self.messenger().receive(kNever);
      REQUIRE(answer);
      const proto::Error& error = (*answer)->packet.envelope.error();
      CHECK(error.code() == static_cast<std::uint32_t>(Code::kTimeout));
      CHECK(error.text().find("lfs2") != std::string::npos);
      const Duration waited = self.clock().now() - begin;
      CHECK(waited > milliseconds(patience == 0 ? 7900 : 1900));
      CHECK(waited < milliseconds(patience == 0 ? 8500 : 2500));
    });
  }
}

}  // namespace pif::lfs::test
