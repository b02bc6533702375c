// Heartbeats: who may serve, and whether this server may. docs/FORMAT.md "Who is how old" has the rules.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/server_context.h"
#include "pif/base/assert.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

using enum wire::BeatStage;
using enum wire::Verdict;

void refuse(ServerContext& context, Node& node, std::string why, proto::HeartbeatReply& reply) {
  reply.set_verdict(kIsStale);
  reply.set_text(why);
  context.registry.refuse(node, std::move(why), context.now, context.wall);
}

// An LFS was told what this directory does not have: it is an older one, or another one.
void fall_behind(ServerContext& context, const Node& node, const proto::Moment& kept) {
  if (context.standing == Standing::kBehind) return;
  context.standing = Standing::kBehind;
  context.admission.notify();
  context.behind_since = context.wall;
  const proto::Moment mine = context.numbers.moment();
  context.behind = fmt::format(
      "the server's directory is older than {0} has seen it, or another one ({0} was told moment {1} of run {2:016x}; "
      "the directory "
      "is at {3}): bring the newer directory back, or keep this one with `pif server accept-old`",
      node.presented.node().name(), kept.index(), kept.run(), mine.index());
  spdlog::error("{}", context.behind);
}

std::string older(const ServerContext& context, const Node& node) {
  const proto::NodeInfo& info = node.presented.node();
  const std::string rebuilt =
      context.config.default_bevy == 0
          ? std::string()
          : fmt::format(
                ", or rebuild it, which brings back every byte of files with parity: pif down, move {1} away, "
                "pif node replace {0}, pif up, pif rebuild {0}",
                info.name(), info.root());
  return fmt::format(
      "{0} is older than it has been (change {1}, and the server has seen {2}; incarnation {3}, and the server knows "
      "{4}): bring the newer root back to {5}{6}, or take this one as it is with `pif node accept-stale {0}`",
      info.name(), info.number(), node.number, info.incarnation(), std::max(node.confirmed, node.offered), info.root(),
      rebuilt);
}

// The root is who it should be, and as old as it was heard last, or older.
bool is_current(const Node& node) {
  const proto::NodeInfo& info = node.presented.node();
  return (info.incarnation() == node.confirmed || info.incarnation() == node.offered) && info.number() >= node.number;
}

// An empty root begins to be rebuilt. Until now it was perhaps a member in the view, with the root before: not before
// that one's lease is over does anybody hear that it is absent.
Status begin_rebuild(ServerContext& context, Node& node) {
  const Membership& membership = context.registry.views().of(node.info.id());
  if (!membership.is_incomplete) return {};
  if (membership.state == wire::kViewMember)
    return context.registry.move(node, {wire::kViewLost, wire::kViewRebuilding});
  return membership.state == wire::kViewLost ? context.registry.move(node, {wire::kViewRebuilding}) : Status();
}

// It is lost, and its process is still there: it does not serve on, and does not come back by itself. One that was
// started again does.
bool has_to_end(const ServerContext& context, const Node& node) {
  const bool is_lost = context.registry.views().of(node.info.id()).state == wire::kViewLost;
  return is_lost && (node.must_end || node.presented.node().state() == kFailing);
}

void end_it(Node& node, proto::HeartbeatReply& reply) {
  const proto::NodeInfo& info = node.presented.node();
  reply.set_verdict(kEnd);
  reply.set_text(
      fmt::format("{0} is lost ({1}), and ends: start it again, or give it a new disk with pif node replace {0}",
                  info.name(), info.trouble().empty() ? "by a person's word" : info.trouble()));
}

// A node that was declared lost is heard again. Others wrote without it meanwhile: it is no member before it has caught
// up, which it does by itself (docs/PROTOCOL.md "Rebuilding").
Status come_back(ServerContext& context, Node& node) {
  if (context.registry.views().of(node.info.id()).state != wire::kViewLost || node.in_drill) return {};
  node.said_lost = false;
  return context.registry.move(node, {wire::kViewRebuilding});
}

// What it presents is confirmed thereby: it may end before it has kept what it is offered, and present the same again.
// It is offered the same then. For what is heard may be late, from a process that has ended: the next one may have kept
// that offer by now, and would be called older than another one.
Status admit(ServerContext& context, Node& node, proto::HeartbeatReply& reply) {
  PIF_ASSERT(goes_along(context.standing) && context.held.by == 0, context.standing);
  PIF_ASSERT(is_current(node), node.info.id());
  const Membership& membership = context.registry.views().of(node.info.id());
  if (membership.is_incomplete && membership.state == wire::kViewMember &&
      !context.registry.is_lease_over(node, context.now)) {
    reply.set_verdict(kNotYet);
    return {};
  }
  PIF_TRY(begin_rebuild(context, node));
  const std::uint64_t presented = node.presented.node().incarnation();
  const bool has_offer = node.confirmed == presented && node.offered > presented;
  node.confirmed = presented;
  if (!has_offer) node.offered = context.numbers.next_index();
  node.info = node.presented.node();
  reply.set_verdict(kAdmitted);
  reply.set_incarnation(node.offered);
  reply.set_ask_all(node.ask_all);
  return context.registry.store(node);
}

