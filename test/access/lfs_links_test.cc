// Connections to LFSs.
#include "pif/access/lfs_links.h"

#include <catch2/catch.hpp>

#include "../sim/by_hand.h"

namespace pif::access {
namespace {

struct Links {
  Links() {
    lfs.set_id(1);
    lfs.set_name("lfs0");
    messenger.on_send = [this](net::PeerId, const net::Packet&) { ++hellos; };
  }
  // Time passes, and nobody answers.
  void pass(Duration by) {
    clock.advance(by);
    calls.expire();
  }
  // Whether somebody is asked: no error, and no connection yet.
  bool asks() {
    const auto found = links.link(lfs);
    REQUIRE((!found || *found == nullptr));
    if (!found)
      CHECK(found.error().to_string() ==
            "lfs0: lfs0 has said nothing for 8 s: it is stopped, overloaded or "
            "cannot be reached");
    return found.has_value();
  }

  sim::FakeClock clock;
  sim::FakeMessenger messenger{clock};
  net::Calls calls{messenger};
  LfsLinks links{messenger, calls, {net::Route::kAuto, "test", std::chrono::seconds(30)}};
  proto::NodeInfo lfs;
  int hellos = 0;
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

TEST_CASE("who has waited for an LFS in vain is not made to wait again at once") {
  Links fixture;
  CHECK(fixture.asks());
  fixture.pass(kSilenceMax);
  CHECK(!fixture.asks());
  CHECK(!fixture.asks());  // the next step of the same operation
  CHECK(fixture.hellos == 1);
  fixture.pass(LfsLinks::kSilenceIsNews);
  CHECK(fixture.asks());
  CHECK(fixture.hellos == 2);
}

}  // namespace pif::access
