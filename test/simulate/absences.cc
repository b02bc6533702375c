#include "simulate/absences.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/capability.h"
#include "pif/wire/values.h"
#include "pif/wire/views.h"

namespace pif::simulate {

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kUp = 1;         // NodeInfo.state
constexpr Duration kPatience = 2s;       // for the answer to the person
constexpr Duration kReplaceWaits = 60s;  // for the LFS to be declared lost: else it comes back with what it had
constexpr std::int64_t kCapabilitySeconds = 600;

}  // namespace

Absences::Absences(Shared& shared)
    : shared_(shared), cluster_(shared.cluster), states_(shared.plan.lfss, wire::kViewMember) {
  const auto& strikes = shared.plan.strikes;
  left_ = static_cast<std::size_t>(std::count_if(strikes.begin(), strikes.end(), takes_away));
}

// ---- strikes -------------------------------------------------------------------------------------------------------

bool Absences::may_begin(std::size_t number) const {
  if (stage_ == Stage::kNobody) return true;
  return stage_ == Stage::kReturning && (shared_.plan.seed + number) % 3 == 0;
}

Duration Absences::up_to(Duration least, Duration most) {
  return least + Duration(static_cast<std::int64_t>(pick(static_cast<std::uint64_t>((most - least).count()))));
}

// Too short to be noticed, too short to be lost, or long.
Duration Absences::some_time(Strike kind) {
  if (kind == Strike::kReplace) return up_to(11s, 25s);
  if (kind != Strike::kTakeAway) return up_to(5s, 60s);
  const auto how = pick(4);
  return how == 0 ? up_to(1ms, 2s) : how == 1 ? up_to(2s, 11s) : up_to(11s, 45s);
}

void Absences::begin(Strike kind) {
  PIF_ASSERT(left_ > 0 && (stage_ == Stage::kNobody || stage_ == Stage::kReturning), left_);
  --left_;
  if (stage_ == Stage::kNobody) lfs_ = static_cast<unsigned>(pick(cluster_.size()));
  const Duration time = some_time(kind);
  stage_ = Stage::kAway;
  kind_ = kind;
  until_ = now() + time;
  is_lost_ = false;
  says_lost_ = pick(3) == 0;
  shared_.tell(fmt::format("lfs{} is away: {} for {} ms", lfs_, name_of(kind),
                           std::chrono::duration_cast<std::chrono::milliseconds>(time).count()));
  switch (kind) {
    case Strike::kCutOff: return cut_off(time);
    case Strike::kPause:
      if (const auto actor = cluster_.world().find(fmt::format("lfs{}", lfs_))) cluster_.world().stall(*actor, time);
      return;
    default: return take_down();
  }
}

void Absences::take_down() {
  if (!cluster_.lfs_runs(lfs_)) return;
  const auto how = pick(3);
  if (how == 0) return cluster_.kill_lfs(lfs_);
  if (how == 1) return cluster_.crash_lfs(lfs_);
  const bool only_durable = pick(2) == 0;
  cluster_.crash_lfs_at(lfs_, pick(only_durable ? 6 : 40), only_durable);
}

// Clients reach it all the while.
void Absences::cut_off(Duration time) {
  const std::string name = fmt::format("lfs{}", lfs_);
  cluster_.world().cut("server", name, time);
  if (pick(2) == 0) return;
  for (unsigned i = 0; i < cluster_.size(); ++i)
    if (i != lfs_) cluster_.world().cut(fmt::format("lfs{}", i), name, time);
}

void Absences::step() {
  if (stage_ != Stage::kAway || now() < until_) return;
  if (kind_ == Strike::kReplace && !is_lost_ && now() < until_ + kReplaceWaits) return;
  if (kind_ == Strike::kReplace && is_lost_) {
    stage_ = Stage::kReplacing;
    is_replaced_ = false;
    return;
  }
  come_back();
}

void Absences::come_back() {
  const bool is_down = kind_ == Strike::kTakeAway || kind_ == Strike::kReplace;
  if (is_down || !cluster_.lfs_runs(lfs_)) cluster_.restart_lfs(lfs_);
  stage_ = Stage::kReturning;
  returning_since_ = now();
  shared_.tell(fmt::format("lfs{} is back", lfs_));
}

