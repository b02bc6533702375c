// Who may have workers started, waited for and killed, and for how long a job is remembered.
#include "host.h"

namespace pif::lfs::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Code code_of(const Result<net::Packet>& answer) { return answer ? Code::kOk : answer.error().code; }

TEST_CASE("a job lives as long as its controller's Unix connection, however long that says nothing") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host"));
    self.pause(std::chrono::hours(1));
    REQUIRE(host.spawner.running.size() == 1);
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host"));
    self.messenger().disconnect(peer);
    self.pause(milliseconds(200));
    REQUIRE(host.spawner.running.empty());
  });
}

TEST_CASE("over ZeroMQ a job outlives a minute without word of its controller, and no more") {
  Host host(1000);
  host.run(
      {1000, {1000}},
      [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
        const auto call = [&](net::Packet packet) {
          const auto later = self.clock().wall_seconds() + 600;
          packet.envelope.set_credential(mint(host.config.key, Credential{SessionId(1), 1000, {1000}, later}));
          return caller.call(peer, std::move(packet), seconds(5), "host");
        };
        REQUIRE(call(spawn(7)));
        for (int i = 0; i < 3; ++i) {
          REQUIRE(call(wait(7)));
          self.pause(seconds(58));
          REQUIRE(host.spawner.running.size() == 1);
        }
        self.pause(seconds(3));
        REQUIRE(host.spawner.running.empty());
      },
      net::Route::kIpc);
}

TEST_CASE("a job for which no controller waits is killed soon") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    self.pause(seconds(9));
    REQUIRE(host.spawner.running.size() == 1);
    self.pause(seconds(2));
    REQUIRE(host.spawner.running.empty());
  });
}

TEST_CASE("of the jobs of one controller those that are over, and were told to it, count no more") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    for (std::uint64_t job = 1; job <= 400; ++job) {
      REQUIRE(caller.call(peer, spawn(job), seconds(5), "host"));
      host.spawner.end(static_cast<Spawner::ProcessId>(job), {false, 0, {}});
      REQUIRE(caller.call(peer, wait(job), seconds(5), "host")->envelope.job_wait_reply().events_size() == 1);
      self.pause(milliseconds(10));
    }
  });
}

TEST_CASE("a job that is not known is early as long as its spawn has no answer, and lost afterwards") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host"));
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    net::Packet later = wait(7);
    later.envelope.mutable_job_wait()->set_started(true);
    REQUIRE(caller.call(peer, net::Packet{later.envelope, {}, {}}, seconds(5), "host"));
    REQUIRE(caller.call(peer, kill(7), seconds(5), "host"));
    self.pause(seconds(20));  // the memory of it ends
    const auto lost = caller.call(peer, net::Packet{later.envelope, {}, {}}, seconds(5), "host");
    REQUIRE(!lost);
    REQUIRE(lost.error().code == Code::kCancelled);
    REQUIRE(lost.error().text.find("not known here any more") != std::string::npos);
  });
}

TEST_CASE("a host without root's rights refuses the workers of other users, and says why") {
  Host host(1000);
  host.run({1001, {1001}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    const auto refused = caller.call(peer, spawn(7), seconds(5), "host");
    REQUIRE(!refused);
    REQUIRE(refused.error().code == Code::kPermission);
    REQUIRE(refused.error().text.find("uid 1001") != std::string::npos);
    REQUIRE(host.spawner.orders.empty());
  });
}

TEST_CASE("a host with root's rights starts a worker as the user who asks") {
  Host host(0);
  host.run({1001, {1001, 27}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    REQUIRE(host.spawner.orders.size() == 1);
    REQUIRE(host.spawner.orders[0].uid == 1001);
    REQUIRE(host.spawner.orders[0].gids == std::vector<std::uint32_t>{1001, 27});
  });
}

TEST_CASE("nobody may wait for, or kill, another user's job") {
  Host host(0);
  host.world.spawn(
      "owner",
      [&](sim::Actor& self) {
        net::Caller caller(self.messenger(), 1);
        const auto peer = host.connect(self);
        REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
        while (caller.call(peer, wait(7), seconds(5), "host")) {
        }
      },
      sim::Who{1001, {1001}});
  host.run({1002, {1002}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    while (host.spawner.running.empty()) self.pause(milliseconds(1));
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host").error().code == Code::kPermission);
    REQUIRE(caller.call(peer, kill(7), seconds(5), "host").error().code == Code::kPermission);
    REQUIRE(host.spawner.killed.empty());
  });
}

