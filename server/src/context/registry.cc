#include "context/registry.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "pif/kv/value.h"

namespace pif::server {
namespace {

constexpr std::size_t kPeersAtOnce = 128;  // some 50 KiB: a reply must fit a packet
constexpr const char* kStateNames[] = {"unknown", "up", "suspect", "down", "draining", "stale", "failing"};

bool same_endpoints(const proto::Endpoints& a, const proto::Endpoints& b) {
  return a.unix_path() == b.unix_path() && a.ipc() == b.ipc() && a.tcp() == b.tcp() && a.curve_key() == b.curve_key() &&
         a.machine() == b.machine();
}

// What is stored of a node; the rest comes with every heartbeat.
bool same_stored(const proto::NodeInfo& a, const proto::NodeInfo& b) {
  return a.name() == b.name() && a.root() == b.root() && a.host() == b.host() &&
         same_endpoints(a.endpoints(), b.endpoints()) && a.scrubbed() == b.scrubbed() &&
         a.scrub_damages() == b.scrub_damages();
}

// Who shares a host shares its fate, whatever its daemons could find out of the machine.
std::uint64_t machine_of(const proto::NodeInfo& info) {
  if (info.host().empty()) return info.endpoints().machine();
  return hash_bytes(std::as_bytes(std::span(info.host())));
}

}  // namespace

Status Registry::load(Time now) {
  bool good = true;
  PIF_TRY(rows_.scan(kNodes, {}, [&](std::string_view, std::string_view payload) {
    proto::StoredNode row;
    good = row.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
    if (!good) return false;
    good = views_.load(row.node().id(), row);
    if (!good) return false;
    Node node{.info = row.node(), .heard = now, .stored = true, .has_row = true};
    node.uuid = row.uuid();
    node.confirmed = row.confirmed();
    node.offered = row.offered();
    node.number = node.known = row.number();
    node.ask_all = row.ask_all();
    node.leased = now;
    note_peer(node);
    nodes_[row.node().id()] = std::move(node);
    return true;
  }));
  if (!good) return fail(Code::kCorrupt, "the directory's table nodes has a value that cannot be read");
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
    if (!node.uuid.empty()) views_.note_replaced(info.id());
    node.uuid = uuid;
    node.confirmed = node.offered = node.number = node.known = 0;
    node.ask_all = node.stored = false;
  }
  if (node.info.id() == 0) node.info = info;
  PIF_ASSERT(node.info.id() == info.id(), node.info.id(), info.id());
  node.presented = beat;
  node.met = true;
  return &node;
}

void Registry::note_alive(Node& node, Time now) {
  if (now - node.heard >= config_.suspect_after) node.said_lost = false;  // that was said of one that was silent
  node.info = node.presented.node();
  node.heard = now;
  node.ever = true;
  node.trouble_heard = {};
  if (node.info.state() != kFailing)
    node.failing_since = {};
  else if (node.failing_since == Time{})
    node.failing_since = now;
}

Status Registry::note_heartbeat(Node& node, Time now) {
  const proto::NodeInfo& info = node.presented.node();
  PIF_ASSERT(node.met && info.id() == node.info.id(), info.id(), node.info.id());
  const bool is_new = !node.has_row || !same_stored(node.info, info);
  note_alive(node, now);
  return is_new ? store(node) : Status();
}

void Registry::refuse(Node& node, std::string why, Time now, std::int64_t wall) {
  PIF_ASSERT(node.met && node.presented.node().id() == node.info.id(), node.presented.node().id(), node.info.id());
  // Another process, with a root of the same identity, serves: this one does not take its place.
  if (node.ever && now - node.heard < config_.suspect_after) return;
  show_trouble(node, std::move(why), now, wall);
}

void Registry::show_trouble(Node& node, std::string why, Time now, std::int64_t wall) {
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
  shown.set_host(node.info.host());
  shown.set_scrubbed(node.info.scrubbed());
  shown.set_scrub_damages(node.info.scrub_damages());
  *shown.mutable_endpoints() = node.info.endpoints();
  row.set_uuid(node.uuid);
  row.set_confirmed(node.confirmed);
  row.set_offered(node.offered);
  row.set_number(node.number);
  row.set_ask_all(node.ask_all);
  views_.describe(node.info.id(), row);
  PIF_TRY(rows_.put(kNodes, kv::key_u32(node.info.id()), row));
  rows_.on_abort([this, id = node.info.id(), had_row = node.has_row] {
    nodes_[id].stored = false;
    nodes_[id].has_row = had_row;
  });
  node.stored = node.has_row = true;
  return {};
}

Status Registry::move(Node& node, std::initializer_list<wire::ViewState> path) {
  rows_.on_abort([this, before = views_] { views_ = before; });
  for (const wire::ViewState to : path) views_.move(node.info.id(), to, numbers_.next_index());
  const Membership& membership = views_.of(node.info.id());
  spdlog::warn("{} (node {}) is {} in view {}, of era {}", node.info.name(), node.info.id(),
               wire::view_state_name(membership.state), views_.index(), membership.era);
  return store(node);
}

Status Registry::lose(Node& node, Time now) {
  node.must_end = node.ever && now - node.heard < config_.suspect_after;
  return move(node, {wire::kViewLost});
}

Status Registry::replace(Node& node, const std::string& uuid) {
  node.uuid = uuid;
  node.confirmed = node.offered = node.number = node.known = 0;
  node.ask_all = node.ever = false;
  node.info.clear_trouble();
  rows_.on_abort([this, before = views_] { views_ = before; });
  views_.note_replaced(node.info.id());
  return store(node);
}

