// Many requests at once: an LFS's credit counts bytes and requests.
#include "fixture.h"

using namespace pif;
using namespace pif::test;

namespace {

CreateOptions fixed(std::uint32_t length, std::uint32_t width) {
  CreateOptions options;
  options.format = Format::fixed(length);
  options.width = width;
  return options;
}

std::uint64_t most_under_way(Client& client) {
  std::uint64_t most = 0;
  for (const DaemonStats& daemon : must(client.daemon_stats())) {
    if (daemon.node != "server") most = std::max(most, daemon.under_way_max);
  }
  return most;
}

}  // namespace

TEST_CASE("thousands of single records are read at once by message") {
  FileSystem fs(2);
  fs.run(DataPath::kMessages, [](Client& client) {
    constexpr std::uint64_t kRecords = 10000;
    const Bytes bytes = pattern(kRecords * 10);
    put(client, "/f", fixed(10, 2), bytes);
    File file = must(client.open("/f"));
    Bytes out(bytes.size());
    std::vector<File::ReadRequest> requests;
    for (std::uint64_t i = 0; i < kRecords; ++i) requests.push_back({i, 1, std::span(out).subspan(i * 10, 10), 0});
    must(file.read_many(requests));
    CHECK(out == bytes);
    CHECK(most_under_way(client) <= 256);
  });
}

// Replies that have come for an operation nobody waits for yet must not keep the credit that others need.
TEST_CASE("operations that share an LFS's credit are waited for in any order") {
  FileSystem fs(1);
  fs.run(DataPath::kMessages, [](Client& client) {
    constexpr std::uint64_t kRecords = 600;
    const Bytes bytes = pattern(kRecords * 10);
    put(client, "/f", fixed(10, 1), bytes);
    File file = must(client.open("/f"));
    Bytes out(bytes.size());
    std::vector<File::Operation> operations;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      operations.push_back(must(file.start_read(i, std::span(out).subspan(i * 10, 10), 1)));
    }
    for (std::uint64_t i = kRecords; i-- > 0;) REQUIRE(must(file.wait(operations[i])) == 1);
    CHECK(out == bytes);
  });
}

TEST_CASE("large operations that share an LFS's credit are waited for in any order") {
  FileSystem fs(1);
  fs.run(DataPath::kMessages, [](Client& client) {
    constexpr std::uint64_t kRecords = 20, kLength = 1u << 20;
    const Bytes bytes = pattern(kRecords * kLength);
    put(client, "/f", fixed(kLength, 1), bytes);
    File file = must(client.open("/f"));
    Bytes out(bytes.size());
    std::vector<File::Operation> operations;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      operations.push_back(must(file.start_read(i, std::span(out).subspan(i * kLength, kLength), 1)));
    }
    for (std::uint64_t i = kRecords; i-- > 0;) REQUIRE(must(file.wait(operations[i])) == 1);
    CHECK(out == bytes);
  });
}
