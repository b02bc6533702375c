#include "registry.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr const char* kStateNames[] = {"unknown", "up", "suspect", "down", "draining"};

bool same_endpoints(const proto::Endpoints& a, const proto::Endpoints& b) {
  return a.unix_path() == b.unix_path() && a.ipc() == b.ipc() && a.tcp() == b.tcp() && a.curve_key() == b.curve_key();
}

// What is stored of a node; the rest comes with every heartbeat.
bool same_stored(const proto::NodeInfo& a, const proto::NodeInfo& b) {
  return a.name() == b.name() && a.root() == b.root() && same_endpoints(a.endpoints(), b.endpoints());
}

}  // namespace

Status Registry::load(Time now) {
  bool good = true;
  PIF_TRY(rows_.scan(kNodes, {}, [&](std::string_view, std::string_view payload) {
    proto::StoredNode row;
    good = row.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
    if (good) nodes_[row.node().id()] = Node{.info = row.node(), .heard = now, .stored = true};
    return good;
  }));
  if (!good) return fail(Code::kCorrupt, "the directory's table nodes has a value that is no message");
  return {};
}

Status Registry::heartbeat(const proto::NodeInfo& info, Time now) {
  if (info.id() == 0 || info.name().empty()) return fail(Code::kInvalid, "a heartbeat without the node's id or name");
  if (nodes_.size() >= kNodesMax && !nodes_.contains(info.id())) {
    return fail(Code::kTooLarge, fmt::format("node {} is one more than the {} that are possible", info.id(), kNodesMax));
  }
  Node& node = nodes_[info.id()];
  if (!same_stored(node.info, info)) node.stored = false;
  node.info = info;
  node.heard = now;
  node.ever = true;
  if (node.stored) return {};
  proto::StoredNode row;
  row.mutable_node()->set_id(info.id());
  row.mutable_node()->set_name(info.name());
  row.mutable_node()->set_root(info.root());
  *row.mutable_node()->mutable_endpoints() = info.endpoints();
  PIF_TRY(rows_.put(kNodes, kv::key_u32(info.id()), row));
  rows_.on_commit([this, id = info.id()] { nodes_[id].stored = true; });
  return {};
}

std::uint32_t Registry::state(const Node& node, Time now) const {
  const Duration silence = now - node.heard;
  if (silence >= config_.down_after) return kDown;
  if (silence >= config_.suspect_after || !node.ever) return kSuspect;
  return node.info.state() == kDraining ? kDraining : kUp;
}

const Node* Registry::find(std::uint32_t id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool Registry::is_usable(const Node& node, Time now) const {
  return state(node, now) == kUp || (!node.ever && now - node.heard < config_.suspect_after);
}

std::vector<std::uint32_t> Registry::usable(Time now) const {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, node] : nodes_) {
    if (is_usable(node, now)) ids.push_back(id);
  }
  return ids;
}

std::size_t Registry::up_count(Time now) const {
  std::size_t count = 0;
  for (const auto& [id, node] : nodes_) count += state(node, now) == kUp ? 1 : 0;
  return count;
}

void Registry::describe(Time now, google::protobuf::RepeatedPtrField<proto::NodeInfo>& to) const {
  for (const auto& [id, node] : nodes_) {
    proto::NodeInfo& info = *to.Add();
    info = node.info;
    info.set_state(state(node, now));
    const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - node.heard).count();
    info.set_silent_ms(static_cast<std::uint32_t>(std::min<std::int64_t>(silent, UINT32_MAX)));
  }
}

void Registry::describe(const proto::FileLayout& layout, Time now,
                        google::protobuf::RepeatedPtrField<proto::NodeInfo>& to) const {
  to.Reserve(layout.nodes_size());
  for (const std::uint32_t id : layout.nodes()) {
    proto::NodeInfo& info = *to.Add();
    info.set_id(id);
    const Node* node = find(id);
    info.set_state(node == nullptr ? kDown : state(*node, now));
    if (node == nullptr) continue;
    info.set_name(node->info.name());
    *info.mutable_endpoints() = node->info.endpoints();
  }
}

void Registry::log_changes(Time now) {
  for (auto& [id, node] : nodes_) {
    const std::uint32_t is = state(node, now);
    if (is == node.shown || !node.ever) continue;
    spdlog::info("{} (node {}) is {}", node.info.name(), id, kStateNames[is]);
    node.shown = is;
  }
}

}  // namespace pif::server
