#include "simulate/history.h"

#include <exception>
#include <set>

#include <fmt/format.h>

#include "../../tools/pif_copy/copy.h"
#include "libtool/sim_tools.h"
#include "simulate/nemesis.h"
#include "simulate/workload.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

class History {
 public:
  History(std::uint64_t seed, const std::function<void(const std::string&)>& tell)
      : plan_(Plan::from(seed)), tell_(tell), world_(seed, plan_.world), cluster_(world_, plan_.lfss, {true, plan_.log_bytes}),
        shared_{plan_, cluster_, oracle_, paths_, [this](const std::string& line) { say(line); }} {
    for (const char* path : {"/a", "/b", "/c", "/d"}) paths_.add(path);
    sim::register_tool(cluster_, names_, [](tool::Worker& worker, sim::Actor&) { return copy::work(worker); });
  }

  Outcome run() {
    say(plan_.to_string());
    try {
      live();
      settle();
      inspect();
      look_at_disks();
    } catch (const std::exception& failure) {
      oracle_.accuse(failure.what());
    }
    oracle_.check_at_the_end(paths_);
    return {world_.history(), oracle_.violations(), shared_.operations, shared_.failed, oracle_.records_seen(),
            world_.steps(), oracle_.names_too_hard()};
  }

 private:
  void say(const std::string& line) {
    if (tell_) tell_(fmt::format("{:12.6f} {:6} {}", std::chrono::duration<double>(world_.now().time_since_epoch()).count(),
                                 world_.steps(), line));
  }
  void accuse(const std::string& text) { oracle_.accuse(text); }

  void set_network(double drop, double duplicate, double reorder);
  // Everything runs, then clients work while the nemesis strikes.
  void live();
  // Nothing strikes any more, and what was left behind is given up.
  void settle();
  // All files can be read, changed and made.
  void inspect();
  void inspect_file(Workload& client, std::size_t path);
  void inspect_status(Workload& client);
  // What is on the disks is whole, and nothing is there that nobody owns.
  void look_at_disks();
  void look_at_lfs(unsigned index, const std::set<std::string>& files);

  const Plan plan_;
  const std::function<void(const std::string&)>& tell_;
  sim::Names names_;
  Oracle oracle_{[this](const std::string& line) { say(line); }};
  Paths paths_;
  sim::World world_;
  sim::Cluster cluster_;
  Shared shared_;
};

void History::set_network(double drop, double duplicate, double reorder) {
  world_.options().drop = drop;
  world_.options().duplicate = duplicate;
  world_.options().reorder = reorder;
}

void History::live() {
  set_network(0, 0, 0);
  world_.spawn_main("first", [this](sim::Actor& self) {
    Workload client(shared_, self, "first", plan_.seed + 1);
    if (!client.connect()) return accuse("nobody can connect");
    if (!client.client().status(plan_.lfss)) return accuse("the LFSs do not come up");
    client.put(0, false);
  });
  world_.run();
  set_network(plan_.world.drop, plan_.world.duplicate, plan_.world.reorder);
  Nemesis nemesis(shared_);
  shared_.may_seem_corrupt = plan_.rots;
  world_.on_step([&](std::uint64_t) { nemesis.on_step(); });
  for (unsigned i = 0; i < plan_.clients; ++i) {
    const auto name = fmt::format("client{}", i);
    world_.spawn_main(name, [this, name, i](sim::Actor& self) {
      Workload client(shared_, self, name, plan_.seed * 31 + i);
      if (client.connect()) client.run(plan_.operations);
    });
  }
  world_.run();
  world_.on_step({});
  say("heals");
  nemesis.heal();
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

void History::inspect() {
  world_.spawn_main("last", [this](sim::Actor& self) {
    Workload client(shared_, self, "last", plan_.seed + 2);
    self.pause(3s);
    if (!client.connect()) return accuse("after healing: nobody can connect");
    if (!client.client().status(plan_.lfss)) return accuse("after healing: the LFSs do not come up");
    for (std::size_t path = 0, count = paths_.size(); path < count; ++path) inspect_file(client, path);
    const std::size_t fresh = paths_.add("/fresh");
    if (!client.put(fresh, false) || !client.remove(fresh)) accuse("after healing: put: " + client.last_error().to_string());
    self.pause(3s);
    inspect_status(client);
  });
  world_.run();
}

void History::inspect_file(Workload& client, std::size_t path) {
  const auto works = [&](bool done, const char* what) {
    if (done || plan_.rots || (client.last_error().code == Code::kNotFound && client.last_error().node.empty())) return;
    accuse(fmt::format("after healing: {} {}: {}", what, paths_.text(path), client.last_error().to_string()));
  };
  const bool there = client.read(path, true);
  works(there, "read");
  if (!there && client.last_error().code == Code::kNotFound) return;
  works(client.overwrite(path), "overwrite");
  works(client.append(path), "append");
  works(client.read(path, true), "read again");
}

void History::inspect_status(Workload& client) {
  const auto status = client.client().status();
  if (!status) return accuse("after healing: " + status.error().to_string());
  if (status->pending != 0) accuse(fmt::format("after healing: {} files are still pending", status->pending));
  if (status->doomed != 0) accuse(fmt::format("after healing: {} files are still doomed", status->doomed));
}

std::set<std::string> keys_of(kv::Store& store, kv::Table table) {
  std::set<std::string> out;
  if (auto transaction = store.read())
    (void)(*transaction)->scan(table, {}, [&](std::string_view key, std::string_view) { return out.emplace(key).second; });
  return out;
}

std::string in_hex(const std::string& key) {
  std::string out;
  for (const char c : key) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

void History::look_at_disks() {
  constexpr kv::Table kFiles = 1;
  cluster_.kill_server();
  const auto directory = cluster_.open_directory();
  const auto report = server::check_directory(*directory);
  if (!report) return accuse("the directory: " + report.error().to_string());
  for (const auto& damage : report->damages) accuse("the directory: " + damage);
  const auto files = keys_of(*directory, kFiles);
  for (unsigned i = 0; i < cluster_.size(); ++i) look_at_lfs(i, files);
}

void History::look_at_lfs(unsigned index, const std::set<std::string>& files) {
  constexpr kv::Table kComponents = 0;
  cluster_.kill_lfs(index);
  const auto disk = cluster_.open_disk(index);
  const auto catalogue = cluster_.open_catalogue(index);
  const auto report = lfs::check_root(*disk, *catalogue, cluster_.root(index), true);
  if (!report) return accuse(fmt::format("lfs{}: {}", index, report.error().to_string()));
  for (const auto& damage : report->damages)
    if (!plan_.rots) accuse(fmt::format("lfs{}: {}", index, damage));
  for (const auto& key : keys_of(*catalogue, kComponents))
    if (!files.contains(key)) accuse(fmt::format("lfs{}: a component of file {}, which does not exist", index, in_hex(key)));
}

}  // namespace

Outcome run_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  History history(seed, tell);
  return history.run();
}

}  // namespace pif::simulate
