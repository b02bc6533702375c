#include "simulate/files_history.h"

#include <fmt/format.h>

#include "../../tools/pif_copy/copy.h"

namespace pif::simulate {

using namespace std::chrono_literals;

FilesHistory::FilesHistory(Plan plan, const std::function<void(const std::string&)>& tell)
    : History(std::move(plan), tell) {
  for (const char* path : {"/a", "/b", "/c", "/d"}) paths_.add(path);
  sim::register_tool(cluster_, names_, [](tool::Worker& worker, sim::Actor&) { return copy::work(worker); });
}

void FilesHistory::first(sim::Actor& self) {
  Workload client(shared_, self, "first", plan_.seed + 1);
  if (is_served(client)) client.put(0, false);
}

void FilesHistory::work(sim::Actor& self, unsigned index) {
  Workload client(shared_, self, self.name(), plan_.seed * 31 + index);
  if (client.connect()) client.run(plan_.operations);
}

void FilesHistory::last(sim::Actor& self) {
  Workload client(shared_, self, "last", plan_.seed + 2);
  self.pause(3s);
  if (!is_served(client)) return;
  for (std::size_t path = 0, count = paths_.size(); path < count; ++path) inspect_file(client, path);
  const std::size_t fresh = paths_.add("/fresh");
  if (!client.put(fresh, false) || !client.remove(fresh))
    accuse("after healing: put: " + client.last_error().to_string());
  self.pause(3s);
  inspect_status(client);
}

void FilesHistory::inspect_file(Workload& client, std::size_t path) {
  const auto works = [&](bool done, const char* what) {
    const bool is_gone = client.last_error().code == Code::kNotFound && client.last_error().node.empty();
    if (done || plan_.rots || oracle_.may_be_broken(client.subject()) || is_gone) return;
    accuse(fmt::format("after healing: {} {}: {}", what, paths_.text(path), client.last_error().to_string()));
  };
  const bool there = client.read(path, true);
  works(there, "read");
  if (!there && client.last_error().code == Code::kNotFound) return;
  works(client.overwrite(path), "overwrite");
  works(client.append(path), "append");
  works(client.read(path, true), "read again");
}

void FilesHistory::inspect_status(Workload& client) {
  const auto status = client.client().status();
  if (!status) return accuse("after healing: " + status.error().to_string());
  if (status->pending != 0) accuse(fmt::format("after healing: {} files are still pending", status->pending));
  if (status->doomed != 0) accuse(fmt::format("after healing: {} files are still doomed", status->doomed));
}

Outcome run_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  FilesHistory history(Plan::from(seed), tell);
  return history.run();
}

}  // namespace pif::simulate
