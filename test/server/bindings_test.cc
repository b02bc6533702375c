// What the table of operations gives to the server is there, and only to whom the table says.
#include "fixture.h"
#include "pif/wire/operations.h"

using namespace pif;
using namespace pif::server::testing;

namespace {

template <typename Visit>
void each_request(const Visit& visit) {
#define VISIT(name, ...) visit(static_cast<const proto::name*>(nullptr));
  PIF_OPERATIONS(VISIT, VISIT)
#undef VISIT
}

}  // namespace

TEST_CASE("the server answers every operation that the table gives it, and says of the others that it has none") {
  each_request([]<typename R>(const R*) {
    using Operation = wire::OperationOf<R>;
    if constexpr (Operation::kRow.reply != proto::Envelope::OP_NOT_SET ||
                  Operation::kRow.at_server == wire::Right::kNone) {
      INFO(Operation::kRow.name);
      World world;
      Client client(world);
      Envelope request;
      Operation::add_request(request);
      const auto answer = client.ask(request);
      const bool unsupported = !answer && answer.error().code == Code::kUnsupported;
      CHECK(unsupported == (Operation::kRow.at_server == wire::Right::kNone));
      if (answer) CHECK(answer->op_case() == Operation::kRow.reply);
    }
  });
}

TEST_CASE("what the table keeps for the owner, or for daemons, is refused to a user with a session") {
  each_request([]<typename R>(const R*) {
    using Operation = wire::OperationOf<R>;
    constexpr wire::Right right = Operation::kRow.at_server;
    if constexpr (right == wire::Right::kOwner || right == wire::Right::kManage) {
      INFO(Operation::kRow.name);
      World world;
      Client anna(world, 1001);
      Envelope request;
      Operation::add_request(request);
      CHECK(anna.ask(request).error().code ==
            (right == wire::Right::kOwner ? Code::kPermission : Code::kBadCapability));
    }
  });
}
