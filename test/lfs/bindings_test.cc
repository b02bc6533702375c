// What the table of operations gives to an LFS is there, and only with the rights that the table asks for.
#include "node.h"
#include "pif/wire/operations.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

template <typename Visit>
void each_request(const Visit& visit) {
#define VISIT(name, ...) visit(static_cast<const proto::name*>(nullptr));
  PIF_OPERATIONS(VISIT, VISIT)
#undef VISIT
}

template <typename R>
Code asked_without_capability(Peer& peer) {
  net::Packet packet;
  wire::OperationOf<R>::add_request(packet.envelope);
  return code_of(peer.call(std::move(packet)));
}

}  // namespace

TEST_CASE("an LFS answers every operation that the table gives it, and says of the others that it has none") {
  with_node([](Peer& peer, Node&) {
    each_request([&]<typename R>(const R*) {
      constexpr const wire::Operation& operation = wire::OperationOf<R>::kRow;
      INFO(operation.name);
      const Code code = asked_without_capability<R>(peer);
      CHECK((code == Code::kUnsupported) == (operation.at_lfs == wire::Right::kNone));
    });
  });
}

TEST_CASE("what the table asks a capability for is refused without one, and with one that gives too little") {
  with_node([](Peer& peer, Node&) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    each_request([&]<typename R>(const R*) {
      const R request;
      if constexpr (requires { wire::needed_rights(request); }) {
        const std::uint32_t needed = wire::needed_rights(request).rights;
        if (needed == 0) return;
        INFO(wire::OperationOf<R>::kRow.name);
        CHECK(asked_without_capability<R>(peer) == Code::kPermission);
        for (const std::uint32_t too_little : {kMayRead | kMayWrite | kMayCreate, std::uint32_t{kMayManage}}) {
          if ((too_little & needed) != 0) continue;
          auto packet = peer.request(0, too_little);
          wire::OperationOf<R>::add_request(packet.envelope);
          CHECK(code_of(peer.call(std::move(packet))) == Code::kBadCapability);
        }
      }
    });
  });
}

TEST_CASE("what the table keeps for workers is refused to others") {
  with_node([](Peer& peer, Node&) {
    each_request([&]<typename R>(const R*) {
      if constexpr (wire::OperationOf<R>::kRow.at_lfs == wire::Right::kWorker) {
        INFO(wire::OperationOf<R>::kRow.name);
        CHECK(asked_without_capability<R>(peer) == Code::kPermission);
      }
    });
  });
}
