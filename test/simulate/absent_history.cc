#include "simulate/absent_history.h"

#include <fmt/format.h>

#include "pif/wire/values.h"
#include "pif/wire/views.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHealMax = 200s;  // from when all are there again until all are members
constexpr Duration kLoseMax = 60s;   // from when one is gone until it is lost
constexpr Duration kTidyMax = 60s;   // until what was removed is gone everywhere

}  // namespace

void AbsentHistory::begin_work() {
  if (plan_.bevy > 0) world_.spawn("person", [this](sim::Actor& self) { attend(self); });
}

// To the end of the history.
void AbsentHistory::attend(sim::Actor& self) {
  Teller person(shared_, self, "person", plan_.seed + 3);
  while (!person.connect())
    if (!self.pause(1s)) return;
  while (self.pause(1s)) absences_.look(person.client().session());
}

bool AbsentHistory::await_members(Teller& client, const std::string& when) {
  client::Session& session = client.client().session();
  const Time end = world_.now() + kHealMax;
  std::string trouble = " the server does not answer";
  while (world_.now() < end) {
    const auto nodes = session.call(proto::Nodes(), 5s);
    if (nodes && absences_.are_members(*nodes)) return true;
    // Its disk had failed, and it was lost and told to end a moment after all was made good.
    for (unsigned lfs = 0; lfs < cluster_.size(); ++lfs)
      if (!cluster_.lfs_runs(lfs)) cluster_.restart_lfs(lfs);
    if (!client.pause(1s)) return false;
    if (nodes && world_.now() >= end) trouble = absences_.trouble(session, *nodes);
  }
  accuse(fmt::format("{}: not all are members:{}", when, trouble));
  return false;
}

bool AbsentHistory::await_lost(Teller& client, unsigned lfs) {
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

void AbsentHistory::await_healed() {
  if (plan_.bevy == 0) return;
  world_.spawn_main("healer", [this](sim::Actor& self) {
    Teller client(shared_, self, "healer", plan_.seed + 4);
    self.pause(2s);
    if (!client.connect()) return accuse("after healing: nobody can connect");
    await_members(client, "after healing");
  });
  world_.run();
}

bool AbsentHistory::drill(Teller& client, unsigned lfs, const std::function<void(const std::string& when)>& inspect) {
  if (world_.pick(2) == 0)
    cluster_.kill_lfs(lfs);
  else
    cluster_.crash_lfs(lfs);
  if (!await_lost(client, lfs)) return false;
  inspect(fmt::format("while lfs{} is lost", lfs));
  cluster_.restart_lfs(lfs);
  return await_members(client, fmt::format("after lfs{} came back", lfs));
}

void AbsentHistory::await_tidy(Teller& client) {
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

}  // namespace pif::simulate
