// Histories of files with parity, of which one LFS after another is lost, and comes back.
#include <fmt/format.h>

#include "pif/base/assert.h"
#include "simulate/absent_history.h"
#include "simulate/bevy_workload.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAskAfter = 65s;

class BeviesHistory final : public AbsentHistory {
 public:
  BeviesHistory(Plan plan, const std::function<void(const std::string&)>& tell)
      : AbsentHistory(std::move(plan), tell), contents_(oracle_) {
    for (const char* path : {"/a", "/b", "/c", "/d"}) paths_.add(path);
    shared_.contents = &contents_;
  }

 private:
  void first(sim::Actor& self) override;
  void work(sim::Actor& self, unsigned index) override;
  void last(sim::Actor& self) override;

  bool is_right(BevyWorkload& client, bool done, const char* what, std::size_t path, const std::string& when);
  void inspect(BevyWorkload& client, const std::string& when, bool appends);
  // While the LFS is lost: all that it had is read from parity, and more is written.
  void inspect_without(BevyWorkload& client, unsigned lfs, const std::string& when);

  Contents contents_;
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

// ---- when it does not strike any more ----

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

void BeviesHistory::inspect_without(BevyWorkload& client, unsigned lfs, const std::string& when) {
  inspect(client, when, world_.pick(2) == 0);
  const std::size_t fresh = paths_.add(fmt::format("/fresh{}", lfs));
  is_right(client, client.put(fresh, false), "put", fresh, when);
  is_right(client, client.read(fresh), "read", fresh, when);
  if (world_.pick(2) == 0) is_right(client, client.remove(fresh), "remove", fresh, when);
}

void BeviesHistory::last(sim::Actor& self) {
  BevyWorkload client(shared_, self, "last", plan_.seed + 2);
  self.pause(3s);
  if (!is_served(client) || !await_members(client, "at the end")) return;
  inspect(client, "after healing", true);
  for (const unsigned first : {0u, plan_.bevy}) {
    const unsigned lfs = first + static_cast<unsigned>(world_.pick(plan_.bevy));
    if (!drill(client, lfs, [&](const std::string& when) { inspect_without(client, lfs, when); })) return;
  }
  inspect(client, "after the drills", true);
  await_tidy(client);
  world_.leap(kAskAfter);  // LFSs ask what became of what was begun, and given up
  self.pause(4s);
  await_members(client, "before the disks are looked at");
}

}  // namespace

Outcome run_bevies_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  BeviesHistory history(Plan::for_bevies(seed), tell);
  return history.judge();
}

Outcome run_overlaps_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  BeviesHistory history(Plan::for_overlaps(seed), tell);
  return history.judge();
}

}  // namespace pif::simulate
