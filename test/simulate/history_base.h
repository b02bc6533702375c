// What all kinds of histories have in common: a file system lives, is struck, healed, and judged.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "simulate/history.h"
#include "simulate/teller.h"

namespace pif::simulate {

class History {
 public:
  History(Plan plan, const std::function<void(const std::string&)>& tell)
      : plan_(std::move(plan)),
        tell_(tell),
        shared_{plan_, cluster_, oracle_, paths_, [this](const std::string& line) { say(line); }},
        world_(plan_.seed, plan_.world),
        cluster_(world_, plan_.lfss, options_of(plan_)) {
    shared_.may_seem_corrupt = plan_.rots;
  }
  virtual ~History() = default;

  Outcome run();

 protected:
  // What clients do, each in an actor of its own: before anything strikes, while it strikes, and when all is healed.
  virtual void first(sim::Actor& self) = 0;
  virtual void work(sim::Actor& self, unsigned client) = 0;
  virtual void last(sim::Actor& self) = 0;
  // Called in between: what begins when clients do, and what waits for the end of it when nothing strikes any more.
  virtual void begin_work() {}
  virtual void await_healed() {}
  // A person, who decides what becomes of parts that are not what they were.
  virtual void rescue(sim::Actor&) {}
  // Files that LFSs may have though no name does.
  virtual bool may_be_left(std::uint64_t) const { return false; }
  virtual void look_at_kept(const std::set<std::uint64_t>&) {}

  void say(const std::string& line);
  void accuse(const std::string& text) { oracle_.accuse(text); }
  // A client with all LFSs up; false: accused.
  bool is_served(Teller& client);

 private:
  static sim::ClusterOptions options_of(const Plan& plan) {
    const bool has_bevies = plan.bevy > 0;
    return {true, plan.log_bytes, plan.bevy, has_bevies, has_bevies, plan.is_far};
  }
  void set_network(double drop, double duplicate, double reorder);
  // Everything runs, then clients work while the nemesis strikes.
  void live();
  // Nothing strikes any more, and what was left behind is given up.
  void settle();
  // What is on the disks is whole, and nothing is there that nobody owns.
  void look_at_disks();
  void look_at_lfs(unsigned index, const std::set<std::string>& files, std::set<std::uint64_t>& kept);

 protected:
  const Plan plan_;
  const std::function<void(const std::string&)>& tell_;
  Oracle oracle_{[this](const std::string& line) { say(line); }};
  Paths paths_;
  Shared shared_;
  sim::World world_;
  sim::Cluster cluster_;
};

}  // namespace pif::simulate
