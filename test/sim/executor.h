// The executor of a simulated daemon: work takes time, during which its loop goes on, and ends in any order.
#pragma once

#include <deque>

#include "sim/world.h"

namespace pif::sim {

class SimExecutor final : public Executor {
 public:
  SimExecutor(World& world, ActorState& actor) : world_(world), actor_(actor) {}

  // At once, unless Options::work_max says that work takes time; then the actor must call run_done() at
  // Delivery::kWake.
  void submit(std::function<void()> work, std::function<void()> done) override;
  void drain() override { drop_all(); }
  void run_done();

  Time next() const;  // when work ends; kNever: none
  void finish_one();  // the world's: does the work that is due
  void drop_all();    // its process has ended

 private:
  struct Work {
    Time due;
    std::function<void()> work;
    std::function<void()> done;
  };
  World& world_;
  ActorState& actor_;
  std::deque<Work> works_;
  std::deque<std::function<void()>> done_;
};

}  // namespace pif::sim