TEST_CASE("a spawn that comes after its job was ended starts nothing") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, kill(7), seconds(5), "host"));
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host").error().code == Code::kCancelled);
    REQUIRE(host.spawner.orders.empty());
  });
}

TEST_CASE("a spawn that is sent again starts one worker only") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host")->envelope.spawn_reply().started() == 1);
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host")->envelope.spawn_reply().started() == 1);
    REQUIRE(host.spawner.orders.size() == 1);
  });
}

TEST_CASE("a program without an absolute path is refused") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7, 0, "tool"), seconds(5), "host").error().code == Code::kInvalid);
  });
}

TEST_CASE("folders are given to workers as they were asked for, unless the owner forbids it") {
  Host host(1000);
  WorkerRules rules;
  host.config.worker_rules = [&] { return rules; };
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    const auto with = [&](std::uint64_t job, const std::string& folder, int count = 1) {
      auto request = spawn(job);
      for (int i = 0; i < count; ++i) {
        request.envelope.mutable_spawn()->add_grants()->set_folder(folder);
        request.envelope.mutable_spawn()->mutable_grants(i)->set_may_write(i == 0);
      }
      return caller.call(peer, std::move(request), seconds(5), "host");
    };
    REQUIRE(with(7, "/data", 2));
    REQUIRE(host.spawner.orders.size() == 1);
    REQUIRE(host.spawner.orders[0].grants.size() == 2);
    CHECK(host.spawner.orders[0].grants[0].folder == "/data");
    CHECK(host.spawner.orders[0].grants[0].may_write);
    CHECK_FALSE(host.spawner.orders[0].grants[1].may_write);
    CHECK(with(8, "data").error().code == Code::kInvalid);
    CHECK(with(9, "/data", 17).error().code == Code::kInvalid);
    CHECK(with(10, "/" + std::string(4095, 'x')).error().code == Code::kInvalid);
    rules.grants = false;
    CHECK(with(11, "/data").error().code == Code::kPermission);
    CHECK(caller.call(peer, spawn(12), seconds(5), "host"));
    CHECK(host.spawner.orders.size() == 2);
  });
}

TEST_CASE("workers that meet get what all gave, when the controller has said it") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    net::Caller worker(self.messenger(), 100);
    const auto connection = host.worker(self);
    const auto meet = [&](std::size_t bytes = 5) {
      net::Packet packet;
      packet.envelope.mutable_worker_meet()->set_value(std::string(bytes, 'w'));
      return worker.call(connection, std::move(packet), seconds(5), "host");
    };
    CHECK(meet(1025).error().code == Code::kTooLarge);
    CHECK(!meet()->envelope.worker_meet_reply().met());  // nobody else is there yet
    const auto events = caller.call(peer, wait(7), seconds(5), "host");
    REQUIRE(events->envelope.job_wait_reply().events_size() == 1);
    CHECK(events->envelope.job_wait_reply().events(0).meet() == "wwwww");
    CHECK(!meet()->envelope.worker_meet_reply().met());
    const auto later = caller.call(peer, wait(7), seconds(5), "host");
    CHECK(later->envelope.job_wait_reply().events_size() == 1);  // it was not told again
    net::Packet all;
    all.envelope.mutable_job_meet()->set_job(7);
    for (const auto* value : {"here", "there"}) all.envelope.mutable_job_meet()->add_values(value);
    REQUIRE(caller.call(peer, std::move(all), seconds(5), "host"));
    const auto met = meet();
    REQUIRE(met->envelope.worker_meet_reply().values_size() == 2);
    CHECK(met->envelope.worker_meet_reply().values(1) == "there");
  });
}

TEST_CASE("nobody but the job's user may say what its workers gave") {
  Host host(0);
  host.run({1002, {1002}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    host.world.spawn(
        "owner",
        [&](sim::Actor& owner) {
          net::Caller own(owner.messenger(), 1);
          const auto at = host.connect(owner);
          (void)own.call(at, spawn(7), seconds(5), "host").has_value();
          while (own.call(at, wait(7), seconds(5), "host")) {
          }
        },
        sim::Who{1001, {1001}});
    while (host.spawner.running.empty()) self.pause(milliseconds(1));
    net::Packet all;
    all.envelope.mutable_job_meet()->set_job(7);
    CHECK(caller.call(peer, std::move(all), seconds(5), "host").error().code == Code::kPermission);
  });
}

