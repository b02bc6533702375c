// What a client and the daemons say of their work.
#include <algorithm>

#include "fixture.h"

using namespace pif;
using namespace pif::test;

namespace {

const OperationStats& operation(const std::vector<OperationStats>& all, const std::string& name) {
  static const OperationStats kNone;
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return at == all.end() ? kNone : *at;
}

const DaemonStats& run_daemon(const std::vector<DaemonStats>& all, const std::string& node) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.node == node; });
  REQUIRE(at != all.end());
  return *at;
}

CreateOptions fixed_on_two() {
  CreateOptions options;
  options.format = Format::fixed(100);
  options.width = 2;
  return options;
}

}  // namespace

TEST_CASE("a client counts its requests, their records and how they ended") {
  FileSystem fs(2);
  fs.run(DataPath::kMessages, [](Client& client) {
    const auto before = client.stats();
    put(client, "/f", fixed_on_two(), pattern(1000));
    CHECK(get(client, "/f") == pattern(1000));
    CHECK(code_of(client.stat("/none")) == Code::kNotFound);
    CHECK(code_of(client.open("/none")) == Code::kNotFound);
    const auto after = client.stats();
    CHECK(operation(after, "create").count == 1);
    CHECK(operation(after, "commit").count == 1);
    CHECK(operation(after, "seal").count == 2);
    CHECK(operation(after, "write").bytes_out == 1000);
    CHECK(operation(after, "read").bytes_in + operation(after, "read_bytes").bytes_in == 1000);
    CHECK(operation(after, "open").count - operation(before, "open").count == 2);
    CHECK(operation(after, "open").errors == 1);
    CHECK(operation(after, "stat").errors == 0);  // one path of many may fail: that is an answer
  });
}

TEST_CASE("a request's time is in the latencies of who asked and of who answered") {
  FileSystem fs(1);
  fs.run(DataPath::kMessages, [](Client& client) {
    for (int i = 0; i < 10; ++i) must(client.make_folder("/d" + std::to_string(i)));
    const auto ours = operation(client.stats(), "make_folder");
    CHECK(ours.latency.total() == 10);
    CHECK(ours.longest <= ours.latency.percentile(100));
    CHECK(ours.total >= ours.longest);
    const auto theirs = operation(run_daemon(must(client.daemon_stats()), "server").operations, "make_folder");
    CHECK(theirs.count == 10);
    CHECK(theirs.latency.total() == 10);
    CHECK(theirs.total <= ours.total);
  });
}

TEST_CASE("every daemon that is up says what it did since its start") {
  FileSystem fs(3);
  fs.add_client("client", DataPath::kMessages, [&](Client& client, sim::Actor& self) {
    put(client, "/f", fixed_on_two(), pattern(1000));
    const auto all = must(client.daemon_stats());
    REQUIRE(all.size() == 4);
    CHECK(all[0].node == "server");
    CHECK(operation(all[0].operations, "create").count == 1);
    std::uint64_t written = 0;
    for (const auto* node : {"lfs0", "lfs1", "lfs2"}) {
      const DaemonStats& lfs = run_daemon(all, node);
      written += operation(lfs.operations, "write").bytes_in;
      CHECK(!lfs.version.empty());
      CHECK(lfs.log_bytes == 0);
      CHECK(lfs.log_bytes_max > 0);
    }
    CHECK(written == 1000);
    File file = must(client.open("/f", Client::Mode::kWrite));
    must(file.write_at(0, pattern(100, 9)));
    CHECK(run_daemon(must(client.daemon_stats()), must(client.status()).nodes[file.nodes()[0] - 1].name).log_bytes > 0);
    fs.cluster.kill_lfs(2);
    self.pause(std::chrono::seconds(15));
    CHECK(must(client.daemon_stats()).size() == 3);
  });
  fs.world.run();
}

TEST_CASE("errors are counted by their code") {
  FileSystem fs(1);
  fs.run(DataPath::kMessages, [](Client& client) {
    for (int i = 0; i < 3; ++i) CHECK(code_of(client.open("/none")) == Code::kNotFound);
    const auto server = must(client.daemon_stats())[0];
    CHECK(server.errors == std::map<std::string, std::uint64_t>{{"not-found", 3}});
    CHECK(operation(server.operations, "open").errors == 3);
    CHECK(server.under_way_max >= 1);
  });
}
