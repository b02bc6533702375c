// Heartbeats: who may serve, and whether this server may. docs/FORMAT.md "Who is how old" has the rules.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/server_context.h"

namespace pif::server {
namespace {

enum Stage : std::uint32_t { kServes = 0, kAsks = 1, kConfirms = 2 };
enum Verdict : std::uint32_t { kGoOn = 1, kAdmitted = 2, kIsStale = 3, kServerBehind = 4, kNotYet = 5 };

void refuse(Core& core, Node& node, std::string why, proto::HeartbeatReply& reply) {
  reply.set_verdict(kIsStale);
  reply.set_text(why);
  core.registry.refuse(node, std::move(why), core.now, core.wall);
}

// An LFS was told what this directory does not have: it is an older one, or another one.
void fall_behind(Core& core, const Node& node, const proto::Moment& kept) {
  if (core.standing == Standing::kBehind) return;
  core.standing = Standing::kBehind;
  core.behind_since = core.wall;
  const proto::Moment mine = core.numbers.moment();
  core.behind = fmt::format(
      "the server's directory is older than {0} has seen it, or another one ({0} was told moment {1} of run {2:016x}; the directory "
      "is at {3}): bring the newer directory back, or keep this one with `pif server accept-old`",
      node.presented.node().name(), kept.index(), kept.run(), mine.index());
  spdlog::error("{}", core.behind);
}

std::string older(const Node& node) {
  const proto::NodeInfo& info = node.presented.node();
  return fmt::format("{0} is older than it has been (change {1}, and the server has seen {2}; incarnation {3}, and the server knows "
                     "{4}): bring the newer root back to {5}, or take this one as it is with `pif node accept-stale {0}`",
                     info.name(), info.number(), node.number, info.incarnation(), std::max(node.confirmed, node.offered), info.root());
}

// The root is who it should be, and as old as it was heard last, or older.
bool is_current(const Node& node) {
  const proto::NodeInfo& info = node.presented.node();
  return (info.incarnation() == node.confirmed || info.incarnation() == node.offered) && info.number() >= node.number;
}

// It is up, for all to see.
void note_alive(const Core& core, Node& node) {
  node.info = node.presented.node();
  node.heard = core.now;
  node.ever = true;
}

// What it presents is confirmed thereby: it may end before it has kept what it is offered, and present the same again.
Status admit(Core& core, Node& node, proto::HeartbeatReply& reply) {
  node.confirmed = node.presented.node().incarnation();
  node.offered = core.numbers.next_index();
  node.info = node.presented.node();
  reply.set_verdict(kAdmitted);
  reply.set_incarnation(node.offered);
  reply.set_ask_all(node.ask_all);
  return core.registry.store(node);
}

// It has kept what it was offered, which is durable here before it serves: an older state of its root is stale from now on.
Status confirm(Core& core, Node& node, proto::HeartbeatReply& reply) {
  note_alive(core, node);
  node.confirmed = node.offered;
  node.number = node.presented.node().number();
  node.ask_all = false;
  reply.set_verdict(kGoOn);
  return core.registry.store(node);
}

Status go_on(Core& core, Node& node, proto::HeartbeatReply& reply) {
  const proto::NodeInfo& info = node.presented.node();
  if (node.confirmed != info.incarnation() || node.number != info.number()) node.stored = false;
  node.confirmed = info.incarnation();
  node.number = info.number();
  reply.set_verdict(kGoOn);
  return core.registry.heard(node, core.now);
}

}  // namespace

Status heartbeat(Core& core, Call& call) {
  PIF_TRY(require_manager(core, call.request));
  const proto::Heartbeat& beat = call.request.heartbeat();
  proto::HeartbeatReply& reply = *call.reply.mutable_heartbeat_reply();
  reply.set_wall(core.wall);
  PIF_TRY_VALUE(Node * node, core.registry.meet(beat));
  if (beat.wall() != 0) node->presented.mutable_node()->set_clock_ahead(beat.wall() - core.wall);
  const proto::NodeInfo& info = beat.node();
  if (!node->uuid.empty() && info.uuid() != node->uuid) {
    refuse(core, *node, fmt::format("the root of {} at {} is {}, and pif.toml says {}: is the right disk mounted?", info.name(),
                                    info.root(), info.uuid(), node->uuid), reply);
    return {};
  }
  if (!core.numbers.knows(beat.kept())) fall_behind(core, *node, beat.kept());
  if (core.standing == Standing::kBehind) {
    reply.set_verdict(kServerBehind);
    reply.set_text(core.behind);
    note_alive(core, *node);
    return {};
  }
  // Nobody goes along with this directory before all have been asked: who is told a moment of it goes along with no other one, and
  // the newer one could not be brought back.
  end_gathering(core);
  if (core.standing == Standing::kGathering) {
    if (beat.stage() == kServes) note_alive(core, *node);
    reply.set_verdict(kNotYet);
    return {};
  }
  if (core.held.by != 0) {  // nothing is written
    if (beat.stage() != kServes) return fail(Code::kRetry, "commits are held: nobody is admitted meanwhile");
    note_alive(core, *node);
    reply.set_verdict(kGoOn);
    return {};
  }
  const bool confirms = beat.stage() == kConfirms;
  if (!is_current(*node) || (confirms && info.incarnation() != node->offered)) {
    refuse(core, *node, older(*node), reply);
    return {};
  }
  if (confirms) return confirm(core, *node, reply);
  return beat.stage() == kAsks ? admit(core, *node, reply) : go_on(core, *node, reply);
}

void end_gathering(Core& core) {
  if (core.standing != Standing::kGathering) return;
  if (core.registry.all_met() || core.now - core.started >= core.config.gather_max) core.standing = Standing::kServing;
}

}  // namespace pif::server
