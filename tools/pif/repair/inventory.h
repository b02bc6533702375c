// The files and components that the server and the LFSs have, asked of the running file system.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pif/client/session.h"
#include "repair/examine.h"

namespace pif::cli {

class Inventory {
 public:
  explicit Inventory(std::shared_ptr<client::Session> session) : session_(std::move(session)) {}

  // The LFSs that must be there: LFSs that are up, LFSs that answer (stale ones too), or the server alone.
  enum class Needs : std::uint8_t { kUp, kAnswers, kServer };
  // kUnavailable, naming it, if an LFS is not; kPermission for who may not manage the cluster.
  [[nodiscard]] Status open(Needs needs = Needs::kUp);
  const std::vector<proto::NodeInfo>& nodes() const { return nodes_; }
  const std::string& name_of(std::uint32_t node) const;
  // kNotFound: there is none of that name.
  [[nodiscard]] Result<proto::NodeInfo> node_named(const std::string& name) const;

  // All of them, every LFS at once.
  [[nodiscard]] Result<std::map<std::uint64_t, Held>> all_components();
  [[nodiscard]] Result<std::map<std::uint64_t, FileRecord>> all_files();
  [[nodiscard]] Result<std::map<std::uint64_t, proto::ComponentState>> components_on(const proto::NodeInfo& node);
  // Those of files that the server did not know, kept for a while: when they were put aside, wall seconds.
  struct Quarantined {
    std::uint32_t node = 0;
    proto::ComponentState state;
    std::int64_t since = 0;

    // Else files that the catalogue does not know: there are only the id, and bytes() of their rows.
    bool is_known() const { return state.shape().layout().nodes_size() > 0; }
  };
  [[nodiscard]] Result<std::vector<Quarantined>> quarantine();
  // All components, what is in quarantine, and what was put aside.
  [[nodiscard]] Result<Everything> everything();
  // All LFSs bring their overwrites in place. One that does not serve has done so at its start.
  [[nodiscard]] Status flush();
  // Commits nothing for so long, everywhere; 0: goes on.
  [[nodiscard]] Status hold(std::chrono::milliseconds time);
  // One file id, as things are now.
  [[nodiscard]] Result<Held> components_of(std::uint64_t file);
  [[nodiscard]] Result<std::optional<FileRecord>> file(std::uint64_t id);

  // Reads these components and checks every sum, on all LFSs at once; gone ones are passed over.
  struct SumCheck {
    std::uint64_t bytes = 0;
    std::vector<Finding> findings;
  };
  [[nodiscard]] Result<SumCheck> check_sums(const std::map<std::uint32_t, std::vector<std::uint64_t>>& files_by_node);

  // Begins to restore what an emptied LFS had, or sets the rate, bytes a second (0: none). kInvalid: there is nothing
  // to rebuild.
  [[nodiscard]] Status rebuild(const proto::NodeInfo& node, std::uint64_t rate);
  [[nodiscard]] Result<proto::RebuildStatusReply> rebuild_status(const proto::NodeInfo& node);

  // Begins to look at all that an LFS has of files with parity; of what is under way only the rate changes.
  [[nodiscard]] Status scrub(const proto::NodeInfo& node, std::uint64_t rate, bool only_look);
  [[nodiscard]] Result<proto::ScrubStatusReply> scrub_status(const proto::NodeInfo& node);

  // Begins a drill of an LFS; of one that is under way only the rate changes.
  [[nodiscard]] Status drill(const proto::NodeInfo& node, std::uint64_t rate);
  [[nodiscard]] Result<proto::DrillStatusReply> drill_status(const proto::NodeInfo& node);

  // Tells the LFS that no file owns it: it is kept for a week, out of sight. kBusy if the server knows it after all.
  [[nodiscard]] Status remove_component(std::uint32_t node, std::uint64_t file);
  // Tells the server that the node has all that it should have.
  [[nodiscard]] Status note_complete(std::uint32_t node);

 private:
  template <wire::Request R>
  [[nodiscard]] Result<wire::ReplyTo<R>> ask(const proto::NodeInfo& node, R request);
  [[nodiscard]] Status renew();  // a capability that is good for the next minutes
  // One request to each of several LFSs, all under way together; replies in order.
  template <wire::Request R>
  std::vector<Result<wire::ReplyTo<R>>> ask_all(const std::vector<const proto::NodeInfo*>& nodes,
                                                const std::vector<R>& requests, Duration timeout);

  std::shared_ptr<client::Session> session_;
  std::vector<proto::NodeInfo> nodes_;
  std::string capability_;
  std::int64_t capability_from_ = 0;  // wall seconds
};

}  // namespace pif::cli
