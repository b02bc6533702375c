#include "context/server_context.h"

#include <chrono>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/print.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr std::string_view kNoRoom = "too many requests wait at the server already: try again later";

}  // namespace

ServerContext::ServerContext(Config config_in, World world_in)
    : config(std::move(config_in)),
      world(world_in),
      turns(world.messenger, "server"),
      clock(world.messenger.clock()),
      fibers(clock),
      replies(world.messenger, fibers, "server"),
      caller(world.messenger, fibers),
      rows(world.directory),
      numbers(rows),
      directory(rows),
      sessions(config, rows, world.entropy, opens, shared, groups),
      locks(rows, opens),
      registry(config, rows, numbers),
      outbox(*this),
      admission(fibers, replies, {kWaitingMax, UINT64_MAX}, std::string(kNoRoom)) {}

Status check_named(const google::protobuf::Map<std::string, std::string>& named) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : named) {
    if (name.empty()) return fail(Code::kInvalid, "an attribute without a name");
    bytes += name.size() + value.size();
  }
  if (bytes <= kAttributeBytesMax) return {};
  return fail(Code::kTooLarge,
              fmt::format("the attributes have {} bytes together, the limit is {}", bytes, kAttributeBytesMax));
}

Result<Node*> known_node(ServerContext& context, std::uint32_t id) {
  Node* node = context.registry.find(id);
  if (node == nullptr) return fail(Code::kNotFound, fmt::format("there is no node {}", id));
  return node;
}

Status require_owner(const Requester& who) {
  if (who.all_powerful) return {};
  return fail(Code::kPermission, fmt::format("uid {} is neither root nor the file system's owner", who.uid));
}

namespace {

constexpr Duration kRefusedEvery = std::chrono::minutes(1);

// A daemon of a host that was off while the cluster's key was changed; or somebody who has an older key.
void note_refused(const ServerContext& context, const proto::Envelope& request, const Error& error) {
  if (context.refused_logged && context.now - *context.refused_logged < kRefusedEvery) return;
  context.refused_logged = context.now;
  const proto::NodeInfo& node = request.heartbeat().node();
  const std::string who = node.name().empty() ? "somebody" : fmt::format("{} on host {}", node.name(), node.host());
  spdlog::warn("refused what {} asks: {} (if that host was off while the cluster's key was changed: pif up)",
               one_line(who), error.text);
}

}  // namespace

Status require_manager(const ServerContext& context, const proto::Envelope& request) {
  if (request.capability().empty()) {
    return fail(Code::kBadCapability, "only LFSs of this file system may ask that: the request has no capability");
  }
  const auto verified = verify_capability(context.config.key, request.capability(), context.wall);
  if (!verified) {
    note_refused(context, request, verified.error());
    return fail(verified.error());
  }
  const Capability& capability = *verified;
  if ((capability.rights & kMayManage) != 0) return {};
  return fail(Code::kBadCapability, "the capability sent does not allow to manage");
}

std::string capability_for(const ServerContext& context, std::uint64_t file, std::uint32_t uid, std::uint32_t rights,
                           std::uint64_t epoch) {
  // To manage is for no file, and for no client.
  PIF_ASSERT((rights & ~(kMayRead | kMayWrite | kMayCreate)) == 0 || (rights == kMayManage && file == 0), rights, file);
  PIF_ASSERT(rights != 0, file, uid);
  return mint(context.config.key, Capability{FileId(file), uid, rights, epoch, context.wall + kCapabilitySeconds});
}

Status check_room(const ServerContext& context) {
  if (context.fibers.count() <= kWaitingMax) return {};
  return fail(Code::kBusy, std::string(kNoRoom));
}

void forget_waiting(ServerContext& context, net::PeerId peer) {
  context.replies.drop_peer(peer);
  context.nodes_news.notify();
  context.removals_over.notify();
  context.admission.notify();
}

void released(ServerContext& context, const std::vector<std::uint64_t>& files) {
  for (const std::uint64_t file : files) context.outbox.release(file);
}

void end_session(ServerContext& context, Session& session) {
  const auto written = context.opens.written_by(session.id);
  context.left_open.insert(context.left_open.end(), written.begin(), written.end());
  released(context, context.opens.close_all(session.id));
  context.groups.end_session(session.id, session.program);
  PIF_ASSERT(context.opens.count_of(session.id) == 0 && !context.groups.is_in_use(session.id), session.id);
}

}  // namespace pif::server
