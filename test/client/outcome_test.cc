// What a client does and says when a daemon does not answer: changes whose outcome is not known, and LFSs that have
// moved.
#include "fixture.h"
#include "pif/client/session.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

// An actor with a client of this timeout and route.
void add_client(FileSystem& fs, ConnectOptions options, std::function<void(Client&, sim::Actor&)> body) {
  fs.world.spawn_main(
      "client",
      [&fs, options, body = std::move(body)](sim::Actor& self) {
        sim::ClientSide side(self);
        Client client = must(Client::connect_in(side.world(), sim::Cluster::kServer, options));
        must(client.status(fs.cluster.size()));  // all are up
        body(client, self);
      },
      sim::Who{0, {0}});
}
ConnectOptions patient_for(Duration timeout) {
  ConnectOptions options;
  options.timeout = timeout;
  return options;
}

CreateOptions records_of(std::uint32_t length) {
  CreateOptions options;
  options.format = Format::fixed(length);
  return options;
}

std::string error_of(const Status& status) { return status ? "" : status.error().to_string(); }

void check_unknown(const Status& status, const std::string& path) {
  REQUIRE(!status);
  CHECK(status.error().code == Code::kTimeout);
  CHECK_THAT(error_of(status), Catch::Contains("is not known: look with pif stat " + path));
}

}  // namespace

TEST_CASE("a commit that gets no answer is asked for again, and found to be done") {
  FileSystem fs(2);
  add_client(fs, patient_for(2s), [&](Client& client, sim::Actor& self) {
    File file = must(client.create("/f", records_of(10)));
    must(file.write(pattern(50)));
    fs.world.stall(*fs.world.find("server"), 12s);  // it does it then, for nobody: the first deadline has passed
    const Time begin = self.clock().now();
    must(file.commit());
    CHECK(self.clock().now() - begin < 30s);
    CHECK(get(client, "/f") == pattern(50));
  });
  fs.world.run();
}

TEST_CASE("changes that get no answer say that the outcome is not known, and where to look") {
  const int change = GENERATE(range(0, 4));
  CAPTURE(change);
  FileSystem fs(2);
  add_client(fs, patient_for(2s), [&](Client& client, sim::Actor& self) {
    put(client, "/a", records_of(10), pattern(50));
    File file = must(client.create("/f", records_of(10)));
    must(file.write(pattern(50)));
    fs.world.stall(*fs.world.find("server"), 100s);
    const Time begin = self.clock().now();
    if (change == 0) check_unknown(client.rename("/a", "/b"), "/b");
    if (change == 1) check_unknown(client.remove("/a"), "/a");
    if (change == 2) check_unknown(client.make_folder("/d"), "/d");
    if (change == 3) check_unknown(file.commit(), "/f");
    CHECK(self.clock().now() - begin < (change == 3 ? 31s : 3s));
  });
  fs.world.run();
}

TEST_CASE("what could not even be asked for is not done, and its error does not say otherwise") {
  FileSystem fs(2);
  add_client(fs, patient_for(2s), [&](Client& client, sim::Actor&) {
    fs.cluster.kill_server();
    (void)client.stat("/").has_value();  // the connection is found to be gone
    const Status renamed = client.rename("/a", "/b");
    REQUIRE(!renamed);
    CHECK(error_of(renamed).find("not known") == std::string::npos);
  });
  fs.world.run();
}

TEST_CASE("an append whose end gets no answer says that the outcome is not known") {
  FileSystem fs(2);
  add_client(fs, patient_for(4s), [&](Client& client, sim::Actor&) {
    CreateOptions options = records_of(16);
    options.nodes = {1, 2};  // lfs0 is the sequencer
    must(client.create_empty("/log", options));
    File file = must(client.open("/log", Client::Mode::kWrite));
    must(file.append(pattern(32)));
    fs.world.on_step(
        [&, stalled = false](std::uint64_t) mutable {  // it stops once both LFSs have their rows of the second append
          for (const OperationStats& one : client.stats()) {
            if (one.name != "append_rows" || one.count < 4 || stalled) continue;
            fs.world.stall(*fs.world.find("lfs0"), 60s);
            stalled = true;
          }
        });
    const auto appended = file.append(pattern(16 * 5));
    fs.world.on_step(nullptr);
    REQUIRE(!appended);
    CHECK_THAT(appended.error().to_string(), Catch::Contains("not known: look with pif stat /log"));
  });
  fs.world.run();
}

