// Who takes part: nodes that are declared lost, and how far those have come that return (docs/PROTOCOL.md "Views").
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/server_context.h"
#include "pif/wire/views.h"

namespace pif::server {
namespace {

using namespace wire;

std::int64_t seconds(Duration time) { return std::chrono::duration_cast<std::chrono::seconds>(time).count(); }

// Whether others may do without it from now on. One that is heard gets no lease any more, and is lost when its last
// one is over.
Status end_lease(const ServerContext& context, Node& node) {
  node.said_lost = true;
  if (context.registry.is_lease_over(node, context.now)) return {};
  return fail(Code::kBusy,
              fmt::format("{} may act alone for some seconds more, by what it was told {} s ago: ask again then",
                          node.info.name(), seconds(context.now - node.leased)));
}

// Who returns has not said yet of which files it has its part. If it were lost again after a companion, each might take
// the other for the one that knows less. So until it is a member no companion of it goes, or returns, too.
Status check_nobody_returns(const ServerContext& context, const Node& node) {
  const std::uint32_t other = context.registry.returning_companion(node.info.id(), context.now);
  if (other == 0) return {};
  return fail(Code::kBusy, fmt::format("{} is just returning: ask again when it takes part, or is lost itself",
                                       context.registry.find(other)->info.name()));
}

Status node_lost(ServerContext& context, Call& call, const proto::NodeLost& ask) {
  PIF_TRY_VALUE(Node * node, known_node(context, ask.node()));
  const Membership& membership = context.registry.views().of(ask.node());
  if (membership.state == kViewLost && node->must_end) return {};  // asked again
  if (membership.state == kViewLost) return fail(Code::kInvalid, fmt::format("{} is lost already", node->info.name()));
  PIF_TRY(check_nobody_returns(context, *node));
  const std::uint32_t other = context.registry.absent_companion(ask.node(), false, context.now);
  if (other != 0 && !ask.force())
    return fail(Code::kInvalid,
                fmt::format("{} is {} already, and may have the parity of rows on {}, or they of its rows: files on "
                            "both could not be read. Bring one back, or say so with --force",
                            context.registry.find(other)->info.name(),
                            view_state_name(context.registry.views().of(other).state), node->info.name()));
  PIF_TRY(end_lease(context, *node));
  spdlog::warn("{} is declared lost, by uid {}'s word", node->info.name(), call.who().uid);
  return context.registry.lose(*node, context.now);
}

// Of two companions the one lost later returns first: the other lacks what was done while both were not there. An LFS
// finds out of which files that is so; this is for who says it of one that has nothing.
Status check_order(const ServerContext& context, const Node& node) {
  const Views& views = context.registry.views();
  const std::uint32_t other = context.registry.absent_companion(node.info.id(), true, context.now);
  if (other == 0 || views.of(other).lost_order < views.of(node.info.id()).lost_order) return {};
  return fail(Code::kBusy, fmt::format("{0} was lost after {1}, and returns before it; if {0} is gone for good: pif "
                                       "node accept-loss {0}",
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

Status check_nobody_lacks(ServerContext& context, const Node& node) {
  for (const Node* other : context.registry.all()) {
    if (other == &node || other->info.lacking() == 0) continue;
    return fail(Code::kBusy,
                fmt::format("{} lacks its part of {} files, which may need {}: pif rebuild {} names them",
                            other->info.name(), other->info.lacking(), node.info.name(), other->info.name()));
  }
  return {};
}

// An LFS takes itself out, for a drill: it stays lost until it says that it is to come back, or is started again.
Status begin_drill(ServerContext& context, Node& node, const Membership& membership) {
  if (node.in_drill) return {};  // asked again
  if (membership.state != kViewMember)
    return fail(Code::kInvalid, fmt::format("{} is {}: there is no drill before it takes part again", node.info.name(),
                                            view_state_name(membership.state)));
  PIF_TRY(check_nobody_returns(context, node));
  PIF_TRY(check_nobody_lacks(context, node));
  const std::uint32_t other = context.registry.absent_companion(node.info.id(), false, context.now);
  if (other != 0)
    return fail(Code::kBusy, fmt::format("{} is {}: without both of them files could not be read; bring it back first",
                                         context.registry.find(other)->info.name(),
                                         view_state_name(context.registry.views().of(other).state)));
  spdlog::warn("{} takes itself out for a drill", node.info.name());
  PIF_TRY(context.registry.move(node, {kViewLost}));
  node.in_drill = true;
  return {};
}

Status node_rebuilt(ServerContext& context, Call&, const proto::NodeRebuilt& ask) {
  PIF_TRY_VALUE(Node * node, known_node(context, ask.node()));
  const Membership& membership = context.registry.views().of(ask.node());
  if (ask.state() == kViewMember) return has_all(context, *node, membership);
  if (ask.state() == kViewLost) return begin_drill(context, *node, membership);
  if (ask.state() != kViewRebuilding && ask.state() != kViewReturning)
    return fail(Code::kInvalid, fmt::format("a node that is rebuilt does not become {}", view_state_name(ask.state())));
  const auto to = static_cast<ViewState>(ask.state());
  if (membership.state == to) return {};  // asked again
  if (!may_move(membership.state, to))
    return fail(Code::kInvalid, fmt::format("{} is {}: it does not become {}", node->info.name(),
                                            view_state_name(membership.state), view_state_name(to)));
  if (to == kViewReturning) PIF_TRY(check_nobody_returns(context, *node));
  node->in_drill = false;
  return context.registry.move(*node, {to});
}

// A person says that this node, which was lost after companions of it that are absent, too, never returns: they need
// not wait for what only it had.
Status accept_loss(ServerContext& context, Call& call, const proto::AcceptLoss& ask) {
  PIF_TRY_VALUE(Node * node, known_node(context, ask.node()));
  const Views& views = context.registry.views();
  if (!views.of(ask.node()).is_absent())
    return fail(Code::kInvalid, fmt::format("{} is {}: only the loss of one that is lost, or not rebuilt yet, is "
                                            "accepted",
                                            node->info.name(), view_state_name(views.of(ask.node()).state)));
  if (views.absent().size() < 2)
    return fail(Code::kInvalid,
                fmt::format("no other LFS is lost: none waits for {} to return first", node->info.name()));
  if (views.absent().front() == ask.node()) return {};  // asked again
  spdlog::warn("{} returns after all others, by uid {}'s word: what only it had is given up", node->info.name(),
               call.who().uid);
  return context.registry.return_last(*node);
}

}  // namespace

void bind_views(Operations& operations) {
  operations.bind<node_lost>();
  operations.bind<node_rebuilt>();
  operations.bind<accept_loss>();
}

// So that others need not wait for it. Who is started again in time was heard again before. So is one that is heard and
// has to go.
Status declare_silent(ServerContext& context) {
  for (Node* node : context.registry.all()) {
    const std::uint32_t id = node->info.id();
    const bool is_gone = context.registry.is_gone(*node, context.now);
    const bool is_silent = context.config.declares_lost && context.now - node->heard >= context.config.lost_after;
    if (id == 0 || !(is_gone || is_silent) || !context.registry.is_lease_over(*node, context.now)) continue;
    if (context.registry.views().of(id).state == kViewLost) continue;
    // Else a person decides, or has done so.
    if (!node->said_lost && context.registry.absent_companion(id, false, context.now) != 0) continue;
    if (!check_nobody_returns(context, *node)) continue;
    PIF_TRY(context.registry.lose(*node, context.now));
  }
  return {};
}

}  // namespace pif::server
