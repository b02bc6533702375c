#include "sim/world.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "sim/links.h"

namespace pif::sim {
namespace {

constexpr Duration kStepTime = std::chrono::microseconds(1);  // so that polling in a loop lets time pass

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a ^ (b + 0x9e3779b97f4a7c15 + (a << 6) + (a >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t out = 1469598103934665603ULL;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return out;
}

}  // namespace

// ---- actor ----

const std::string& Actor::name() const { return state_.name; }
ActorId Actor::id() const { return state_.id; }
net::Messenger& Actor::messenger() { return state_.messenger; }
Entropy& Actor::entropy() { return state_.entropy; }
Executor& Actor::executor() { return state_.executor; }
void Actor::run_done() { state_.executor.run_done(); }
Clock& Actor::clock() { return state_.messenger.clock(); }

bool Actor::pause(Duration duration) {
  if (state_.killed) return false;
  state_.deadline = world_.now() + duration;
  state_.pausing = true;
  world_.yield(state_);
  state_.pausing = false;
  return !state_.killed;
}

// ---- world ----

World::World(std::uint64_t seed, Options options)
    : seed_(seed), options_(options), random_(seed), links_(std::make_unique<Switchboard>(*this)) {
  // Actors share a thread, so that a client's calls would seem to be around what daemons do meanwhile.
  set_assertion_handler_if_none(&end_process);
}

World::~World() { kill_all(); }

void World::kill_all() {
  end_doomed();
  for (std::size_t i = actors_.size(); i-- > 0;) kill(static_cast<ActorId>(i));  // by index: an end may start others
}

ActorId World::spawn(const std::string& name, Body body, Who who, std::optional<ActorId> parent) {
  return start(name, std::move(body), std::move(who), parent, false);
}

ActorId World::spawn_main(const std::string& name, Body body, Who who) {
  return start(name, std::move(body), std::move(who), {}, true);
}

ActorId World::start(const std::string& name, Body body, Who who, std::optional<ActorId> parent, bool is_main) {
  if (find(name)) throw Failure(fmt::format("two actors named {}", name));
  const auto id = static_cast<ActorId>(actors_.size());
  actors_.push_back(std::make_unique<ActorState>(*this, id, name, std::move(who), mix(seed_, mix(id, hash_of(name)))));
  auto& actor = *actors_.back();
  actor.parent = parent;
  actor.is_main = is_main;
  living_.push_back(&actor);
  actor.fiber = std::make_unique<daemon::Fiber>(
      stacks_, [this, &actor, run = std::move(body)]() mutable { live(actor, std::move(run)); });
  return id;
}

void World::live(ActorState& actor, Body body) {
  actor.started = true;
  if (!actor.killed) {
    try {
      Actor self(*this, actor);
      body(self);
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }
  body = nullptr;
  end(actor);
}

void World::end(ActorState& actor) {
  actor.messenger.close_all();
  actor.ended = true;
  actor.executor.drop_all();
  std::erase(living_, &actor);
  note(mix(actor.id, 0xdead));
  for (std::size_t i = 0; i < actors_.size(); ++i)
    if (actors_[i]->parent == actor.id) kill(actors_[i]->id);
}

void World::resume(ActorState& actor) {
  ActorState* const before = std::exchange(running_, &actor);
  actor.fiber->resume();
  running_ = before;
}

void World::yield(ActorState& actor) { actor.fiber->suspend(); }

void World::kill(ActorId id) {
  auto& actor = *actors_.at(id);
  if (actor.ended || actor.killed) return;
  actor.killed = true;
  actor.messenger.close_all();
  if (running_ == &actor) return;  // it goes on to where it waits next, cut off from everybody
  resume(actor);                   // it never waits again, so it is at its end afterwards
  if (!actor.ended) throw Failure(fmt::format("{} was killed and still waits", actor.name));
}

void World::doom(ActorId id) {
  auto& actor = *actors_.at(id);
  if (actor.ended || actor.killed) return;
  actor.killed = true;
  actor.messenger.close_all();
  doomed_.push_back(id);
}

void World::end_doomed() {
  for (const ActorId id : std::exchange(doomed_, {})) {
    auto& actor = *actors_[id];
    if (!actor.ended) resume(actor);
    if (!actor.ended) throw Failure(fmt::format("{} was killed and still waits", actor.name));
  }
}

void World::stall(ActorId id, Duration duration) { actors_.at(id)->stalled = now_ + duration; }

void World::cut(const std::string& one, const std::string& other, Duration duration) {
  cuts_[std::minmax(one, other)] = now_ + duration;
}

bool World::is_cut(const std::string& one, const std::string& other) const {
  const auto found = cuts_.find(std::minmax(one, other));
  return found != cuts_.end() && found->second > now_;
}

bool World::keeps_order(const std::string& one, const std::string& other) const {
  return !orderly_.empty() && orderly_.contains(std::minmax(one, other));
}

void World::break_some_link() {
  ActorState* actor = living_.empty() ? nullptr : living_[pick(living_.size())];
  if (actor != nullptr) actor->messenger.break_some();
}

bool World::is_alive(ActorId id) const { return !actors_.at(id)->ended && !actors_.at(id)->killed; }
const std::string& World::name_of(ActorId id) const { return actors_.at(id)->name; }
bool World::was_killed(ActorId id) const { return actors_.at(id)->killed; }

std::optional<ActorId> World::find(const std::string& name) const {
  for (const ActorState* actor : living_)
    if (actor->name == name && !actor->killed) return actor->id;
  return std::nullopt;
}

std::vector<ActorId> World::find_all(const std::string& prefix) const {
  std::vector<ActorId> out;
  for (const ActorState* actor : living_)
    if (actor->name.starts_with(prefix) && !actor->killed) out.push_back(actor->id);
  return out;
}

std::pair<Handle, Handle> World::make_pair() { return links_->make_pair(); }

std::uint64_t World::pick(std::uint64_t limit) { return limit <= 1 ? 0 : random_() % limit; }

bool World::chance(double probability) {
  return probability > 0 && static_cast<double>(random_() >> 11) * 0x1.0p-53 < probability;
}

void World::note(std::uint64_t what) {
  history_ = mix(history_, mix(what, static_cast<std::uint64_t>(now_.time_since_epoch().count())));
}

Time World::ready_at(const ActorState& actor) const {
  if (!actor.started || actor.pausing) return std::max(actor.stalled, actor.started ? actor.deadline : Time{});
  const Time heard = actor.woken.load() ? Time{} : actor.messenger.next_arrival();
  return std::max(actor.stalled, std::min(actor.deadline, heard));
}

Time World::work_at(const ActorState& actor) const { return std::max(actor.stalled, actor.executor.next()); }

bool World::mains_ended() const {
  return std::none_of(living_.begin(), living_.end(), [](const auto* actor) { return actor->is_main; });
}

void World::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

Time World::next_event() const {
  Time next = kNever;
  for (const ActorState* actor : living_) next = std::min({next, ready_at(*actor), work_at(*actor)});
  return next;
}

void World::step() {
  ++steps_;
  end_doomed();
  if (hook_) hook_(steps_);
  end_doomed();
  if (mains_ended()) return;  // the hook killed the last of them, and perhaps everybody else is dead
  const Time next = next_event();
  if (next == kNever) throw Failure(fmt::format("deadlock (seed {}): everybody waits for ever\n{}", seed_, dump()));
  now_ = std::max(now_, next);
  ready_.clear();
  for (ActorState* actor : living_) {
    if (work_at(*actor) <= now_) ready_.push_back({actor, true});
    if (ready_at(*actor) <= now_) ready_.push_back({actor, false});
  }
  now_ += kStepTime;
  const auto [chosen, works] = ready_[pick(ready_.size())];
  note(chosen->id);
  if (works)
    chosen->executor.finish_one();
  else
    resume(*chosen);
}

void World::run() {
  const std::uint64_t until = steps_ + options_.steps_max;
  while (!mains_ended()) {
    if (steps_ == until) throw Failure(fmt::format("no end after {} steps (seed {})\n{}", steps_, seed_, dump()));
    step();
    rethrow();
  }
}

std::string World::dump() const {
  std::string out = fmt::format("at {:.6f} s:\n", std::chrono::duration<double>(now_.time_since_epoch()).count());
  for (const auto& actor : actors_) {
    if (actor->ended) continue;
    const auto wait = std::chrono::duration<double>(actor->deadline - now_).count();
    out += fmt::format("  {} {}{}{}{}\n", actor->name, actor->started ? "" : "not started; ",
                       actor->deadline == kNever ? "waits for ever" : fmt::format("waits {:.6f} s", wait),
                       actor->messenger.has_delivery() ? ", has a packet" : "", actor->woken.load() ? ", woken" : "");
  }
  return out;
}

}  // namespace pif::sim
