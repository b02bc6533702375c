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
  if (first_.stage == Stage::kNobody && second_.stage == Stage::kNobody) return true;
  if (may_overlap(number)) return true;
  return first_.stage == Stage::kReturning && (shared_.plan.seed + number) % 3 == 0;
}

// What one of them has written is only on both.
bool Absences::may_overlap(std::size_t number) const {
  const bool is_first_there = first_.stage == Stage::kNobody || first_.kind == Strike::kReplace;
  return shared_.plan.overlaps && !is_first_there && second_.stage == Stage::kNobody && number > 0 &&
         shared_.plan.strikes[number] != Strike::kReplace;
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
  PIF_ASSERT(left_ > 0, left_);
  --left_;
  const bool is_second = first_.stage != Stage::kNobody && kind != Strike::kReplace && shared_.plan.overlaps &&
                         first_.kind != Strike::kReplace && second_.stage == Stage::kNobody;
  if (is_second) {
    second_.lfs = (first_.lfs + 1 + static_cast<unsigned>(pick(cluster_.size() - 1))) % cluster_.size();
    return take(second_, kind);
  }
  if (first_.stage == Stage::kNobody) first_.lfs = static_cast<unsigned>(pick(cluster_.size()));
  // The other one may have what this one would be rebuilt from.
  take(first_, second_.stage == Stage::kNobody ? kind : Strike::kTakeAway);
}

void Absences::take(Away& one, Strike kind) {
  PIF_ASSERT(one.stage == Stage::kNobody || one.stage == Stage::kReturning, one.lfs);
  const Duration time = some_time(kind);
  one.stage = Stage::kAway;
  one.kind = kind;
  one.until = now() + time;
  one.is_lost = false;
  one.says_lost = pick(3) == 0;
  shared_.tell(fmt::format("lfs{} is away: {} for {} ms", one.lfs, name_of(kind),
                           std::chrono::duration_cast<std::chrono::milliseconds>(time).count()));
  switch (kind) {
    case Strike::kCutOff: return cut_off(one.lfs, time);
    case Strike::kPause:
      if (const auto actor = cluster_.world().find(fmt::format("lfs{}", one.lfs))) cluster_.world().stall(*actor, time);
      return;
    case Strike::kDiskFails: return fail_disk(one.lfs);
    default: return take_down(one.lfs);
  }
}

void Absences::take_down(unsigned lfs) {
  if (!cluster_.lfs_runs(lfs)) return;
  const auto how = pick(3);
  if (how == 0) return cluster_.kill_lfs(lfs);
  if (how == 1) return cluster_.crash_lfs(lfs);
  const bool only_durable = pick(2) == 0;
  cluster_.crash_lfs_at(lfs, pick(only_durable ? 6 : 40), only_durable);
}

// From some call on, until it is back.
void Absences::fail_disk(unsigned lfs) {
  const auto reads = [](std::string_view call, std::string_view path) {
    return (call == "read" || call == "open") && path.find("/data/") != std::string_view::npos;
  };
  const auto changes = [](std::string_view call, std::string_view) {
    return call == "write" || call.starts_with("sync") || call == "check_written";
  };
  const auto catalogue = [](std::string_view call, std::string_view) { return call.starts_with("kv."); };
  const sim::Faults::Which which[] = {reads, changes, catalogue, {}};
  cluster_.faults(lfs).fail_at(pick(20), sim::Fault::kIoError, true, which[pick(std::size(which))]);
}

// Clients reach it all the while.
void Absences::cut_off(unsigned lfs, Duration time) {
  const std::string name = fmt::format("lfs{}", lfs);
  cluster_.world().cut("server", name, time);
  if (pick(2) == 0) return;
  for (unsigned i = 0; i < cluster_.size(); ++i)
    if (i != lfs) cluster_.world().cut(fmt::format("lfs{}", i), name, time);
}

void Absences::step() {
  step(first_);
  step(second_);
}

void Absences::step(Away& one) {
  // It was lost and told to end.
  if (one.stage == Stage::kReturning && !cluster_.lfs_runs(one.lfs)) come_back(one);
  if (one.stage != Stage::kAway || now() < one.until) return;
  if (one.kind == Strike::kReplace && !one.is_lost && now() < one.until + kReplaceWaits) return;
  if (one.kind == Strike::kReplace && one.is_lost) {
    one.stage = Stage::kReplacing;
    one.is_replaced = false;
    return;
  }
  come_back(one);
}