TEST_CASE("a worker starts no workers, and neither waits for jobs nor ends or answers for them") {
  Host host(0);
  host.run({1001, {1001}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    net::Caller worker(self.messenger(), 100);
    const auto connection = host.worker(self);
    net::Packet meet;
    meet.envelope.mutable_job_meet()->set_job(7);
    for (const auto& asked :
         {spawn(8).envelope, spawn(7).envelope, wait(7).envelope, wait(8).envelope, kill(7).envelope, meet.envelope}) {
      const auto refused = worker.call(connection, net::Packet{asked, {}, {}}, seconds(5), "host");
      CHECK(code_of(refused) == Code::kPermission);
      CHECK(refused.error().text.find("their controller does") != std::string::npos);
    }
    CHECK(host.spawner.orders.size() == 1);
    CHECK(host.spawner.running.size() == 1);
  });
}

TEST_CASE("a worker has one result") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    net::Caller worker(self.messenger(), 100);
    const auto connection = host.worker(self);
    const auto say = [&](const std::string& result) {
      net::Packet packet;
      packet.envelope.mutable_worker_result()->set_result(result);
      return code_of(worker.call(connection, std::move(packet), seconds(5), "host"));
    };
    CHECK(say("first") == Code::kOk);
    CHECK(say("second") == Code::kInvalid);
    const auto events = caller.call(peer, wait(7), seconds(5), "host");
    REQUIRE(events->envelope.job_wait_reply().events_size() == 1);
    CHECK(events->envelope.job_wait_reply().events(0).result() == "first");
  });
}

TEST_CASE("last words that are not UTF-8 reach the controller all the same") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    host.spawner.end(1, {false, 3, "\x80 caf\xe9: \xc3\xa9"});
    const auto events = caller.call(peer, wait(7), seconds(5), "host");
    REQUIRE(events);
    REQUIRE(events->envelope.job_wait_reply().events_size() == 1);
    CHECK(events->envelope.job_wait_reply().events(0).text() == "\xef\xbf\xbd caf\xef\xbf\xbd: \xc3\xa9");
    CHECK(events->envelope.job_wait_reply().events(0).exited() == 3);
  });
}

TEST_CASE("what only a worker may say is refused from anybody else") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    net::Packet result;
    result.envelope.mutable_worker_result()->set_result("done");
    REQUIRE(caller.call(peer, std::move(result), seconds(5), "host").error().code == Code::kPermission);
  });
}

TEST_CASE("one user has so many jobs, also ones that were only ended, and no more; all users together too") {
  Host host(0);
  host.run({0, {0}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    const auto later = self.clock().wall_seconds() + 600;
    const auto end = [&](std::uint32_t uid, std::uint64_t job) {
      net::Packet packet = kill(job);
      packet.envelope.set_credential(mint(host.config.key, Credential{SessionId(1), uid, {uid}, later}));
      return caller.call(peer, std::move(packet), seconds(5), "host");
    };
    std::uint64_t job = 0;
    for (std::uint32_t uid = 1001; uid <= 1004; ++uid) {
      for (int i = 0; i < 256; ++i) REQUIRE(end(uid, ++job));
      if (uid == 1004) break;
      const auto refused = end(uid, job + 1);
      REQUIRE(code_of(refused) == Code::kBusy);
      REQUIRE(refused.error().text.find("limit of one user") != std::string::npos);
      REQUIRE(end(uid, job));  // one that is known
    }
    const auto full = end(1005, ++job);
    REQUIRE(code_of(full) == Code::kBusy);
    REQUIRE(full.error().text.find("1024 jobs") != std::string::npos);
    self.pause(seconds(11));  // the memory of them ends
    REQUIRE(end(1001, ++job));
  });
}

