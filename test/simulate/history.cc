#include "simulate/history_base.h"

#include <exception>
#include <stdexcept>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/kv/value.h"
#include "simulate/nemesis.h"

namespace pif::simulate {

using namespace std::chrono_literals;

Outcome History::run() {
  say(plan_.to_string());
  // What the code asserts is a violation in this history, and not the end of all.
  set_assertion_handler([](const BrokenAssertion& broken) { throw std::logic_error(broken.to_string()); });
  try {
    live();
    settle();
    if (plan_.restores) {
      world_.spawn_main("person", [this](sim::Actor& self) { rescue(self); });
      world_.run();
      settle();
    }
    world_.spawn_main("last", [this](sim::Actor& self) { last(self); });
    world_.run();
    look_at_disks();
  } catch (const std::exception& failure) {
    oracle_.accuse(failure.what());
  }
  world_.kill_all();  // what actors use goes before the world does
  oracle_.check_at_the_end(paths_);
  return {world_.history(),       oracle_.violations(), shared_.operations,      shared_.failed,
          oracle_.records_seen(), world_.steps(),       oracle_.names_too_hard()};
}

void History::say(const std::string& line) {
  if (tell_)
    tell_(fmt::format("{:12.6f} {:6} {}", std::chrono::duration<double>(world_.now().time_since_epoch()).count(),
                      world_.steps(), line));
}

void History::set_network(double drop, double duplicate, double reorder) {
  world_.options().drop = drop;
  world_.options().duplicate = duplicate;
  world_.options().reorder = reorder;
}

void History::live() {
  set_network(0, 0, 0);
  world_.spawn_main("first", [this](sim::Actor& self) { first(self); });
  world_.run();
  set_network(plan_.world.drop, plan_.world.duplicate, plan_.world.reorder);
  Nemesis nemesis(shared_);
  world_.on_step([&](std::uint64_t) { nemesis.on_step(); });
  begin_work();
  for (unsigned i = 0; i < plan_.clients; ++i)
    world_.spawn_main(fmt::format("client{}", i), [this, i](sim::Actor& self) { work(self, i); });
  world_.run();
  world_.on_step({});
  say("heals");
  nemesis.heal();
  await_healed();
  shared_.may_seem_corrupt = plan_.rots;
}

void History::settle() {
  set_network(0, 0, 0);
  for (const Duration sleep : {Duration(35s), Duration(65s), Duration(65s), Duration(700s)}) {
    world_.spawn_main("time", [](sim::Actor& self) { self.pause(4s); });
    world_.run();
    world_.leap(sleep);
  }
}

bool History::is_served(Teller& client) {
  if (!client.connect())
    accuse("nobody can connect");
  else if (!client.client().status(plan_.lfss))
    accuse("the LFSs do not come up");
  else
    return true;
  return false;
}

namespace {

std::set<std::string> keys_of(kv::Store& store, kv::Table table) {
  std::set<std::string> out;
  if (auto transaction = store.read())
    (void)(*transaction)->scan(table, {}, [&](std::string_view key, std::string_view) {
      return out.emplace(key).second;
    });
  return out;
}

std::string in_hex(const std::string& key) {
  std::string out;
  for (const char c : key) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

void History::look_at_disks() {
  constexpr kv::Table kFiles = 1;
  cluster_.kill_server();
  const auto directory = cluster_.open_directory();
  const auto report = server::check_directory(*directory);
  if (!report) return accuse("the directory: " + report.error().to_string());
  for (const auto& damage : report->damages) accuse("the directory: " + damage);
  const auto files = keys_of(*directory, kFiles);
  std::set<std::uint64_t> kept;
  for (unsigned i = 0; i < cluster_.size(); ++i) look_at_lfs(i, files, kept);
  look_at_kept(kept);
}

void History::look_at_lfs(unsigned index, const std::set<std::string>& files, std::set<std::uint64_t>& kept) {
  constexpr kv::Table kComponents = 0, kQuarantine = 2;
  cluster_.kill_lfs(index);
  const auto disk = cluster_.open_disk(index);
  const auto catalogue = cluster_.open_catalogue(index);
  const auto report = lfs::check_root(*disk, *catalogue, cluster_.root(index), true);
  if (!report) return accuse(fmt::format("lfs{}: {}", index, report.error().to_string()));
  for (const auto& damage : report->damages)
    if (!plan_.rots) accuse(fmt::format("lfs{}: {}", index, damage));
  for (const auto& key : keys_of(*catalogue, kQuarantine)) kept.insert(kv::u64_of_key(key));
  for (const auto& key : keys_of(*catalogue, kComponents)) {
    kept.insert(kv::u64_of_key(key));
    if (!files.contains(key) && !may_be_left(kv::u64_of_key(key)))
      accuse(fmt::format("lfs{}: a component of file {}, which does not exist", index, in_hex(key)));
  }
}

}  // namespace pif::simulate
