// Where the other LFSs are, as the PIF Server says in its answers to heartbeats. Never as a client says: this LFS shows
// its capability to whoever is there. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "pif/daemon/fibers.h"
#include "pif/proto/shapes.pb.h"

namespace pif::lfs {

class PeerList {
 public:
  explicit PeerList(daemon::Fibers& fibers) : wanted_(fibers) {}
  void learn(const proto::NodeInfo& node) { nodes_[node.id()] = node; }
  // Somebody looks for one that is not there: the PIF Server is asked soon. is_wanted() says so once.
  void want() {
    is_wanted_ = true;
    wanted_.notify();
  }
  bool take_wanted() { return std::exchange(is_wanted_, false); }
  // By want(), or by who has other reasons to ask.
  daemon::Event& wanted() { return wanted_; }
  // Null: nothing was ever heard of it. Valid until the next learn().
  const proto::NodeInfo* find(std::uint32_t node) const {
    const auto at = nodes_.find(node);
    return at == nodes_.end() ? nullptr : &at->second;
  }

 private:
  bool is_wanted_ = false;
  daemon::Event wanted_;
  std::unordered_map<std::uint32_t, proto::NodeInfo> nodes_;  // by NodeId
};

}  // namespace pif::lfs