void Absences::come_back(Away& one) {
  const bool is_down = one.kind == Strike::kTakeAway || one.kind == Strike::kReplace || one.kind == Strike::kDiskFails;
  if (one.kind == Strike::kDiskFails) cluster_.faults(one.lfs).heal();
  if (is_down || !cluster_.lfs_runs(one.lfs)) cluster_.restart_lfs(one.lfs);
  one.stage = Stage::kReturning;
  one.returning_since = now();
  shared_.tell(fmt::format("lfs{} is back", one.lfs));
}

void Absences::heal() {
  left_ = 0;
  for (Away* const one : {&first_, &second_}) {
    const std::string name = fmt::format("lfs{}", one->lfs);
    cluster_.world().cut("server", name, Duration::zero());
    for (unsigned i = 0; i < cluster_.size(); ++i)
      if (i != one->lfs) cluster_.world().cut(fmt::format("lfs{}", i), name, Duration::zero());
    if (const auto actor = cluster_.world().find(name)) cluster_.world().stall(*actor, Duration::zero());
    if (one->stage == Stage::kAway) come_back(*one);
  }
}

// ---- the person ----------------------------------------------------------------------------------------------------

bool Absences::are_members(const proto::NodesReply& nodes) const {
  return nodes.nodes_size() == static_cast<int>(cluster_.size()) &&
         std::all_of(nodes.nodes().begin(), nodes.nodes().end(), [](const proto::NodeInfo& node) {
           return node.state() == kUp && node.view_state() == wire::kViewMember && node.lacking() == 0;
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
  bool are_all_back = begin > std::max(first_.returning_since, second_.returning_since) && are_members(nodes);
  for (Away* const one : {&first_, &second_}) {
    if (one->stage == Stage::kAway) one->is_lost = states_[one->lfs] == wire::kViewLost;
    are_all_back = are_all_back && (one->stage == Stage::kReturning || one->stage == Stage::kNobody);
  }
  if (!are_all_back || (first_.stage == Stage::kNobody && second_.stage == Stage::kNobody)) return;
  first_.stage = second_.stage = Stage::kNobody;
  shared_.tell("all are members");
}

void Absences::look(client::Session& session) {
  const Time begin = now();
  const auto nodes = session.call(proto::Nodes(), kPatience);
  if (!nodes) return;
  note(*nodes, begin);
  look_after(first_, session, *nodes);
  look_after(second_, session, *nodes);
  for (const proto::NodeInfo& node : nodes->nodes())
    if (node.state() == kUp && node.view_state() == wire::kViewRebuilding) rebuild(session, node);
}

// An LFS that is up and said to be lost ends, and nobody starts it again: the person says it of others only.
void Absences::look_after(Away& one, client::Session& session, const proto::NodesReply& nodes) {
  const bool is_up = std::any_of(nodes.nodes().begin(), nodes.nodes().end(), [&](const proto::NodeInfo& node) {
    return node.id() == one.lfs + 1 && node.state() == kUp;
  });
  if (one.stage == Stage::kAway && one.says_lost && !one.is_lost && !is_up) {
    proto::NodeLost lost;  // refused until its lease is over
    lost.set_node(one.lfs + 1);
    lost.set_force(&one == &second_);
    (void)session.call(std::move(lost), kPatience);
  }
  if (one.stage == Stage::kReplacing) replace(one, session);
}

// Again and again, until the server has heard it.
void Absences::replace(Away& one, client::Session& session) {
  const unsigned lfs = one.lfs;
  if (!std::exchange(one.is_replaced, true)) cluster_.replace_root(lfs);
  proto::ReplaceNode word;
  word.set_node(lfs + 1);
  word.set_uuid(cluster_.root_identity(lfs).uuid);
  const auto done = session.call(std::move(word), kPatience);
  if (!done || one.stage != Stage::kReplacing) return;
  shared_.tell(fmt::format("lfs{} has an empty root", lfs));
  cluster_.restart_lfs(lfs);
  one.stage = Stage::kReturning;
  one.returning_since = now();
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
    if (node.state() == kUp && node.view_state() == wire::kViewMember && node.lacking() == 0) continue;
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