Status Registry::return_last(Node& node) {
  rows_.on_abort([this, before = views_] { views_ = before; });
  for (const std::uint32_t id : views_.return_last(node.info.id(), numbers_.next_index())) {
    Node* const changed = find(id);
    PIF_ASSERT(changed != nullptr, id);
    PIF_TRY(store(*changed));
  }
  return {};
}

Status Registry::start_over(Node& node) {
  rows_.on_abort([this, before = views_] { views_ = before; });
  const std::uint64_t era = node.presented.node().number() >> wire::kEraShift;
  views_.start_over(node.info.id(), static_cast<std::uint32_t>(era), numbers_.next_index());
  return store(node);
}

bool Registry::is_going(const Node& node, Time now) const {
  if (node.said_lost) return true;
  const bool fails = node.failing_since != Time{} && now - node.failing_since >= config_.suspect_after;
  const bool may_declare = config_.declares_lost && config_.default_bevy > 0;
  return fails && may_declare && absent_companion(node.info.id(), false, now) == 0 &&
         returning_companion(node.info.id(), now) == 0;
}

bool Registry::is_gone(const Node& node, Time now) const {
  const bool is_silent = now - node.heard >= config_.suspect_after;
  return !is_silent && is_going(node, now) && (node.said_lost || now - node.failing_since >= config_.lost_after);
}

std::uint32_t Registry::absent_companion(std::uint32_t node, bool certain, Time now) const {
  return companion_among(views_.absent(), node, certain, now);
}

std::uint32_t Registry::returning_companion(std::uint32_t node, Time now) const {
  return companion_among(views_.returning(), node, false, now);
}

std::uint32_t Registry::companion_among(std::vector<std::uint32_t> absent, std::uint32_t node, bool certain,
                                        Time now) const {
  std::erase(absent, node);
  if (absent.empty()) return 0;
  const std::uint32_t bevy = config_.default_bevy;
  const std::vector<Candidate> known = candidates(now);
  const auto groups =
      bevy == 0 ? std::vector<PairGroup>() : pair_up(known, std::span(&bevy, 1), on_several_machines(known));
  const auto is_in = [](const CompanionPair& pair, std::uint32_t id) {
    const auto is_it = [id](const Candidate& one) { return one.node == id; };
    return std::any_of(pair.first.begin(), pair.first.end(), is_it) ||
           std::any_of(pair.second.begin(), pair.second.end(), is_it);
  };
  const auto pair_of = [&](std::uint32_t id) -> const CompanionPair* {
    for (const PairGroup& group : groups) {
      if (is_in(group.front(), id)) return &group.front();  // one size of bevies: a group is one pair
    }
    return nullptr;
  };
  const CompanionPair* pair = pair_of(node);
  const auto is_companion = [&](std::uint32_t other) {
    if (pair != nullptr && pair_of(other) != nullptr) return is_in(*pair, other);
    return !certain;
  };
  // The one lost last: it returns first.
  const auto found = std::find_if(absent.rbegin(), absent.rend(), is_companion);
  return found == absent.rend() ? 0 : *found;
}

void Registry::note_peer(Node& node) {
  if (node.peer_change != 0 && same_stored(node.peer, node.info)) return;
  node.peer.set_id(node.info.id());
  node.peer.set_name(node.info.name());
  node.peer.set_root(node.info.root());
  *node.peer.mutable_endpoints() = node.info.endpoints();
  node.peer_change = ++peer_changes_;
}

void Registry::describe_peers(std::uint64_t known, proto::HeartbeatReply& reply) const {
  if (known > peer_changes_) known = 0;  // of another run
  reply.set_peers_count(known);
  if (known == peer_changes_) return;
  std::vector<const Node*> changed;
  for (const auto& [id, node] : nodes_) {
    if (node.peer_change > known) changed.push_back(&node);
  }
  std::sort(changed.begin(), changed.end(),
            [](const Node* a, const Node* b) { return a->peer_change < b->peer_change; });
  if (changed.size() > kPeersAtOnce) changed.resize(kPeersAtOnce);
  for (const Node* node : changed) *reply.add_peers() = node->peer;
  reply.set_peers_count(changed.size() < kPeersAtOnce ? peer_changes_ : changed.back()->peer_change);
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

bool Registry::all_admitted() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [this](const auto& one) {
    const Node& node = one.second;
    const bool is_refused = !node.info.trouble().empty() || views_.of(one.first).is_incomplete;
    const bool is_admitted =
        node.presented.stage() != wire::kAsks && node.confirmed == node.presented.node().incarnation();
    return !node.met || is_refused || is_admitted;
  });
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
  const bool is_refused = node.trouble_heard != Time{} && !node.info.trouble().empty();
  if (is_refused && now - node.trouble_heard < config_.down_after) return kStale;
  const Duration silence = now - node.heard;
  if (silence >= config_.down_after) return kDown;
  if (silence >= config_.suspect_after || !node.ever) return kSuspect;
  if (node.info.state() == kFailing) return kFailing;
  return node.info.state() == kDraining ? kDraining : kUp;
}

const Node* Registry::find(std::uint32_t id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool Registry::is_usable(const Node& node, Time now) const {
  if (views_.of(node.info.id()).state == wire::kViewLost) return false;
  return state(node, now) == kUp || (!node.ever && now - node.heard < config_.suspect_after);
}

Candidate Registry::candidate(const Node& node, Time now) const {
  return {node.info.id(), machine_of(node.info), is_usable(node, now), node.info.full(),
          views_.of(node.info.id()).is_absent()};
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
    info.set_view_state(views_.of(id).state);
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
    info.set_view_state(views_.of(id).state);
    if (node == nullptr) continue;
    info.set_name(node->info.name());
    info.set_incarnation(node->confirmed);
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
