#include <algorithm>

#include <catch2/catch.hpp>

#include "../../tools/pif/cluster/activity.h"

namespace pif::cli {
namespace {

DaemonStats lfs(std::uint64_t reads, std::uint64_t bytes_out, Duration uptime, std::int64_t pid = 1) {
  DaemonStats out;
  out.node = "lfs0";
  out.pid = pid;
  out.uptime = uptime;
  OperationStats read;
  read.name = "read";
  read.count = reads;
  read.bytes_out = bytes_out;
  for (std::uint64_t i = 0; i < reads; ++i) read.latency.add(std::chrono::milliseconds(2));
  read.longest = std::chrono::milliseconds(2);
  out.operations.push_back(read);
  return out;
}

TEST_CASE("between two looks counts what was done between them, a second") {
  const DaemonStats before = lfs(100, 1000, std::chrono::seconds(5)), after = lfs(300, 5000, std::chrono::seconds(7));
  const auto all = activity_between({before}, {after}, 2);
  REQUIRE(all.size() == 1);
  CHECK(all[0].operations == Approx(100));
  CHECK(all[0].bytes_out == Approx(2000));
  CHECK(all[0].latency.total() == 200);
}

TEST_CASE("a daemon that was started again between two looks counts from its start") {
  for (const auto& again : {lfs(10, 50, std::chrono::seconds(1)), lfs(10, 50, std::chrono::seconds(9), 2)}) {
    const auto all = activity_between({lfs(100, 1000, std::chrono::seconds(5))}, {again}, 1);
    REQUIRE(all.size() == 1);
    CHECK(all[0].operations == Approx(10));
    CHECK(all[0].latency.total() == 10);
  }
}

TEST_CASE("requests that wait on purpose say nothing of how long work takes") {
  DaemonStats daemon = lfs(1, 0, std::chrono::seconds(1));
  daemon.operations[0].name = "job_wait";
  const auto all = activity_between({}, {daemon}, 1);
  CHECK(all[0].operations == Approx(1));
  CHECK(all[0].latency.total() == 0);
}

TEST_CASE("the table shows rates, times and how full the log is") {
  DaemonStats daemon = lfs(100, 4'000'000, std::chrono::seconds(1));
  daemon.log_bytes = 1;
  daemon.log_bytes_max = 4;
  const std::string table = activity_table(activity_between({}, {daemon}, 1));
  CHECK(table.find("lfs0") != std::string::npos);
  CHECK(table.find("4.0") != std::string::npos);
  CHECK(table.find("2.1 ms") != std::string::npos);
  CHECK(table.find("25%") != std::string::npos);
}

TEST_CASE("as JSON, every operation has its counts and percentiles, and refused capabilities their own number") {
  DaemonStats daemon = lfs(4, 400, std::chrono::seconds(3));
  daemon.errors = {{"bad-capability", 2}, {"not-found", 1}};
  const Json json = json_of(daemon);
  CHECK(json["node"] == "lfs0");
  CHECK(json["uptime_ms"] == 3000);
  CHECK(json["capabilities_refused"] == 2);
  CHECK(json["errors"]["not-found"] == 1);
  CHECK(json["operations"][0]["name"] == "read");
  CHECK(json["operations"][0]["count"] == 4);
  CHECK(json["operations"][0]["p99_us"] == 2000);  // never above the longest
}

TEST_CASE("who waits at a daemon has a line there, and a daemon where nobody waits has none") {
  DaemonStats quiet = lfs(4, 400, std::chrono::seconds(3));
  DaemonStats busy = quiet;
  busy.node = "lfs1";
  busy.peers = {{"pif-get[811]", 1000, 12, 3u << 20, 5u << 20}, {"", 1001, 1, 100, 0}};
  busy.peers_waiting = 5;
  CHECK(waiting_text({quiet}).empty());
  CHECK(waiting_text({quiet, busy}) ==
        "lfs1: 5 clients wait: pif-get[811] 12 requests, 3.0 MiB; uid 1001 1 request, 100 bytes; 3 more\n");
  busy.peers.resize(1);
  busy.peers_waiting = 1;
  busy.peers[0].program = "two\nlines";
  const std::string text = waiting_text({busy});
  CHECK(text.find("lfs1: 1 client waits: ") == 0);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  const Json json = json_of(busy);
  CHECK(json["peers_waiting"] == 1);
  CHECK(json["peers"][0]["uid"] == 1000);
  CHECK(json["peers"][0]["waiting"] == 12);
  CHECK(json["peers"][0]["waiting_bytes"] == 3u << 20);
  CHECK(json["peers"][0]["served_bytes"] == 5u << 20);
}

}  // namespace
}  // namespace pif::cli
