// Histories of files with parity, of which one LFS after another is lost, and comes back.
#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/wire/values.h"
#include "pif/wire/views.h"
#include "simulate/absences.h"
#include "simulate/bevy_workload.h"
#include "simulate/history_base.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHealMax = 200s;  // from when all are there again until all are members
constexpr Duration kLoseMax = 60s;   // from when one is gone until it is lost
constexpr Duration kTidyMax = 60s;   // until what was removed is gone everywhere
constexpr Duration kAskAfter = 65s;

class BeviesHistory final : public History {
 public:
  BeviesHistory(Plan plan, const std::function<void(const std::string&)>& tell)
      : History(std::move(plan), tell), contents_(oracle_), absences_(shared_) {
    for (const char* path : {"/a", "/b", "/c", "/d"}) paths_.add(path);
    shared_.contents = &contents_;
    shared_.absences = &absences_;
  }

  Outcome judge() {
    Outcome out = run();
    out.losses = absences_.losses();
    return out;
  }

 private:
  void first(sim::Actor& self) override;
  void work(sim::Actor& self, unsigned index) override;
  void begin_work() override;
  void await_healed() override;
  void last(sim::Actor& self) override;

  void attend(sim::Actor& self);
  bool await_members(BevyWorkload& client, const char* when);
  bool await_lost(BevyWorkload& client, unsigned lfs);
  bool is_right(BevyWorkload& client, bool done, const char* what, std::size_t path, const std::string& when);
  void inspect(BevyWorkload& client, const std::string& when, bool appends);
  // The LFS is lost: all that it had is read from parity, and more is written. Then it comes back.
  bool drill(BevyWorkload& client, unsigned lfs);
  void inspect_status(BevyWorkload& client);

  Contents contents_;
  Absences absences_;
};

// ---- while it strikes ----

void BeviesHistory::first(sim::Actor& self) {
  BevyWorkload client(shared_, self, "first", plan_.seed + 1);
  if (!is_served(client)) return;
  for (std::size_t path = 0; path < 3; ++path) client.put(path, false);
}

void BeviesHistory::work(sim::Actor& self, unsigned index) {
  BevyWorkload client(shared_, self, self.name(), plan_.seed * 31 + index);
  if (client.connect()) client.run(plan_.operations);
}

void BeviesHistory::begin_work() {
  world_.spawn("person", [this](sim::Actor& self) { attend(self); });
}

// To the end of the history.
void BeviesHistory::attend(sim::Actor& self) {
  Teller person(shared_, self, "person", plan_.seed + 3);
  while (!person.connect())
    if (!self.pause(1s)) return;
  while (self.pause(1s)) absences_.look(person.client().session());
}

// ---- when it does not strike any more ----

bool BeviesHistory::await_members(BevyWorkload& client, const char* when) {
  client::Session& session = client.client().session();
  const Time end = world_.now() + kHealMax;
  std::string trouble = " the server does not answer";
  while (world_.now() < end) {
    const auto nodes = session.call(proto::Nodes(), 5s);
    if (nodes && absences_.are_members(*nodes)) return true;
    if (!client.pause(1s)) return false;
    if (nodes && world_.now() >= end) trouble = absences_.trouble(session, *nodes);
  }
  accuse(fmt::format("{}: not all are members:{}", when, trouble));
  return false;
}

bool BeviesHistory::await_lost(BevyWorkload& client, unsigned lfs) {
  client::Session& session = client.client().session();
  for (const Time end = world_.now() + kLoseMax; world_.now() < end;) {
    const auto nodes = session.call(proto::Nodes(), 5s);
    for (int i = 0; nodes && i < nodes->nodes_size(); ++i)
      if (nodes->nodes(i).id() == lfs + 1 && nodes->nodes(i).view_state() == wire::kViewLost) return true;
    if (!client.pause(1s)) return false;
  }
  accuse(fmt::format("lfs{} is gone, and is not declared lost", lfs));
  return false;
}

void BeviesHistory::await_healed() {
  world_.spawn_main("healer", [this](sim::Actor& self) {
    BevyWorkload client(shared_, self, "healer", plan_.seed + 4);
    self.pause(2s);
    if (!client.connect()) return accuse("after healing: nobody can connect");
    await_members(client, "after healing");
  });
  world_.run();
}

bool BeviesHistory::is_right(BevyWorkload& client, bool done, const char* what, std::size_t path,
                             const std::string& when) {
  if (done) return true;
  const Error& why = client.last_error();
  if (why.code != Code::kNotFound || !why.node.empty())
    accuse(fmt::format("{}: {} {}: {}", when, what, paths_.text(path), why.to_string()));
  return false;
}

void BeviesHistory::inspect(BevyWorkload& client, const std::string& when, bool appends) {
  for (std::size_t path = 0, count = paths_.size(); path < count; ++path) {
    if (!is_right(client, client.read(path), "read", path, when)) continue;
    is_right(client, client.read_one(path), "read a record of", path, when);
    if (!appends) continue;
    is_right(client, client.append(path), "append to", path, when);
    is_right(client, client.read(path), "read again", path, when);
  }
}

bool BeviesHistory::drill(BevyWorkload& client, unsigned lfs) {
  const std::string when = fmt::format("while lfs{} is lost", lfs);
  if (world_.pick(2) == 0)
    cluster_.kill_lfs(lfs);
  else
    cluster_.crash_lfs(lfs);
  if (!await_lost(client, lfs)) return false;
  inspect(client, when, world_.pick(2) == 0);
  const std::size_t fresh = paths_.add(fmt::format("/fresh{}", lfs));
  is_right(client, client.put(fresh, false), "put", fresh, when);
  is_right(client, client.read(fresh), "read", fresh, when);
  if (world_.pick(2) == 0) is_right(client, client.remove(fresh), "remove", fresh, when);
  cluster_.restart_lfs(lfs);
  return await_members(client, fmt::format("after lfs{} came back", lfs).c_str());
}

void BeviesHistory::last(sim::Actor& self) {
  BevyWorkload client(shared_, self, "last", plan_.seed + 2);
  self.pause(3s);
  if (!is_served(client) || !await_members(client, "at the end")) return;
  inspect(client, "after healing", true);
  for (const unsigned first : {0u, plan_.bevy})
    if (!drill(client, first + static_cast<unsigned>(world_.pick(plan_.bevy)))) return;
  inspect(client, "after the drills", true);
  inspect_status(client);
  world_.leap(kAskAfter);  // LFSs ask what became of what was begun, and given up
  self.pause(4s);
  await_members(client, "before the disks are looked at");
}

void BeviesHistory::inspect_status(BevyWorkload& client) {
  for (const Time end = world_.now() + kTidyMax;;) {
    if (!client.pause(1s)) return;
    const auto status = client.client().status();
    const bool is_over = world_.now() >= end;
    if (!status && is_over) return accuse("at the end: " + status.error().to_string());
    if (status && status->pending == 0 && status->doomed == 0) return;
    if (is_over)
      return accuse(
          fmt::format("at the end: {} files are still pending, {} still doomed", status->pending, status->doomed));
  }
}

}  // namespace

Outcome run_bevies_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  BeviesHistory history(Plan::for_bevies(seed), tell);
  return history.judge();
}

}  // namespace pif::simulate
