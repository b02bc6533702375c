// The newest view that this LFS has received, how the others are reached, and until when this LFS may act alone
// (docs/PROTOCOL.md "Views").
//
// Rules: (1) A view counts, here and for those who are told its index, once it is durable. (2) It is never followed by
// an older one.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "pif/base/clock.h"
#include "pif/base/key_ring.h"
#include "pif/wire/views.h"

namespace pif::lfs {

class ViewState {
 public:
  // self: this node.
  ViewState(KeyRing keys, std::uint32_t self) : keys_(std::move(keys)), self_(self) {}

  // At a start: as the catalogue has it; empty: there is none yet. One that was signed by a key that is no longer
  // accepted is none: the server has it. kInvalid.
  [[nodiscard]] Status load(std::string_view packed);
  // Returns the view, to be made durable and then adopted; nothing if it is not newer than the newest that was offered.
  // kBadCapability, kInvalid: it is no view of this file system.
  [[nodiscard]] Result<std::optional<proto::View>> offer(std::string_view packed);
  void adopt(const proto::View& view, std::string packed);
  // It could not be made durable: it may be offered again.
  void give_up() { offered_ = index(); }

  std::uint64_t index() const { return view_.index(); }
  // Packed, for others, under the key that signs now; empty: none was adopted yet.
  const std::string& packed();
  std::uint32_t state_of(std::uint32_t node) const;  // wire::ViewState
  // Whether this node was a member in one that counted here since the start.
  bool was_member() const { return was_member_; }
  std::uint32_t era_of(std::uint32_t node) const;
  // The later an absent node was lost, the higher; 0: it is not absent.
  std::uint32_t lost_order_of(std::uint32_t node) const;
  // Lost or rebuilding: others do without it.
  bool is_absent(std::uint32_t node) const { return wire::is_absent(state_of(node)); }

  // ---- how the others are reached: not durable, not part of the view ----
  // changes: how many of this run of the server are known now.
  void note_peers(std::uint64_t run, const google::protobuf::RepeatedPtrField<proto::NodeInfo>& peers,
                  std::uint64_t changes);
  std::uint64_t peer_changes() const { return peer_changes_; }
  // By node: id, name, endpoints.
  const std::map<std::uint32_t, proto::NodeInfo>& peers() const { return peers_; }

  // ---- the lease; times are Clock::boottime() ----
  void grant_lease(Time until) { lease_until_ = std::max(lease_until_, until); }
  void end_lease() { lease_until_ = {}; }
  // Whether this LFS may answer alone what others would answer if it were lost.
  bool has_lease(Time now) const { return now < lease_until_ && state_of(self_) == wire::kViewMember; }

 private:
  static constexpr std::uint64_t kNobody = UINT64_MAX;
  [[nodiscard]] Result<proto::View> open(std::string_view packed) const;
  const proto::ViewNode* find(std::uint32_t node) const;
  void note_own_state();

  const KeyRing keys_;
  const std::uint32_t self_;
  proto::View view_;
  bool was_member_ = false;
  std::string packed_;
  std::uint64_t packed_by_ = kNobody;  // version of the keys; kNobody: it is as it came
  std::uint64_t offered_ = 0;          // index of the newest, durable or about to be
  std::map<std::uint32_t, proto::NodeInfo> peers_;
  std::uint64_t peers_run_ = 0;  // of the server
  std::uint64_t peer_changes_ = 0;
  Time lease_until_{};
};

}  // namespace pif::lfs
