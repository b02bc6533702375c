// Clients that go on after their machine has slept for longer than a credential is good (7 days).
#include "fixture.h"
#include "pif/client/session.h"

using namespace pif;
using namespace pif::test;
using namespace std::chrono_literals;

namespace {

constexpr Duration kWeek = 24h * 7;

CreateOptions records_of(std::uint32_t length) {
  CreateOptions options;
  options.format = Format::fixed(length);
  return options;
}

void add_client(FileSystem& fs, const std::string& route, std::function<void(Client&, sim::Actor&)> body) {
  fs.world.spawn_main(
      "client",
      [&fs, route, body = std::move(body)](sim::Actor& self) {
        sim::ClientSide side(self);
        ConnectOptions options;
        options.route = route;
        options.data_path = route == "auto" ? DataPath::kAuto : DataPath::kMessages;
        Client client = must(Client::connect_in(side.world(), sim::Cluster::kServer, options));
        must(client.status(fs.cluster.size()));
        body(client, self);
      },
      sim::Who{0, {0}});
}

std::uint64_t session_of(Client& client) {
  std::uint64_t session = 0;
  std::memcpy(&session, client.session().credential().data() + 1, sizeof session);
  return session;
}

}  // namespace

TEST_CASE("after a sleep of eight days every call goes on, in the same session") {
  for (const std::string route : {"auto", "ipc"}) {
    CAPTURE(route);
    // What is the first call after it.
    for (const std::string first : {"names", "many names", "open file", "open", "LFS", "new file"}) {
      CAPTURE(first);
      FileSystem fs(2);
      add_client(fs, route, [&](Client& client, sim::Actor&) {
        const Bytes bytes = pattern(300'000);
        put(client, "/f", records_of(1000), bytes);
        File file = must(client.open("/f"));
        CHECK(get(file) == bytes);
        const std::uint64_t session = session_of(client);
        const std::string credential = client.session().credential();
        fs.world.leap(kWeek + 24h);
        if (first == "names") CHECK(must(client.stat("/f")).file_length.bytes == bytes.size());
        if (first == "many names") {
          const std::vector<std::string> paths = {"/f", "/f"};
          const auto entries = must(client.stat_many(paths));
          for (const auto& entry : entries) CHECK(must(entry).name == "f");
        }
        if (first == "open file") CHECK(get(file) == bytes);
        if (first == "open") CHECK(get(client, "/f") == bytes);
        if (first == "LFS") must(client.session().call(client::parts_of(file).nodes[1], proto::Stats()));
        if (first == "new file") put(client, "/g", records_of(1000), bytes);
        CHECK(client.session().credential() != credential);
        CHECK(session_of(client) == session);
        CHECK(get(file) == bytes);
        must(client.make_folder("/d"));
        must(client.remove("/f"));
      });
      fs.world.run();
    }
  }
}

TEST_CASE("a file that is being created when the machine sleeps for eight days is committed afterwards") {
  for (const std::string route : {"auto", "ipc"}) {
    CAPTURE(route);
    FileSystem fs(2);
    add_client(fs, route, [&](Client& client, sim::Actor&) {
      const Bytes bytes = pattern(300'000);
      File file = must(client.create("/f", records_of(1000)));
      must(file.write(part(bytes, 0, 100'000)));
      fs.world.leap(kWeek + 24h);
      must(file.write(part(bytes, 100'000, 200'000)));
      must(file.commit());
      CHECK(get(client, "/f") == bytes);
    });
    fs.world.run();
  }
}

// As where the key of the file system was changed: nobody knows before he asks.
TEST_CASE("an LFS that refuses the credential is asked again with another one") {
  FileSystem fs(1);
  add_client(fs, "ipc", [&](Client& client, sim::Actor&) {
    const Bytes bytes = pattern(3000);
    put(client, "/f", records_of(1000), bytes);
    File file = must(client.open("/f"));
    std::string old = client.session().credential();
    old[10] = static_cast<char>(old[10] + 1);
    const auto harm = [&] { client.session().links().set_credential(old); };
    SECTION("in answer to a request") { harm(); }
    SECTION("in answer to its Hello") {
      client.session().drop_node(1);
      harm();
    }
    SECTION("in answer to a request about no file") {
      harm();
      must(client.session().call(client::parts_of(file).nodes[0], proto::StoredBytes()));
    }
    CHECK(get(file) == bytes);
    CHECK(client.session().credential() != old);
  });
  fs.world.run();
}