void Absences::heal() {
  left_ = 0;
  const std::string name = fmt::format("lfs{}", lfs_);
  cluster_.world().cut("server", name, Duration::zero());
  for (unsigned i = 0; i < cluster_.size(); ++i)
    if (i != lfs_) cluster_.world().cut(fmt::format("lfs{}", i), name, Duration::zero());
  if (const auto actor = cluster_.world().find(name)) cluster_.world().stall(*actor, Duration::zero());
  if (stage_ == Stage::kAway) come_back();
}

// ---- the person ----------------------------------------------------------------------------------------------------

bool Absences::are_members(const proto::NodesReply& nodes) const {
  return nodes.nodes_size() == static_cast<int>(cluster_.size()) &&
         std::all_of(nodes.nodes().begin(), nodes.nodes().end(), [](const proto::NodeInfo& node) {
           return node.state() == kUp && node.view_state() == wire::kViewMember;
         });
}

void Absences::note(const proto::NodesReply& nodes, Time begin) {
  for (const proto::NodeInfo& node : nodes.nodes()) {
    if (node.id() == 0 || node.id() > states_.size()) continue;
    const std::uint32_t before = std::exchange(states_[node.id() - 1], node.view_state());
    if (before == node.view_state()) continue;
    losses_ += wire::is_absent(node.view_state()) && !wire::is_absent(before) ? 1 : 0;
    shared_.tell(
        fmt::format("{} is {} in view {}", node.name(), wire::view_state_name(node.view_state()), nodes.view()));
  }
  if (stage_ == Stage::kAway) is_lost_ = states_[lfs_] == wire::kViewLost;
  if (stage_ != Stage::kReturning || begin <= returning_since_ || !are_members(nodes)) return;
  stage_ = Stage::kNobody;
  shared_.tell("all are members");
}

void Absences::look(client::Session& session) {
  const Time begin = now();
  const auto nodes = session.call(proto::Nodes(), kPatience);
  if (!nodes) return;
  note(*nodes, begin);
  if (stage_ == Stage::kAway && says_lost_ && !is_lost_) {
    proto::NodeLost lost;  // refused until its lease is over
    lost.set_node(lfs_ + 1);
    (void)session.call(std::move(lost), kPatience);
  }
  if (stage_ == Stage::kReplacing) replace(session);
  for (const proto::NodeInfo& node : nodes->nodes())
    if (node.state() == kUp && node.view_state() == wire::kViewRebuilding) rebuild(session, node);
}

// Again and again, until the server has heard it.
void Absences::replace(client::Session& session) {
  const unsigned lfs = lfs_;
  if (!std::exchange(is_replaced_, true)) cluster_.replace_root(lfs);
  proto::ReplaceNode word;
  word.set_node(lfs + 1);
  word.set_uuid(cluster_.root_identity(lfs).uuid);
  const auto done = session.call(std::move(word), kPatience);
  if (!done || stage_ != Stage::kReplacing) return;
  shared_.tell(fmt::format("lfs{} has an empty root", lfs));
  cluster_.restart_lfs(lfs);
  stage_ = Stage::kReturning;
  returning_since_ = now();
}

std::string Absences::capability(client::Session& session) const {
  const std::int64_t until = session.clock().wall_seconds() + kCapabilitySeconds;
  return mint(cluster_.key(), Capability{FileId(0), session.uid(), kMayManage, 0, until});
}

// Only one that was replaced needs to be told.
void Absences::rebuild(client::Session& session, const proto::NodeInfo& node) const {
  (void)session.call(node, proto::Rebuild(), capability(session), kPatience);
}

std::string Absences::trouble(client::Session& session, const proto::NodesReply& nodes) const {
  std::string out;
  for (const proto::NodeInfo& node : nodes.nodes()) {
    if (node.state() == kUp && node.view_state() == wire::kViewMember) continue;
    out += fmt::format(" {}: state {}, {} {};", node.name(), node.state(), wire::view_state_name(node.view_state()),
                       node.trouble());
    const auto status = session.call(node, proto::RebuildStatus(), capability(session), kPatience);
    if (!status) continue;
    out += fmt::format(" rebuild {}, {} of {} files, {} failed;", status->state(), status->files(),
                       status->files_total(), status->failed_count());
    for (const auto& failed : status->failed()) out += fmt::format(" {:x}: {};", failed.file(), failed.error().text());
  }
  return out;
}

}  // namespace pif::simulate
