#include "sim/world.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

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

struct World::Baton {
  std::mutex mutex;
  std::condition_variable passed;
};

// ---- actor ----

const std::string& Actor::name() const { return state_.name; }
ActorId Actor::id() const { return state_.id; }
net::Messenger& Actor::messenger() { return state_.messenger; }
Entropy& Actor::entropy() { return state_.entropy; }
Executor& Actor::executor() { return state_.executor; }
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
    : seed_(seed),
      options_(options),
      random_(seed),
      baton_(std::make_unique<Baton>()),
      links_(std::make_unique<Switchboard>(*this)) {}

World::~World() {
  for (std::size_t i = actors_.size(); i-- > 0;) kill(static_cast<ActorId>(i));  // by index: an end may start others
  for (auto& actor : actors_) actor->thread.join();
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
  actor.thread = std::thread([this, &actor, run = std::move(body)]() mutable { thread_of(actor, std::move(run)); });
  return id;
}

void World::thread_of(ActorState& actor, Body body) {
  {
    std::unique_lock lock(baton_->mutex);
    baton_->passed.wait(lock, [&] { return actor.has_baton; });
  }
  actor.started = true;
  if (!actor.killed) {
    try {
      Actor self(*this, actor);
      body(self);
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }
  body = nullptr;  // what it captured ends while we still have the baton
  end(actor);
  const std::lock_guard lock(baton_->mutex);
  actor.has_baton = false;
  baton_->passed.notify_all();
}

void World::end(ActorState& actor) {
  actor.messenger.close_all();
  actor.ended = true;
  note(mix(actor.id, 0xdead));
  for (std::size_t i = 0; i < actors_.size(); ++i)
    if (actors_[i]->parent == actor.id) kill(actors_[i]->id);
}

void World::resume(ActorState& actor) {
  std::unique_lock lock(baton_->mutex);
  actor.has_baton = true;
  baton_->passed.notify_all();
  baton_->passed.wait(lock, [&] { return !actor.has_baton; });
}

void World::yield(ActorState& actor) {
  std::unique_lock lock(baton_->mutex);
  actor.has_baton = false;
  baton_->passed.notify_all();
  baton_->passed.wait(lock, [&] { return actor.has_baton; });
}

void World::kill(ActorId id) {
  auto& actor = *actors_.at(id);
  if (actor.ended || actor.killed) return;
  actor.killed = true;
  actor.messenger.close_all();
  resume(actor);  // it never waits again, so it is at its end afterwards
  if (!actor.ended) throw Failure(fmt::format("{} was killed and still waits", actor.name));
}

bool World::is_alive(ActorId id) const { return !actors_.at(id)->ended && !actors_.at(id)->killed; }
bool World::was_killed(ActorId id) const { return actors_.at(id)->killed; }

std::optional<ActorId> World::find(const std::string& name) const {
  for (const auto& actor : actors_)
    if (actor->name == name && is_alive(actor->id)) return actor->id;
  return std::nullopt;
}

std::pair<Handle, Handle> World::make_pair() { return links_->make_pair(); }

std::uint64_t World::pick(std::uint64_t limit) { return limit <= 1 ? 0 : random_() % limit; }

bool World::chance(double probability) {
  return probability > 0 && static_cast<double>(random_() >> 11) * 0x1.0p-53 < probability;
}

void World::note(std::uint64_t what) {
  history_ = mix(history_, mix(what, static_cast<std::uint64_t>(now_.time_since_epoch().count())));
}

bool World::is_ready(const ActorState& actor) const {
  if (actor.ended) return false;
  if (!actor.started || actor.deadline <= now_) return true;
  return !actor.pausing && (actor.woken.load() || actor.messenger.has_delivery());
}

Time World::next_event() const {
  Time out = kNever;
  for (const auto& actor : actors_) {
    if (actor->ended) continue;
    out = std::min(out, actor->deadline);
    if (!actor->pausing) out = std::min(out, actor->messenger.next_arrival());
  }
  return out;
}

bool World::mains_ended() const {
  return std::all_of(actors_.begin(), actors_.end(), [](const auto& actor) { return actor->ended || !actor->is_main; });
}

void World::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void World::step() {
  ++steps_;
  if (hook_) hook_(steps_);
  std::vector<ActorState*> ready;
  for (;;) {
    for (const auto& actor : actors_)
      if (is_ready(*actor)) ready.push_back(actor.get());
    if (!ready.empty()) break;
    const Time next = next_event();
    if (next == kNever) throw Failure(fmt::format("deadlock (seed {}): everybody waits for ever\n{}", seed_, dump()));
    now_ = std::max(now_, next);
  }
  now_ += kStepTime;
  ActorState& chosen = *ready[pick(ready.size())];
  note(chosen.id);
  resume(chosen);
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
