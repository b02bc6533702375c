#include "simulate/nemesis.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulate/absences.h"
#include "simulate/restores.h"

namespace pif::simulate {

using namespace std::chrono_literals;

Nemesis::Nemesis(Shared& shared)
    : shared_(shared), plan_(shared.plan), world_(shared.cluster.world()), cluster_(shared.cluster) {
  if (!plan_.steps.empty()) at_ = world_.steps() + plan_.steps[0];
}

// Mostly short; sometimes so long that others have given up.
Duration Nemesis::some_time() {
  const auto longest = static_cast<std::uint64_t>(pick(5) == 0 ? Duration(20s).count() : Duration(500ms).count());
  return Duration(static_cast<std::int64_t>(pick(longest)));
}

void Nemesis::later(std::function<void()> what) { later_.emplace_back(world_.now() + some_time(), std::move(what)); }

// Each daemon that has ended, by whatever, is started again after a while.
void Nemesis::restart_dead() {
  if (!later_.empty()) return;
  if (!cluster_.server_runs())
    return later([this] {
      if (!cluster_.server_runs()) cluster_.restart_server();
    });
  if (shared_.absences != nullptr) return;  // which start their LFSs themselves
  for (unsigned i = 0; i < cluster_.size(); ++i) {
    if (!cluster_.lfs_runs(i))
      return later([this, i] {
        if (!cluster_.lfs_runs(i)) cluster_.restart_lfs(i);
      });
  }
}

void Nemesis::on_step() {
  for (std::size_t i = 0; i < later_.size(); ++i) {
    if (later_[i].first > world_.now()) continue;
    const auto due = std::move(later_[i].second);
    later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
    due();
    break;
  }
  restart_dead();
  if (shared_.absences != nullptr) shared_.absences->step();
  if (next_ >= plan_.strikes.size() || world_.steps() < at_ || world_.now() < calm_until_) return;
  if (takes_away(plan_.strikes[next_]) && !shared_.absences->may_begin(next_)) return;
  strike(plan_.strikes[next_++]);
  if (next_ < plan_.steps.size()) at_ = world_.steps() + plan_.steps[next_];
}

void Nemesis::strike(Strike kind) {
  shared_.tell(fmt::format("strike: {}", name_of(kind)));
  if (takes_away(kind)) return shared_.absences->begin(kind);
  const auto lfs = static_cast<unsigned>(pick(cluster_.size()));
  switch (kind) {
    case Strike::kKillServer:
    case Strike::kCutServer: return strike_server(kind);
    case Strike::kKillLfs:
    case Strike::kCutLfs: return strike_lfs(kind, lfs);
    case Strike::kFailOnce:
    case Strike::kFailSticky:
    case Strike::kFill:
    case Strike::kWriteBack:
    case Strike::kRot: return strike_disk(kind, lfs);
    case Strike::kBackUp:
    case Strike::kRestoreLfs:
    case Strike::kRestoreServer:
    case Strike::kWipe:
    case Strike::kSwap:
    case Strike::kRestoreSome: return put_back(kind, lfs);
    default: return strike_others(kind);
  }
}

void Nemesis::strike_server(Strike kind) {
  if (!cluster_.server_runs()) return;
  if (kind == Strike::kKillServer) return cluster_.kill_server();
  const bool only_durable = pick(2) == 0;
  cluster_.crash_server_at(pick(only_durable ? 5 : 30), only_durable);
}

void Nemesis::strike_lfs(Strike kind, unsigned lfs) {
  if (!cluster_.lfs_runs(lfs)) return;
  if (kind == Strike::kKillLfs) return cluster_.kill_lfs(lfs);
  const bool only_durable = pick(2) == 0;
  cluster_.crash_lfs_at(lfs, pick(only_durable ? 8 : 60), only_durable);
}

sim::Faults& Nemesis::some_faults() {
  const auto which = static_cast<unsigned>(pick(cluster_.size() + 1));
  return which == cluster_.size() ? cluster_.server_faults() : cluster_.faults(which);
}

void Nemesis::strike_disk(Strike kind, unsigned lfs) {
  // Not reads that end early: the storage seam promises that they do so only at the end of a file.
  const auto fault = pick(2) == 0 ? sim::Fault::kIoError : sim::Fault::kNoSpace;
  auto& faults = some_faults();
  switch (kind) {
    case Strike::kFailOnce: return faults.fail_at(pick(40), fault, false);
    case Strike::kFailSticky: faults.fail_at(pick(40), fault, true); return later([&faults] { faults.stop_failing(); });
    case Strike::kFill:
      cluster_.disk(lfs).set_capacity(cluster_.disk(lfs).used() + (1u << 20) + pick(8000));
      return later([this, lfs] { cluster_.disk(lfs).set_capacity(UINT64_MAX); });
    case Strike::kWriteBack:
      return cluster_.disk(lfs).write_back(512, [this](std::uint64_t limit) { return pick(limit); });
    default: return rot(lfs);
  }
}

void Nemesis::kill_one_of(const std::string& prefix) {
  const auto found = world_.find_all(prefix);
  if (!found.empty()) world_.kill(found[pick(found.size())]);
}

std::vector<sim::ActorId> Nemesis::who_may_stall() const {
  auto all = world_.find_all("");
  if (shared_.absences == nullptr) return all;
  std::erase_if(all, [this](sim::ActorId actor) { return world_.name_of(actor).starts_with("lfs"); });
  return all;
}

void Nemesis::cut(const std::string& one, const std::string& other, Duration time) {
  const bool is_of_server = one == "server" || other == "server";
  const bool is_of_lfs = one.starts_with("lfs") || other.starts_with("lfs");
  if (shared_.absences == nullptr || !is_of_server || !is_of_lfs) world_.cut(one, other, time);
}

void Nemesis::strike_others(Strike kind) {
  const auto all = who_may_stall();
  switch (kind) {
    case Strike::kKillClient: return kill_one_of("client");
    case Strike::kKillWorker: return kill_one_of("/");
    case Strike::kBreakLink: return world_.break_some_link();
    case Strike::kPartition: {
      const auto everybody = world_.find_all("");
      const auto name_of_one = [&] { return world_.name_of(everybody[pick(everybody.size())]); };
      const auto one = name_of_one();
      return cut(one, name_of_one(), some_time());
    }
    case Strike::kStall: return world_.stall(all[pick(all.size())], some_time());
    default: return;
  }
}

void Nemesis::put_back(Strike kind, unsigned lfs) {
  auto& restores = *shared_.restores;
  switch (kind) {
    case Strike::kBackUp: return restores.back_up();
    case Strike::kRestoreLfs: return restores.restore_lfs(lfs);
    case Strike::kWipe: return restores.wipe(lfs);
    case Strike::kSwap: return restores.swap(lfs, static_cast<unsigned>(pick(cluster_.size())));
    default: break;
  }
  // Whoever has heard of the lost part is there when the server comes back, as it waits for them for a while only.
  const bool is_server_old = kind == Strike::kRestoreSome ? restores.restore_some() : restores.restore_server();
  if (is_server_old) calm_until_ = world_.now() + 10s;
}

// A bit flips, or a block of one file lands in another (or elsewhere in the same).
void Nemesis::rot(unsigned lfs) {
  auto& disk = cluster_.disk(lfs);
  const auto paths = disk.files(cluster_.root(lfs) + "/data");
  if (paths.empty()) return;
  const auto& path = paths[pick(paths.size())];
  if (pick(2) == 0) {
    return disk.edit(path, [bit = pick(1u << 20)](std::vector<std::byte>& bytes) {
      if (!bytes.empty()) bytes[bit / 8 % bytes.size()] ^= std::byte{1} << (bit % 8);
    });
  }
  std::vector<std::byte> block;
  disk.edit(paths[pick(paths.size())], [&](std::vector<std::byte>& bytes) {
    const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(bytes.size(), 512));
    if (block.empty()) block.assign(bytes.begin(), bytes.begin() + size);
  });
  disk.edit(path, [&, at = pick(4) * 512](std::vector<std::byte>& bytes) {
    for (std::size_t i = 0; i < block.size() && at + i < bytes.size(); ++i) bytes[at + i] = block[i];
  });
}

void Nemesis::heal() {
  next_ = plan_.strikes.size();
  later_.clear();
  if (shared_.absences != nullptr) shared_.absences->heal();
  cluster_.server_faults().heal();
  if (!cluster_.server_runs()) cluster_.restart_server();
  for (unsigned i = 0; i < cluster_.size(); ++i) {
    // What a failed call has put out of service is served again after a start only.
    const bool failed = cluster_.faults(i).has_failed();
    cluster_.faults(i).heal();
    cluster_.disk(i).set_capacity(UINT64_MAX);
    if (failed || !cluster_.lfs_runs(i)) cluster_.restart_lfs(i);
  }
}

}  // namespace pif::simulate
