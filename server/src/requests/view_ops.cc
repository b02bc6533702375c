// Who takes part: nodes that are declared lost, and how far those have come that return (docs/PROTOCOL.md "Views").
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/server_context.h"
#include "pif/wire/views.h"

namespace pif::server {
namespace {

using namespace wire;

std::int64_t seconds(Duration time) { return std::chrono::duration_cast<std::chrono::seconds>(time).count(); }

// Whether others may do without it from now on.
Status check_silent(const ServerContext& context, const Node& node) {
  if (context.registry.state(node, context.now) == kUp)
    return fail(Code::kBusy,
                fmt::format("{0} is up: stop it first; a node that is heard is not lost", node.info.name()));
  if (context.registry.is_lease_over(node, context.now)) return {};
  return fail(Code::kBusy,
              fmt::format("{} may act alone for some seconds more, by what it was told {} s ago: ask again then",
                          node.info.name(), seconds(context.now - node.leased)));
}

Status node_lost(ServerContext& context, Call& call, const proto::NodeLost& ask) {
  PIF_TRY_VALUE(Node * node, known_node(context, ask.node()));
  const Membership& membership = context.registry.views().of(ask.node());
  if (membership.state == kViewLost) return fail(Code::kInvalid, fmt::format("{} is lost already", node->info.name()));
  PIF_TRY(check_silent(context, *node));
  const std::uint32_t other = context.registry.absent_companion(ask.node(), false, context.now);
  if (other != 0 && !ask.force())
    return fail(Code::kInvalid,
                fmt::format("{} is {} already, and may have the parity of rows on {}, or they of its rows: files on "
                            "both could not be read. Bring one back, or say so with --force",
                            context.registry.find(other)->info.name(),
                            view_state_name(context.registry.views().of(other).state), node->info.name()));
  spdlog::warn("{} is declared lost, by uid {}'s word", node->info.name(), call.who().uid);
  return context.registry.move(*node, {kViewLost});
}

// Of two companions the one lost later returns first: the other lacks what was done while both were not there.
Status check_order(const ServerContext& context, const Node& node) {
  const Views& views = context.registry.views();
  const std::uint32_t other = context.registry.absent_companion(node.info.id(), true, context.now);
  if (other == 0 || views.of(other).lost_order < views.of(node.info.id()).lost_order) return {};
  return fail(Code::kBusy, fmt::format("{} was lost after {}, and returns before it",
                                       context.registry.find(other)->info.name(), node.info.name()));
}

// It has all. One that was replaced by an empty root, and that nobody has told of as lost yet, was lost all the same:
// its numbers begin above those of the root before.
Status has_all(ServerContext& context, Node& node, const Membership& membership) {
  switch (membership.state) {
    case kViewReturning: return context.registry.move(node, {kViewMember});
    case kViewRebuilding: break;
    case kViewMember:
      if (!membership.is_incomplete) return {};
      return context.registry.move(node, {kViewLost, kViewReturning, kViewMember});
    case kViewLost:
      if (!membership.is_incomplete)
        return fail(Code::kInvalid, fmt::format("{} is lost: it returns when it is heard", node.info.name()));
  }
  PIF_TRY(check_order(context, node));
  return context.registry.move(node, {kViewReturning, kViewMember});
}

Status node_rebuilt(ServerContext& context, Call&, const proto::NodeRebuilt& ask) {
  PIF_TRY_VALUE(Node * node, known_node(context, ask.node()));
  const Membership& membership = context.registry.views().of(ask.node());
  if (ask.state() == kViewMember) return has_all(context, *node, membership);
  if (ask.state() != kViewRebuilding && ask.state() != kViewReturning)
    return fail(Code::kInvalid, fmt::format("a node that is rebuilt does not become {}", view_state_name(ask.state())));
  const auto to = static_cast<ViewState>(ask.state());
  if (membership.state == to) return {};  // asked again
  if (!may_move(membership.state, to))
    return fail(Code::kInvalid, fmt::format("{} is {}: it does not become {}", node->info.name(),
                                            view_state_name(membership.state), view_state_name(to)));
  if (to == kViewReturning) PIF_TRY(check_order(context, *node));
  return context.registry.move(*node, {to});
}

}  // namespace

void bind_views(Operations& operations) {
  operations.bind<node_lost>();
  operations.bind<node_rebuilt>();
}

// Off by default: as long as nothing can be written where a node is absent, a node that is declared lost makes nothing
// possible that was not before.
Status declare_silent(ServerContext& context) {
  if (!context.config.declares_lost) return {};
  for (Node* node : context.registry.all()) {
    const std::uint32_t id = node->info.id();
    const bool is_there = id == 0 || context.now - node->heard < context.config.lost_after ||
                          !context.registry.is_lease_over(*node, context.now);
    if (is_there || context.registry.views().of(id).state == kViewLost) continue;
    if (context.registry.absent_companion(id, false, context.now) != 0) continue;  // a person decides
    PIF_TRY(context.registry.move(*node, {kViewLost}));
  }
  return {};
}

}  // namespace pif::server