// ---- LFSs at another address --------------------------------------------------------------------------------------

namespace {

// The file as one that opened it knows it when lfs0 was reached at `old_address`.
File opened_long_ago(Client& client, File& file, const std::string& old_address) {
  client::FileParts parts = client::parts_of(file);
  for (proto::NodeInfo& node : parts.nodes) {
    if (node.name() == "lfs0") node.mutable_endpoints()->set_tcp("sim:" + old_address);
  }
  return must(client::adopt_file(client::session_of(client), std::move(parts)));
}

ConnectOptions over_tcp() {
  ConnectOptions options;
  options.route = "tcp";
  return options;
}

}  // namespace

TEST_CASE("over tcp an LFS that does not answer where it was is looked up at the server, and found") {
  FileSystem fs(2);
  add_client(fs, over_tcp(), [&](Client& client, sim::Actor& self) {
    put(client, "/f", records_of(10), pattern(50));
    File file = must(client.open("/f"));
    client::session_of(client)->drop_node(1);
    client::session_of(client)->drop_node(2);
    File old = opened_long_ago(client, file, "nobody");
    const Time begin = self.clock().now();
    Bytes out(50);
    REQUIRE(must(old.read_at(0, out, 5)) == 5);
    CHECK(out == pattern(50));
    CHECK(self.clock().now() - begin < 10s);  // one silence
  });
  fs.world.run();
}

TEST_CASE("over tcp an LFS that falls silent is looked up at the server, for requests under way too") {
  FileSystem fs(2);
  add_client(fs, over_tcp(), [&](Client& client, sim::Actor& self) {
    put(client, "/f", records_of(10), pattern(500));
    File file = must(client.open("/f"));
    client::session_of(client)->drop_node(1);
    client::session_of(client)->drop_node(2);
    const std::string cluster = client::session_of(client)->cluster();
    const auto stranger = fs.world.spawn("old0", [cluster](sim::Actor& actor) {
      while (auto delivery = actor.messenger().receive(kNever)) {  // answers Hello, and nothing else
        if (!*delivery || !(*delivery)->packet.envelope.has_hello()) continue;
        net::Packet reply = net::reply_to((*delivery)->packet.envelope);
        reply.envelope.mutable_hello_reply()->set_cluster(cluster);
        (void)actor.messenger().send((*delivery)->peer, std::move(reply));
      }
    });
    File old = opened_long_ago(client, file, "old0");
    const Time begin = self.clock().now();
    Bytes out(500);
    std::vector<File::ReadRequest> requests;
    for (std::uint64_t i = 0; i < 50; ++i) requests.push_back({i, 1, std::span(out).subspan(i * 10, 10), 0});
    must(old.read_many(requests));
    CHECK(out == pattern(500));
    CHECK(self.clock().now() - begin < 14s);  // at most one silence for the length, one for the records
    fs.world.kill(stranger);
  });
  fs.world.run();
}

TEST_CASE("another LFS that answers where one was is not taken for it, and the server says where it is") {
  FileSystem fs(2);
  add_client(fs, over_tcp(), [&](Client& client, sim::Actor&) {
    put(client, "/f", records_of(10), pattern(50));
    File file = must(client.open("/f"));
    client::session_of(client)->drop_node(1);
    client::session_of(client)->drop_node(2);
    File old = opened_long_ago(client, file, "lfs1");
    Bytes out(50);
    REQUIRE(must(old.read_at(0, out, 5)) == 5);
    CHECK(out == pattern(50));
  });
  fs.world.run();
}
