// Worker processes of the simulated world: a program is a function, a process is an actor.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "pif/lfs/lfs.h"
#include "sim/world.h"

namespace pif::sim {

// What may be started, by its absolute path. `connection` is the end of the socket it was born with; what the function
// returns is the exit code.
struct Programs {
  using Main = std::function<int(Actor& self, const lfs::Spawner::Order& order, Handle connection)>;
  std::map<std::string, Main> mains;
  std::set<std::string> missing_at;  // LFSs that have none of them, unless it was brought
};

class SimSpawner final : public lfs::Spawner {
 public:
  // Of one LFS: the processes end with `parent`. programs outlives the world's actors.
  SimSpawner(World& world, Actor& parent, const Programs& programs)
      : world_(world), parent_(parent), programs_(programs) {}

  Result<Started> start(const Order& order) override;
  Begun begun(ProcessId process) override { return lacking_.contains(process) ? Begun::kLacks : Begun::kRuns; }
  void kill(ProcessId process) override;
  std::optional<lfs::WorkerExit> exited(ProcessId process) override;

 private:
  World& world_;
  Actor& parent_;
  const Programs& programs_;
  std::map<ProcessId, std::shared_ptr<int>> running_;  // exit codes
  std::set<ProcessId> lacking_;
};

}  // namespace pif::sim