TEST_CASE("over ZeroMQ a request about workers needs a good credential, also from who waited last") {
  Host host(0);
  host.run(
      {1001, {1001}},
      [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
        const auto now = self.clock().wall_seconds();
        const auto call = [&](net::Packet packet, const std::string& credential) {
          packet.envelope.set_credential(credential);
          return caller.call(peer, std::move(packet), seconds(5), "host");
        };
        const auto good = mint(host.config.key, Credential{SessionId(1), 1001, {1001, 27}, now + 600});
        const auto refused = call(spawn(7), {});
        REQUIRE(code_of(refused) == Code::kPermission);
        REQUIRE(refused.error().text.find("without a credential") != std::string::npos);
        REQUIRE(!call(spawn(7), "forged"));
        REQUIRE(!call(wait(7), "forged"));
        REQUIRE(host.spawner.orders.empty());
        REQUIRE(call(spawn(7), good));
        REQUIRE(host.spawner.orders.at(0).uid == 1001);
        REQUIRE(host.spawner.orders.at(0).gids == std::vector<std::uint32_t>{1001, 27});
        REQUIRE(call(wait(7), good));
        REQUIRE(code_of(call(wait(7), {})) == Code::kPermission);
        REQUIRE(code_of(call(kill(7), {})) == Code::kPermission);
        REQUIRE(host.spawner.killed.empty());
        const auto other = mint(host.config.key, Credential{SessionId(1), 1002, {1002}, now + 600});
        REQUIRE(code_of(call(kill(7), other)) == Code::kPermission);
        const auto root = mint(host.config.key, Credential{SessionId(1), 0, {0}, now + 600});
        REQUIRE(call(kill(7), root));
        REQUIRE(host.spawner.killed.size() == 1);
      },
      net::Route::kIpc);
}

TEST_CASE("on a Unix socket another user's credential counts from root and the LFS's own user only") {
  const auto uid_of_worker = [](std::uint32_t host_uid, std::uint32_t asker) {
    Host host(host_uid);
    host.run({asker, {asker}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
      const auto later = self.clock().wall_seconds() + 600;
      net::Packet packet = spawn(7);
      packet.envelope.set_credential(mint(host.config.key, Credential{SessionId(1), 1001, {1001}, later}));
      (void)caller.call(peer, std::move(packet), seconds(5), "host").has_value();
    });
    return host.spawner.orders.empty() ? 0 : host.spawner.orders.at(0).uid;
  };
  CHECK(uid_of_worker(0, 0) == 1001);
  CHECK(uid_of_worker(0, 1002) == 1002);  // is who he is
  CHECK(uid_of_worker(1001, 0) == 1001);
  CHECK(uid_of_worker(1001, 1002) == 0);  // refused
  CHECK(uid_of_worker(500, 500) == 0);    // speaks for 1001, whose workers it cannot start
}

TEST_CASE("a job whose controller hangs up is killed at once, and one that is over is left alone") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor& self, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host"));
    REQUIRE(caller.call(peer, spawn(8), seconds(5), "host"));
    host.spawner.end(2, {false, 0, {}});
    REQUIRE(caller.call(peer, wait(8), seconds(5), "host")->envelope.job_wait_reply().events_size() == 1);
    self.messenger().disconnect(peer);
    self.pause(milliseconds(100));
    REQUIRE(host.spawner.killed == std::set<Spawner::ProcessId>{1});
    const auto again = host.connect(self);
    const auto ended = caller.call(again, wait(7), seconds(5), "host");
    REQUIRE(code_of(ended) == Code::kCancelled);
    REQUIRE(ended.error().text.find("was ended") != std::string::npos);
    REQUIRE(caller.call(again, wait(8), seconds(5), "host"));
  });
}

TEST_CASE("a host that ends kills its workers") {
  Host host(1000);
  host.run({1000, {1000}}, [&](sim::Actor&, net::Caller& caller, net::PeerId peer) {
    REQUIRE(caller.call(peer, spawn(7), seconds(5), "host"));
    REQUIRE(caller.call(peer, spawn(7, 1), seconds(5), "host"));
    host.spawner.end(1, {false, 0, {}});
    REQUIRE(caller.call(peer, wait(7), seconds(5), "host")->envelope.job_wait_reply().events_size() == 1);
  });
  CHECK(host.spawner.killed == std::set<Spawner::ProcessId>{2});
}

}  // namespace
}  // namespace pif::lfs::test
