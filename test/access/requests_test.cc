// Requests to LFSs of a file.
#include "pif/access/requests.h"

#include <catch2/catch.hpp>

#include "../sim/by_hand.h"

namespace pif::access {
namespace {

struct Two {
  static FileParts parts() {
    FileParts parts;
    parts.path = "/f";
    parts.layout = *parity::Layout::make(2);
    parts.nodes.resize(2);
    parts.nodes[0].set_id(1);
    parts.nodes[1].set_id(2);
    parts.nodes[1].set_state(3);  // down
    parts.capability = "somebody's";
    return parts;
  }
  static BulkRequest ask(LfsIndex lfs) {
    BulkRequest request;
    request.lfs = lfs;
    request.make = [] {
      net::Packet packet;
      packet.envelope.mutable_length();
      return packet;
    };
    return request;
  }

  sim::FakeClock clock;
  sim::FakeMessenger messenger{clock};
  net::Calls calls{messenger};
  LfsLinks links{messenger, calls, {net::Route::kAuto, "test", std::chrono::seconds(30)}};
  Grant grant{parts(), {}};
  Requests requests{links, grant};
};

}  // namespace

TEST_CASE("what a refused request adds is started at once, also for an LFS that has had its turn") {
  Two two;
  two.links.adopt(1, "lfs0", 11, 1 << 20);
  BulkRequest first = Two::ask(1);
  first.replaceable = true;
  first.refused = [&two](const Error&) -> Status {
    two.requests.add(Two::ask(0));
    return {};
  };
  two.requests.add(Two::ask(0));  // so that LFS 0 has a queue, and its turn first
  two.requests.add(std::move(first));
  REQUIRE(two.requests.step());
  CHECK(two.requests.size() == 2);
  CHECK(!two.requests.waits());
}

}  // namespace pif::access
