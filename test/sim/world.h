// The simulated world: server, LFSs, clients and workers as actors of one process. Each actor has a stack of its own,
// and one runs at a time; the seed decides who goes on next, how long packets travel, and what every actor's entropy
// gives. Time is virtual: it jumps to the next event when nobody can go on. So a test of a whole system takes no time,
// and the same seed gives the same history.
//
//   sim::World world(seed);
//   world.spawn("server", [](sim::Actor& self) { ... self.messenger().receive(...) ... });
//   world.spawn_main("client", [](sim::Actor& self) { ... REQUIRE(...) ... });
//   world.run();   // until all main actors have ended; throws what one of them threw
//
// Inside actors, everything that waits must wait in messenger().receive() or pause().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/executor.h"
#include "pif/daemon/fiber.h"
#include "pif/net/messenger.h"

namespace pif::sim {

class World;
struct ActorState;
struct Switchboard;

// Nobody can go on, too many steps, or a killed actor that does not end. what() says who waits for what.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  Duration delay_min = std::chrono::microseconds(20);  // of a packet
  Duration delay_max = std::chrono::microseconds(2000);
  double drop = 0;       // probability that a packet is lost (ZeroMQ-like routes only; a Unix socket loses nothing)
  double duplicate = 0;  // probability that it comes twice (the same)
  double reorder = 0;    // probability that it overtakes, or is overtaken by, others of its connection (the same)
  Duration reorder_max = std::chrono::seconds(2);  // by so much
  Duration work_max = Duration::zero();            // of an executor's work; zero: done at once
  std::uint64_t steps_max = 2'000'000;
};

struct Who {
  std::uint32_t uid = 1000;
  std::vector<std::uint32_t> gids = {1000};
};

using ActorId = std::uint32_t;

// What an actor has of the world.
class Actor {
 public:
  Actor(World& world, ActorState& state) : world_(world), state_(state) {}
  const std::string& name() const;
  ActorId id() const;
  net::Messenger& messenger();  // reached by others as Endpoints.unix, .ipc or .tcp = "sim:NAME"
  Entropy& entropy();
  Executor& executor();  // inline, unless Options::work_max says otherwise
  void run_done();       // at Delivery::kWake: calls back for work that the executor has done
  Clock& clock();
  World& world() { return world_; }
  // Lets virtual time pass without receiving anything. False if the actor was killed meanwhile.
  bool pause(Duration duration);

 private:
  World& world_;
  ActorState& state_;
};

class World {
 public:
  using Body = std::function<void(Actor&)>;

  explicit World(std::uint64_t seed, Options options = {});
  ~World();  // kills everybody
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Starts an actor; it runs when the seed picks it. No two living actors may share a name. `parent`: ends with it.
  ActorId spawn(const std::string& name, Body body, Who who = {}, std::optional<ActorId> parent = {});
  // The same; run() waits for it to end.
  ActorId spawn_main(const std::string& name, Body body, Who who = {});

  // Steps until all main actors have ended. Throws Failure, or what an actor threw.
  void run();
  // Asked before every step; may kill and spawn. Gets the number of the step.
  void on_step(std::function<void(std::uint64_t step)> hook) { hook_ = std::move(hook); }

  // Ends an actor as kill -9 would: from now on nothing it sends arrives and receive() fails; peers see it go. It
  // has ended when this returns; an actor that kills itself goes on to where it waits next, and ends there.
  void kill(ActorId actor);
  // The same, but it ends at the next step: for what happens in the middle of a call of its own or for it.
  void doom(ActorId actor);
  // Stops it (as SIGSTOP does) until then: it handles nothing, and its time passes.
  void stall(ActorId actor, Duration duration);
  // Until then nothing passes between the two over ZeroMQ-like routes, in either direction.
  void cut(const std::string& one, const std::string& other, Duration duration);
  bool is_cut(const std::string& one, const std::string& other) const;
  // What passes between the two comes once, and in order, by whatever route; it may be lost.
  void keep_order(const std::string& one, const std::string& other) { orderly_.insert(std::minmax(one, other)); }
  bool keeps_order(const std::string& one, const std::string& other) const;
  // Breaks one of the connections (not ZeroMQ-like: those mend themselves), as the seed picks: both ends see it close.
  void break_some_link();
  void kill_all();
  bool is_alive(ActorId actor) const;
  bool was_killed(ActorId actor) const;
  std::optional<ActorId> find(const std::string& name) const;  // alive

  std::vector<ActorId> find_all(const std::string& prefix) const;  // alive, by their names' beginning
  const std::string& name_of(ActorId actor) const;
  // Everybody sleeps for so long, and wakes up at once.
  void leap(Duration duration) { now_ += duration; }

  // A connected pair of ends, to adopt().
  std::pair<Handle, Handle> make_pair();

  std::uint64_t seed() const { return seed_; }
  Time now() const { return now_; }
  std::uint64_t steps() const { return steps_; }
  // Of everything that was delivered, to whom and when.
  std::uint64_t history() const { return history_; }
  Options& options() { return options_; }
  // A random number below `limit`, from the world's seed.
  std::uint64_t pick(std::uint64_t limit);
  bool chance(double probability);
  // Who waits for what.
  std::string dump() const;

 private:
  friend class Actor;
  friend class SimMessenger;
  friend struct Switchboard;

  ActorId start(const std::string& name, Body body, Who who, std::optional<ActorId> parent, bool is_main);
  void live(ActorState& actor, Body body);
  void resume(ActorState& actor);  // lets it go on until it waits or ends
  void yield(ActorState& actor);   // called by the actor: waits
  void end(ActorState& actor);
  void end_doomed();
  Time ready_at(const ActorState& actor) const;  // when the actor can go on
  Time work_at(const ActorState& actor) const;   // when work of its executor ends
  Time next_event() const;
  void step();
  void note(std::uint64_t what);
  void rethrow();
  bool mains_ended() const;

  const std::uint64_t seed_;
  Options options_;
  std::mt19937_64 random_;
  Time now_ = Time(std::chrono::seconds(1000));
  std::uint64_t steps_ = 0;
  std::uint64_t history_ = 0x9e3779b97f4a7c15;
  std::function<void(std::uint64_t)> hook_;
  ActorState* running_ = nullptr;
  daemon::FiberStacks stacks_{1u << 20};
  std::vector<std::unique_ptr<ActorState>> actors_;  // by id; also those that have ended
  std::vector<ActorState*> living_;                  // those that have not
  std::vector<ActorId> doomed_;
  std::vector<std::pair<ActorState*, bool>> ready_;  // what a step can pick: an actor, or work of its executor
  std::map<std::pair<std::string, std::string>, Time> cuts_;
  std::set<std::pair<std::string, std::string>> orderly_;
  std::unique_ptr<Switchboard> links_;
  std::exception_ptr failure_;
};

}  // namespace pif::sim
