// What an LFS says of its work.
#include "node.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

proto::StatsReply stats(Peer& peer) {
  net::Packet request;
  request.envelope.mutable_stats();
  return peer.call(std::move(request)).value().envelope.stats_reply();
}

const proto::OperationStats& operation(const proto::StatsReply& reply, const std::string& name) {
  static const proto::OperationStats kNone;
  for (const auto& one : reply.operations())
    if (one.name() == name) return one;
  return kNone;
}

std::uint64_t errors(const proto::StatsReply& reply, Code code) {
  for (int i = 0; i < reply.error_codes_size(); ++i)
    if (reply.error_codes(i) == static_cast<std::uint32_t>(code)) return reply.error_counts(i);
  return 0;
}

}  // namespace

TEST_CASE("an LFS tells of every operation how often, how many bytes and how long; nobody needs a capability to ask") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
    const auto reply = stats(peer);
    CHECK(reply.node() == "lfs0");
    CHECK(operation(reply, "write").bytes_in() == 500);
    CHECK(operation(reply, "read").count() == 2);
    CHECK(operation(reply, "read").bytes_out() == 1000);
    CHECK(operation(reply, "seal").count() == 1);  // answered later, counted then
    std::uint64_t measured = 0;
    for (const auto count : operation(reply, "read").counts()) measured += count;
    CHECK(measured == 2);
    CHECK(reply.under_way() == 0);
    CHECK(reply.under_way_max() == 1);
  });
}

TEST_CASE("a capability that does not hold is counted as refused, under its operation and its code") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    auto request = peer.request(7, kMayRead);
    request.envelope.set_capability(std::string(49, 'x'));
    request.envelope.mutable_read()->set_file(7);
    CHECK(code_of(peer.call(std::move(request))) == Code::kBadCapability);
    const auto reply = stats(peer);
    CHECK(operation(reply, "read").errors() == 1);
    CHECK(errors(reply, Code::kBadCapability) == 1);
  });
}

TEST_CASE("the redo log's fill shows what is not checkpointed yet") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    CHECK(stats(peer).log_bytes() == 0);
    REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 2)));
    CHECK(stats(peer).log_bytes() > 0);
    CHECK(stats(peer).log_bytes() < stats(peer).log_bytes_max());
    const std::uint64_t once = stats(peer).log_bytes();
    REQUIRE_OK(peer.flush());
    CHECK(stats(peer).log_bytes() == 0);
    REQUIRE_OK(peer.overwrite(7, 0, 1, pattern(100, 3)));
    CHECK(stats(peer).log_written() == 2 * once);  // what was checkpointed counts
  });
}
