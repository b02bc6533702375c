// The LFSs: what they said last, whether they are still heard, and how old they are.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "context/companions.h"
#include "context/views.h"
#include "directory/numbers.h"
#include "directory/rows.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"
#include "pif/server/server.h"

namespace pif::server {

enum NodeState : std::uint32_t {
  kUp = 1,
  kSuspect = 2,
  kDown = 3,
  kDraining = 4,
  kStale = 5,
  kFailing = wire::kStateFailing,  // heard, and its disk fails
};
inline constexpr std::size_t kNodesMax = 16384;

struct Node {
  proto::NodeInfo info;
  Time heard{};         // last heartbeat; before the first one: the server's start
  bool ever = false;    // heard since the server started
  bool stored = false;  // the row says what this says, as far as it is stored
  bool has_row = false;
  std::uint32_t shown = 0;  // state last logged

  // The state of its root, durable or not (docs/FORMAT.md "Who is how old").
  std::string uuid;
  std::uint64_t confirmed = 0;  // incarnation that it was last heard with
  std::uint64_t offered = 0;    // incarnation that it was last admitted as
  std::uint64_t number = 0;     // the highest that it was heard with
  std::uint64_t known = 0;      // of these, what the directory had when the server started
  bool ask_all = false;         // once it is admitted
  bool in_drill = false;        // it has taken itself out, and stays lost though it is heard
  bool said_lost = false;       // by a person: it gets no lease any more, and is lost when the last one is over
  bool must_end = false;        // it was heard when it was lost: its process does not serve on
  Time failing_since{};         // since when it has said that its disk fails; zero: it does not
  // Its last heartbeat, whatever came of it.
  proto::Heartbeat presented;
  bool met = false;           // it has, since the server started
  Time trouble_heard{};       // when it was last found stale
  std::int64_t twin_pid = 0;  // of another process that says it is this node, last logged
  // When it was last given a lease, or may have been: by the server's life before this one.
  Time leased{};
  // How it is reached, as it is sent to the others, and the number of that change; 0: they are not.
  proto::NodeInfo peer;
  std::uint64_t peer_change = 0;
};

class Registry {
 public:
  Registry(const Config& config, Rows& rows, const Numbers& numbers)
      : config_(config), rows_(rows), numbers_(numbers) {}

  [[nodiscard]] Status load(Time now);
  // The node that sent a heartbeat; a new one is added. kInvalid without an id or a name, and for a node that pif.toml
  // does not have; kTooLarge over kNodesMax.
  [[nodiscard]] Result<Node*> meet(const proto::Heartbeat& beat);
  // It is up, for all to see, as it presents itself.
  void note_alive(Node& node, Time now);
  // It serves and is heard; a change of what is stored of it is written in this turn.
  [[nodiscard]] Status note_heartbeat(Node& node, Time now);
  // It must not serve: why, and what to do.
  void refuse(Node& node, std::string why, Time now, std::int64_t wall);
  // Shows to all that it is stale, and why.
  void show_trouble(Node& node, std::string why, Time now, std::int64_t wall);
  // Others do without it from this turn on.
  [[nodiscard]] Status lose(Node& node, Time now);
  // Writes the node's row in this turn.
  [[nodiscard]] Status store(Node& node);
  // The same for all of which more is known than is stored.
  [[nodiscard]] Status store_all();
  bool has_unstored() const;

  // ---- the view ----
  const Views& views() const { return views_; }
  // Through these states, one after the other, in this turn. Nobody hears of any before the turn is durable.
  [[nodiscard]] Status move(Node& node, std::initializer_list<wire::ViewState> path);
  // From now on the node's root is another, empty one, with this uuid.
  [[nodiscard]] Status replace(Node& node, const std::string& uuid);
  // Views::return_last() of a node.
  [[nodiscard]] Status return_last(Node& node);
  // Views::start_over() of a node.
  [[nodiscard]] Status start_over(Node& node);
  // Whether a node that is heard is to be done without: by a person's word, or as its disk fails. A failing disk counts
  // only where new files have parity, and no pair would have two absent.
  bool is_going(const Node& node, Time now) const;
  // The same, since as long ago as a silent node is lost.
  bool is_gone(const Node& node, Time now) const;
  // Whether it was silent for so long that nobody acts on a lease of its any more.
  bool is_lease_over(const Node& node, Time now) const { return now - node.leased >= kLeaseOver; }
  // An absent node that may be the companion of this one in some file; 0: there is none. certain: only where the
  // server itself puts both into one pair of bevies. Files made with other bevies, or for which the pairs were made
  // anew, may say otherwise; nobody looks through all files.
  std::uint32_t absent_companion(std::uint32_t node, bool certain, Time now) const;
  // One that is returning, and may be its companion; 0: none is.
  std::uint32_t returning_companion(std::uint32_t node, Time now) const;

  // ---- how LFSs reach one another ----
  // The node may be reached as its info says.
  void note_peer(Node& node);
  // Adds the peers that have changed since `known` changes, at most a bounded number.
  void describe_peers(std::uint64_t known, proto::HeartbeatReply& reply) const;

  // Whether all nodes that the directory knows have presented themselves since the start.
  bool all_met() const;
  // Whether those that have, and may serve, do so.
  bool all_admitted() const;
  std::vector<Node*> all();
  Node* find(std::uint32_t id);

  std::uint32_t state(const Node& node, Time now) const;
  // It serves, as far as is known.
  bool is_heard(const Node& node, Time now) const { return state(node, now) != kDown && state(node, now) != kStale; }
  const Node* find(std::uint32_t id) const;
  // All nodes for new files, in node order.
  std::vector<Candidate> candidates(Time now) const;
  Candidate candidate(const Node& node, Time now) const;
  // For new files: also one that is being rebuilt, for it has room and serves. For a moment after a start those not
  // heard yet count too, so that a restart does not make new files narrower.
  bool is_usable(const Node& node, Time now) const;
  std::size_t up_count(Time now) const;
  std::size_t size() const { return nodes_.size(); }  // whatever their state
  // All, as shown to people and tools.
  void describe(Time now, google::protobuf::RepeatedPtrField<proto::NodeInfo>& to) const;
  // Those of a layout, in its order, without what only people want to know.
  void describe(const proto::FileLayout& layout, Time now,
                google::protobuf::RepeatedPtrField<proto::NodeInfo>& to) const;
  // Logs nodes that changed state.
  void log_changes(Time now);

 private:
  std::uint32_t companion_among(std::vector<std::uint32_t> nodes, std::uint32_t node, bool certain, Time now) const;

  const Config& config_;
  Rows& rows_;
  const Numbers& numbers_;
  Views views_;
  std::uint64_t peer_changes_ = 0;
  std::map<std::uint32_t, Node> nodes_;
};

}  // namespace pif::server
