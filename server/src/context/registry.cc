#include "context/registry.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr const char* kStateNames[] = {"unknown", "up", "suspect", "down", "draining", "stale"};

bool same_endpoints(const proto::Endpoints& a, const proto::Endpoints& b) {
  return a.unix_path() == b.unix_path() && a.ipc() == b.ipc() && a.tcp() == b.tcp() && a.curve_key() == b.curve_key() &&
         a.machine() == b.machine();
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
    if (!good) return false;
    Node node{.info = row.node(), .heard = now, .stored = true, .has_row = true};
    node.uuid = row.uuid();
    node.confirmed = row.confirmed();
    node.offered = row.offered();
    node.number = row.number();
    node.ask_all = row.ask_all();
    nodes_[row.node().id()] = std::move(node);
    return true;
  }));
  if (!good) return fail(Code::kCorrupt, "the directory's table nodes has a value that is no message");
  return {};
}

Result<Node*> Registry::meet(const proto::Heartbeat& beat) {
  const proto::NodeInfo& info = beat.node();
  if (info.id() == 0 || info.name().empty()) return fail(Code::kInvalid, "a heartbeat without the node's id or name");
  const auto in_toml = config_.root_uuids.find(info.id());
  if (!config_.root_uuids.empty() && in_toml == config_.root_uuids.end())
    return fail(Code::kInvalid,
                fmt::format("node {} ({}) is not in pif.toml as the server read it", info.id(), info.name()));
  if (nodes_.size() >= kNodesMax && !nodes_.contains(info.id())) {
    return fail(Code::kTooLarge,
                fmt::format("node {} is one more than the {} that are possible", info.id(), kNodesMax));
  }
  Node& node = nodes_[info.id()];
  // pif.toml says which root belongs to a node; another one has another past.
  const std::string& uuid = in_toml != config_.root_uuids.end() ? in_toml->second : info.uuid();
  if (node.uuid != uuid && (in_toml != config_.root_uuids.end() || node.uuid.empty())) {
    node.uuid = uuid;
    node.confirmed = node.offered = node.number = 0;
    node.ask_all = node.stored = false;
  }
  if (node.info.id() == 0) node.info = info;
  PIF_ASSERT(node.info.id() == info.id(), node.info.id(), info.id());
  node.presented = beat;
  node.met = true;
  return &node;
}

Status Registry::note_heartbeat(Node& node, Time now) {
  const proto::NodeInfo& info = node.presented.node();
  PIF_ASSERT(node.met && info.id() == node.info.id(), info.id(), node.info.id());
  const bool is_new = !node.has_row || !same_stored(node.info, info);
  node.info = info;
  node.heard = now;
  node.ever = true;
  return is_new ? store(node) : Status();
}

void Registry::refuse(Node& node, std::string why, Time now, std::int64_t wall) {
  PIF_ASSERT(node.met && node.presented.node().id() == node.info.id(), node.presented.node().id(), node.info.id());
  // Another process, with a root of the same identity, serves: this one does not take its place.
  if (node.ever && now - node.heard < config_.suspect_after) return;
  const std::int64_t since = node.info.trouble().empty() ? wall : node.info.trouble_since();
  if (node.info.trouble() != why)
    spdlog::error("{} (node {}): {}", node.presented.node().name(), node.presented.node().id(), why);
  node.info = node.presented.node();
  node.info.set_trouble(std::move(why));
  node.info.set_trouble_since(since);
  node.trouble_heard = now;
}

Status Registry::store(Node& node) {
  PIF_ASSERT(find(node.info.id()) == &node, node.info.id());  // what is taken back is looked for by that
  proto::StoredNode row;
  proto::NodeInfo& shown = *row.mutable_node();
  shown.set_id(node.info.id());
  shown.set_name(node.info.name());
  shown.set_root(node.info.root());
  *shown.mutable_endpoints() = node.info.endpoints();
  row.set_uuid(node.uuid);
  row.set_confirmed(node.confirmed);
  row.set_offered(node.offered);
  row.set_number(node.number);
  row.set_ask_all(node.ask_all);
  PIF_TRY(rows_.put(kNodes, kv::key_u32(node.info.id()), row));
  rows_.on_abort([this, id = node.info.id(), had_row = node.has_row] {
    nodes_[id].stored = false;
    nodes_[id].has_row = had_row;
  });
  node.stored = node.has_row = true;
  return {};
}

Status Registry::store_all() {
  for (auto& [id, node] : nodes_) {
    if (!node.stored && node.info.id() != 0) PIF_TRY(store(node));
  }
  return {};
}

bool Registry::has_unstored() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return !node.second.stored && node.second.info.id() != 0; });
}

bool Registry::all_met() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.second.met; });
}

std::vector<Node*> Registry::all() {
  std::vector<Node*> all;
  for (auto& [id, node] : nodes_) all.push_back(&node);
  return all;
}

Node* Registry::find(std::uint32_t id) {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::uint32_t Registry::state(const Node& node, Time now) const {
  if (!node.info.trouble().empty() && now - node.trouble_heard < config_.down_after) return kStale;
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

Candidate Registry::candidate(const Node& node, Time now) const {
  return {node.info.id(), node.info.endpoints().machine(), is_usable(node, now), node.info.full()};
}

std::vector<Candidate> Registry::candidates(Time now) const {
  std::vector<Candidate> all;
  all.reserve(nodes_.size());
  for (const auto& [id, node] : nodes_) all.push_back(candidate(node, now));
  return all;
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
    // Shown as long as this directory does not know of it: then it does not have the marks either that were made.
    if (info.taken_back() <= node.confirmed) info.clear_taken_back();
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
    if (is == node.shown || (!node.ever && is != kStale)) continue;
    PIF_ASSERT(is < std::size(kStateNames), is);
    spdlog::info("{} (node {}) is {}", node.info.name(), id, kStateNames[is]);
    node.shown = is;
  }
}

}  // namespace pif::server
