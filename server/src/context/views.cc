#include "context/views.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::server {
namespace {

constexpr std::uint32_t kEraMax = (1u << 24) - 1;

bool is_state(std::uint32_t state) { return state >= wire::kViewMember && state <= wire::kViewReturning; }

}  // namespace

bool may_move(wire::ViewState from, wire::ViewState to) {
  using namespace wire;
  switch (to) {
    case kViewLost: return from != kViewLost;
    case kViewRebuilding: return from == kViewLost;
    case kViewReturning: return from == kViewLost || from == kViewRebuilding;
    case kViewMember: return from == kViewReturning;
  }
  return false;
}

bool Views::load(std::uint32_t node, const proto::StoredNode& row) {
  if (!row.has_view() && !row.incomplete() && row.last_order() == 0) return true;
  const proto::ViewNode& stored = row.view();
  Membership membership;
  membership.is_incomplete = row.incomplete();
  membership.last_order = row.last_order();
  if (row.has_view()) {
    if (stored.node() != node || !is_state(stored.state()) || stored.era() > kEraMax || row.view_index() == 0)
      return false;
    membership.state = static_cast<wire::ViewState>(stored.state());
    membership.era = stored.era();
    membership.lost_order = stored.lost_order();
    membership.index = row.view_index();
    const bool is_ordered = membership.lost_order != 0;
    if (membership.state == wire::kViewMember ? is_ordered : membership.is_absent() && !is_ordered) return false;
  }
  nodes_[node] = membership;
  index_ = std::max(index_, membership.index);
  return true;
}

void Views::describe(std::uint32_t node, proto::StoredNode& row) const {
  const Membership& membership = of(node);
  row.set_incomplete(membership.is_incomplete);
  row.set_last_order(membership.last_order);
  if (membership.index == 0) return;
  row.set_view_index(membership.index);
  proto::ViewNode& to = *row.mutable_view();
  to.set_node(node);
  to.set_state(membership.state);
  to.set_era(membership.era);
  to.set_lost_order(membership.lost_order);
}

const Membership& Views::of(std::uint32_t node) const {
  static const Membership kMember;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? kMember : found->second;
}

void Views::move(std::uint32_t node, wire::ViewState to, std::uint64_t index) {
  PIF_ASSERT(index >= index_ && index > 0, index, index_);
  std::uint32_t last_lost = 0;
  for (const auto& [id, other] : nodes_) last_lost = std::max({last_lost, other.lost_order, other.last_order});
  Membership& membership = nodes_[node];
  PIF_ASSERT(may_move(membership.state, to), node, membership.state, to);
  if (to == wire::kViewLost) {
    membership.is_incomplete = membership.is_incomplete || membership.state != wire::kViewMember;
    membership.lost_order = membership.last_order =
        last_lost + 1;  // the last, also if it was absent: it may have lost what was rebuilt
  }
  if (to == wire::kViewRebuilding) membership.is_incomplete = true;
  if (to == wire::kViewMember) {
    membership.is_incomplete = false;
    membership.lost_order = 0;
  }
  if (to == wire::kViewLost || to == wire::kViewReturning) ++membership.era;
  PIF_ASSERT(membership.era <= kEraMax, node, membership.era);
  membership.state = to;
  membership.index = index_ = index;
  PIF_ASSERT(!membership.is_absent() || membership.lost_order != 0, node, membership.state, membership.lost_order);
}

void Views::note_replaced(std::uint32_t node) { nodes_[node].is_incomplete = true; }

void Views::start_over(std::uint32_t node, std::uint32_t era, std::uint64_t index) {
  PIF_ASSERT(index >= index_ && index > 0, index, index_);
  Membership& membership = nodes_[node];
  membership.era = std::min(std::max(membership.era, era) + 1, kEraMax);
  membership.index = index_ = index;
}

std::vector<std::uint32_t> Views::return_last(std::uint32_t node, std::uint64_t index) {
  PIF_ASSERT(index >= index_ && of(node).is_absent(), node, index, index_);
  std::vector<std::uint32_t> order = in_order([](const Membership& one) { return one.lost_order != 0; });
  const auto at = std::find(order.begin(), order.end(), node);
  std::rotate(order.begin(), at, at + 1);
  std::vector<std::uint32_t> changed;
  const std::uint32_t own = of(node).lost_order;
  for (const std::uint32_t one : order) {
    Membership& membership = nodes_[one];
    const std::uint32_t place = one == node ? 1 : membership.lost_order + (membership.lost_order < own ? 1 : 0);
    if (membership.lost_order == place) continue;
    membership.lost_order = place;
    membership.last_order = std::max(membership.last_order, place);
    membership.index = index_ = index;
    changed.push_back(one);
  }
  PIF_ASSERT(of(node).lost_order == 1, node, of(node).lost_order);
  return changed;
}

std::vector<std::uint32_t> Views::absent() const {
  return in_order([](const Membership& one) { return one.is_absent(); });
}

std::vector<std::uint32_t> Views::returning() const {
  return in_order([](const Membership& one) { return one.state == wire::kViewReturning; });
}

std::vector<std::uint32_t> Views::in_order(bool (*is_wanted)(const Membership&)) const {
  std::vector<std::uint32_t> nodes;
  for (const auto& [node, membership] : nodes_) {
    if (is_wanted(membership)) nodes.push_back(node);
  }
  std::sort(nodes.begin(), nodes.end(),
            [this](std::uint32_t a, std::uint32_t b) { return of(a).lost_order < of(b).lost_order; });
  return nodes;
}

proto::View Views::view() const {
  proto::View view;
  view.set_index(index_);
  for (const auto& [node, membership] : nodes_) {
    if (membership.index == 0) continue;
    proto::ViewNode& to = *view.add_nodes();
    to.set_node(node);
    to.set_state(membership.state);
    to.set_era(membership.era);
    to.set_lost_order(membership.lost_order);
  }
  return view;
}

}  // namespace pif::server
