// Who makes things go wrong: strikes, at the steps that the plan says, against whom the world's seed picks.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/shared.h"

namespace pif::simulate {

class Nemesis {
 public:
  explicit Nemesis(Shared& shared);

  void on_step();
  // No more strikes; every disk and store works again, all daemons run.
  void heal();

 private:
  void strike(Strike kind);
  void strike_server(Strike kind);
  void strike_lfs(Strike kind, unsigned lfs);
  void strike_disk(Strike kind, unsigned lfs);
  void strike_others(Strike kind);
  void put_back(Strike kind, unsigned lfs);
  // Of histories with bevies no LFS: these are away one at a time.
  std::vector<sim::ActorId> who_may_stall() const;
  void cut(const std::string& one, const std::string& other, Duration time);
  void kill_one_of(const std::string& prefix);
  void rot(unsigned lfs);
  void later(std::function<void()> what);
  void restart_dead();
  sim::Faults& some_faults();
  Duration some_time();
  std::uint64_t pick(std::uint64_t limit) { return world_.pick(limit); }

  Shared& shared_;
  const Plan& plan_;
  sim::World& world_;
  sim::Cluster& cluster_;
  std::size_t next_ = 0;
  Time calm_until_{};     // nothing strikes before
  std::uint64_t at_ = 0;  // step of the next strike
  std::vector<std::pair<Time, std::function<void()>>> later_;
};

}  // namespace pif::simulate
