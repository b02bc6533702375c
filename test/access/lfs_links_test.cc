// Connections to LFSs.
#include "pif/access/lfs_links.h"

#include <catch2/catch.hpp>

#include "../sim/by_hand.h"

namespace pif::access {
namespace {

struct Links {
  sim::FakeClock clock;
  sim::FakeMessenger messenger{clock};
  net::Calls calls{messenger};
  LfsLinks links{messenger, calls, {}};
};

}  // namespace

TEST_CASE("a connection is dropped by who used it, not by who used the one before") {
  Links fixture;
  LfsLinks& links = fixture.links;
  links.adopt(1, "lfs0", 11, 1 << 20);
  links.drop(1, 11);
  CHECK(!links.has(1));
  links.adopt(1, "lfs0", 12, 1 << 20);
  links.drop(1, 11);  // its call was lost, too, but is looked at only now
  CHECK(links.peer_of(1) == 12);
  links.closed(11);
  CHECK(links.peer_of(1) == 12);
  links.closed(12);
  CHECK(!links.has(1));
}

}  // namespace pif::access
