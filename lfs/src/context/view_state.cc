#include "context/view_state.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "pif/base/assert.h"

namespace pif::lfs {

Result<proto::View> ViewState::open(std::string_view packed) const {
  return keys_.verify([&](const ClusterKey& key) { return wire::open_view(key, packed); });
}

const std::string& ViewState::packed() {
  if (!packed_.empty() && packed_by_ != keys_.version()) {
    packed_ = wire::pack_view(keys_.signing(), view_);
    packed_by_ = keys_.version();
  }
  return packed_;
}

Status ViewState::load(std::string_view packed) {
  if (packed.empty()) return {};
  auto view = open(packed);
  if (!view && view.error().code == Code::kBadCapability) {
    spdlog::warn("the view on this disk was signed by a key that is no longer accepted: the server is asked for it");
    return {};
  }
  if (!view) return fail(std::move(view.error()));
  view_ = std::move(*view);
  packed_ = packed;
  packed_by_ = kNobody;
  offered_ = view_.index();
  note_own_state();
  return {};
}

Result<std::optional<proto::View>> ViewState::offer(std::string_view packed) {
  PIF_TRY_VALUE(proto::View view, open(packed));
  if (view.index() <= offered_) return std::nullopt;
  offered_ = view.index();
  return std::optional(std::move(view));
}

void ViewState::adopt(const proto::View& view, std::string packed) {
  PIF_ASSERT(view.index() > view_.index(), view.index(), view_.index());
  view_ = view;
  offered_ = std::max(offered_, view.index());
  packed_ = std::move(packed);
  packed_by_ = kNobody;  // either key may have signed it
  note_own_state();
}

void ViewState::note_own_state() {
  was_member_ = was_member_ || (view_.index() > 0 && state_of(self_) == wire::kViewMember);
}

const proto::ViewNode* ViewState::find(std::uint32_t node) const {
  const auto is_before = [](const proto::ViewNode& one, std::uint32_t id) { return one.node() < id; };
  const auto found = std::lower_bound(view_.nodes().begin(), view_.nodes().end(), node, is_before);
  return found != view_.nodes().end() && found->node() == node ? &*found : nullptr;
}

std::uint32_t ViewState::state_of(std::uint32_t node) const {
  const proto::ViewNode* found = find(node);
  return found == nullptr ? wire::kViewMember : found->state();
}

std::uint32_t ViewState::era_of(std::uint32_t node) const {
  const proto::ViewNode* found = find(node);
  return found == nullptr ? 0 : found->era();
}

std::uint32_t ViewState::lost_order_of(std::uint32_t node) const {
  const proto::ViewNode* found = find(node);
  return found == nullptr ? 0 : found->lost_order();
}

void ViewState::note_peers(std::uint64_t run, const google::protobuf::RepeatedPtrField<proto::NodeInfo>& peers,
                           std::uint64_t changes) {
  if (run != peers_run_) {                       // another run counts anew
    const bool is_partial = peer_changes_ != 0;  // it took this LFS for one that has some of its changes
    peers_run_ = run;
    peer_changes_ = 0;
    if (is_partial) return;  // asks again, for all
  }
  for (const proto::NodeInfo& peer : peers) peers_[peer.id()] = peer;
  peer_changes_ = changes;
}

}  // namespace pif::lfs
