// The LFSs: what they said last, and whether they are still heard.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/server/server.h"
#include "rows.h"

namespace pif::server {

enum NodeState : std::uint32_t { kUp = 1, kSuspect = 2, kDown = 3, kDraining = 4 };
inline constexpr std::size_t kNodesMax = 16384;

struct Node {
  proto::NodeInfo info;
  Time heard{};          // last heartbeat; before the first one: the server's start
  bool ever = false;     // heard since the server started
  bool stored = false;   // the row says what `info` says, as far as it is stored
  std::uint32_t shown = 0;  // state last logged
};

class Registry {
 public:
  Registry(const Config& config, Rows& rows) : config_(config), rows_(rows) {}

  [[nodiscard]] Status load(Time now);
  // kInvalid for a heartbeat without an id or a name; kTooLarge over kNodesMax nodes.
  [[nodiscard]] Status heartbeat(const proto::NodeInfo& info, Time now);

  std::uint32_t state(const Node& node, Time now) const;
  const Node* find(std::uint32_t id) const;
  // Nodes for new files, in node order. For a moment after a start those not heard yet count too, so that a restart
  // does not make new files narrower.
  std::vector<std::uint32_t> usable(Time now) const;
  bool is_usable(const Node& node, Time now) const;
  std::size_t up_count(Time now) const;
  std::size_t size() const { return nodes_.size(); }  // whatever their state
  // All, as shown to people and tools.
  void describe(Time now, google::protobuf::RepeatedPtrField<proto::NodeInfo>& to) const;
  // Those of a layout, in its order, without what only people want to know.
  void describe(const proto::FileLayout& layout, Time now, google::protobuf::RepeatedPtrField<proto::NodeInfo>& to) const;
  // Logs nodes that changed state.
  void log_changes(Time now);

 private:
  const Config& config_;
  Rows& rows_;
  std::map<std::uint32_t, Node> nodes_;
};

}  // namespace pif::server