// It has kept what it was offered, which is durable here before it serves: an older state of its root is stale from now
// on.
Status confirm(ServerContext& context, Node& node, proto::HeartbeatReply& reply) {
  PIF_ASSERT(goes_along(context.standing) && context.held.by == 0, context.standing);
  PIF_ASSERT(node.presented.node().incarnation() == node.offered, node.presented.node().incarnation(), node.offered);
  context.registry.note_alive(node, context.now);
  node.confirmed = node.offered;
  node.number = node.presented.node().number();
  node.ask_all = false;
  node.in_drill = node.said_lost = node.must_end = false;  // it was started again
  reply.set_verdict(kGoOn);
  PIF_TRY(come_back(context, node));
  return context.registry.store(node);
}

Status go_on(ServerContext& context, Node& node, proto::HeartbeatReply& reply) {
  const proto::NodeInfo& info = node.presented.node();
  PIF_ASSERT(goes_along(context.standing) && info.number() >= node.number, info.number(), node.number);
  if (node.confirmed != info.incarnation() || node.number != info.number()) node.stored = false;
  node.confirmed = info.incarnation();
  node.number = info.number();
  reply.set_verdict(kGoOn);
  if (has_to_end(context, node))
    end_it(node, reply);
  else
    PIF_TRY(come_back(context, node));
  return context.registry.note_heartbeat(node, context.now);
}

// What the reply brings besides the verdict: the view, who is where, a lease.
void inform(ServerContext& context, const Call& call, Node& node, proto::HeartbeatReply& reply) {
  if (reply.verdict() != kGoOn && reply.verdict() != kAdmitted) return;
  context.registry.note_peer(node);
  context.registry.describe_peers(node.presented.peers(), reply);
  if (node.presented.view() < context.registry.views().index()) reply.set_view(std::string());  // when it is durable
  const bool is_member = context.registry.views().of(node.info.id()).state == wire::kViewMember;
  const bool is_going = context.registry.is_going(node, context.now);
  if (reply.verdict() != kGoOn || !is_member || !is_current(node) || is_going) return;
  reply.set_lease_ms(static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(kLease).count()));
  node.leased = call.request.arrived;  // not before it was sent
}

// The root lacks what this directory has seen of it, though the directory is old, too.
bool is_older(const Node& node) {
  const proto::NodeInfo& info = node.presented.node();
  const bool is_of_before = info.incarnation() < std::min(node.confirmed, node.offered);
  return info.number() < node.number || is_of_before;
}

// The verdict about what the node presents.
Status judge(ServerContext& context, Node& node, proto::HeartbeatReply& reply) {
  const proto::Heartbeat& beat = node.presented;
  const proto::NodeInfo& info = beat.node();
  if (!node.uuid.empty() && info.uuid() != node.uuid) {
    refuse(context, node,
           fmt::format("the root of {} at {} is {}, and pif.toml says {}: is the right disk mounted?", info.name(),
                       info.root(), info.uuid(), node.uuid),
           reply);
    return {};
  }
  if (!context.numbers.knows(beat.kept())) fall_behind(context, node, beat.kept());
  if (context.standing == Standing::kBehind) {
    reply.set_verdict(kServerBehind);
    reply.set_text(context.behind);
    if (is_older(node)) context.registry.show_trouble(node, older(context, node), context.now, context.wall);
    if (!is_older(node)) context.registry.note_alive(node, context.now);
    return {};
  }
  // Nobody goes along with this directory before all have been asked: who is told a moment of it goes along with no
  // other one, and the newer one could not be brought back.
  end_gathering(context);
  if (context.standing == Standing::kGathering) {
    if (beat.stage() == kServes) context.registry.note_alive(node, context.now);
    reply.set_verdict(kNotYet);
    return {};
  }
  if (context.held.by != 0) {  // nothing is written
    if (beat.stage() != kServes) return fail(Code::kRetry, "commits are held: nobody is admitted meanwhile");
    context.registry.note_alive(node, context.now);
    reply.set_verdict(kGoOn);
    return {};
  }
  const bool confirms = beat.stage() == kConfirms;
  if (!is_current(node) || (confirms && info.incarnation() != node.offered)) {
    refuse(context, node, older(context, node), reply);
    return {};
  }
  if (confirms) return confirm(context, node, reply);
  return beat.stage() == kAsks ? admit(context, node, reply) : go_on(context, node, reply);
}

