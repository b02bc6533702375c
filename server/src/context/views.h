// The view: the state of each node, which says who takes part (docs/PROTOCOL.md "Views"). Pure: the registry makes
// durable what it says.
//
//   member -> lost -> rebuilding -> returning -> member;  lost -> returning;  rebuilding, returning -> lost
//
// Rules: (1) The index rises with each change that others get. (2) The era of a node rises when it is lost and
// when it returns, never else. (3) Those absent (lost, rebuilding) are ordered by when they were lost. An order is
// never given twice.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pif/proto/stored.pb.h"
#include "pif/wire/views.h"

namespace pif::server {

// The state of one node.
struct Membership {
  wire::ViewState state = wire::kViewMember;
  std::uint32_t era = 0;
  std::uint32_t lost_order = 0;  // higher: lost later; 0: it is a member, or was returning by an older server
  std::uint32_t last_order = 0;  // the highest that it ever had: files that it lacks since then have it (FileLack)
  std::uint64_t index = 0;       // of the transaction that changed it last; 0: none did
  // It lacks what its root should have: it is to be rebuilt before it is a member again. Others do not get this.
  bool is_incomplete = false;

  bool is_absent() const { return wire::is_absent(state); }
};

// Whether a node may go from one state to another in one step.
bool may_move(wire::ViewState from, wire::ViewState to);

class Views {
 public:
  // At a start. False: the row says what cannot be.
  [[nodiscard]] bool load(std::uint32_t node, const proto::StoredNode& row);
  // Fills in the part of the row that is about the view.
  void describe(std::uint32_t node, proto::StoredNode& row) const;

  const Membership& of(std::uint32_t node) const;
  // One step, which is allowed (may_move), in the transaction `index`.
  void move(std::uint32_t node, wire::ViewState to, std::uint64_t index);
  // Its root is another one, with nothing in it. This alone changes no state: the old one may still have a lease.
  void note_replaced(std::uint32_t node);
  // This directory is kept though there was a newer one: the node has seen `era` there. Its era here is above that,
  // and the view's index is `index`, so that everybody takes it.
  void start_over(std::uint32_t node, std::uint32_t era, std::uint64_t index);

  // The node, which is absent, returns after all others that are: in their order it comes first now. Returns the nodes
  // that this changed, in the transaction `index`.
  std::vector<std::uint32_t> return_last(std::uint32_t node, std::uint64_t index);

  std::uint64_t index() const { return index_; }
  // Those absent, in the order in which they were lost.
  std::vector<std::uint32_t> absent() const;
  std::vector<std::uint32_t> returning() const;  // the same of these
  // As it is sent to others.
  proto::View view() const;

 private:
  std::vector<std::uint32_t> in_order(bool (*is_wanted)(const Membership&)) const;  // as they were lost
  std::map<std::uint32_t, Membership> nodes_;                                       // of all others: members, of era 0
  std::uint64_t index_ = 1;  // of the first one, in which all are members: 0 is of who does not say
};

}  // namespace pif::server