// Another process is this node already, on another machine, and is heard: one root is a copy of the other. On one
// machine the lock of the root, or the socket, would have told.
bool is_twin(const ServerContext& context, const Node& node, const proto::NodeInfo& said) {
  const std::uint64_t known = node.info.endpoints().machine();
  return node.ever && context.now - node.heard < context.config.suspect_after && known != 0 &&
         said.endpoints().machine() != 0 && said.endpoints().machine() != known;
}

std::string process_of(const proto::NodeInfo& info) {
  return fmt::format("process {} with {}{}", info.pid(), info.root(),
                     info.host().empty() ? std::string() : " on host " + info.host());
}

void refuse_twin(Node& node, const proto::NodeInfo& said, proto::HeartbeatReply& reply) {
  const std::string why =
      fmt::format("{} runs already: {} on another machine; this one is {}. Is one of the two a copy? Stop one of them",
                  node.info.name(), process_of(node.info), process_of(said));
  if (node.twin_pid != said.pid()) spdlog::error("{}", why);
  node.twin_pid = said.pid();
  reply.set_verdict(kIsStale);
  reply.set_text(why);
}

// The server's host was put back, or another one was changed: nobody gets that.
void warn_if_ahead(const ServerContext& context, const Node* known, const proto::Heartbeat& beat) {
  const std::uint64_t own = context.description.edition;
  if (own == 0 || beat.edition() <= own || (known != nullptr && known->presented.edition() == beat.edition())) return;
  spdlog::warn("host {} has edition {} of pif.toml, and the server's host {} has {}: bring the newer one there",
               beat.node().host(), beat.edition(), context.config.host, own);
}

// Other hosts get what the server's has; whoever is on this host has it too.
void hand_out(const ServerContext& context, const proto::Heartbeat& beat, proto::HeartbeatReply& reply) {
  const Description& newest = context.description;
  if (beat.edition() == 0 || beat.edition() >= newest.edition || beat.node().host() == context.config.host) return;
  for (const proto::ClusterFile& file : newest.files) *reply.add_files() = file;
}

Status heartbeat(ServerContext& context, Call& call, const proto::Heartbeat& beat, proto::HeartbeatReply& reply) {
  reply.set_wall(context.wall);
  Node* known = context.registry.find(beat.node().id());
  if (known != nullptr && is_twin(context, *known, beat.node())) {
    refuse_twin(*known, beat.node(), reply);
    return {};
  }
  warn_if_ahead(context, known, beat);
  const std::size_t up = context.registry.up_count(context.now);
  const daemon::AtExit tell([&context, up] {
    if (context.registry.up_count(context.now) > up) context.nodes_news.notify();
  });
  PIF_TRY_VALUE(Node * node, context.registry.meet(beat));
  if (beat.wall() != 0) node->presented.mutable_node()->set_clock_ahead(beat.wall() - context.wall);
  PIF_TRY(judge(context, *node, reply));
  go_on_to_serve(context);
  inform(context, call, *node, reply);
  hand_out(context, beat, reply);
  return {};
}

}  // namespace

void bind_admission(Operations& operations) { operations.bind<heartbeat>(kAlways); }

void refresh_description(ServerContext& context) {
  if (!context.config.changed_description) return;
  auto changed = context.config.changed_description();
  if (!changed) return;
  if (context.description.edition != 0)
    spdlog::info("pif.toml has edition {}, and had {}: LFSs on other hosts get it", changed->edition,
                 context.description.edition);
  context.config.root_uuids = changed->root_uuids;
  context.description = std::move(*changed);
}

void end_gathering(ServerContext& context) {
  if (context.standing != Standing::kGathering) return;
  if (context.registry.all_met() || context.clock.now() - context.started >= context.config.gather_max)
    begin_admitting(context);
}

void begin_admitting(ServerContext& context) {
  PIF_ASSERT(!goes_along(context.standing), context.standing);
  context.standing = Standing::kAdmitting;
  context.admitting_since = context.now;
  context.admission.notify();
}

void end_admitting(ServerContext& context) {
  if (context.standing != Standing::kAdmitting) return;
  if (!context.registry.all_admitted() && context.clock.now() - context.admitting_since < context.config.gather_max)
    return;
  context.standing = Standing::kServing;
  context.admission.notify();
}

void go_on_to_serve(ServerContext& context) {
  if (context.is_held()) return;
  end_gathering(context);
  end_admitting(context);
}

}  // namespace pif::server
