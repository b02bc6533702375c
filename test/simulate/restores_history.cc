// Histories of files in which parts are put back to what they were, and of the person who finds them so.
#include <algorithm>

#include <fmt/format.h>

#include "../../tools/pif/repair/inventory.h"
#include "../../tools/pif/repair/rescue_plan.h"
#include "simulate/files_history.h"
#include "simulate/restores.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;

Status ask(client::Session& session, proto::Envelope request) {
  net::Packet packet;
  packet.envelope = std::move(request);
  PIF_TRY(session.ask_server(std::move(packet)));
  return {};
}

class RestoresHistory final : public FilesHistory {
 public:
  RestoresHistory(Plan plan, const std::function<void(const std::string&)>& tell)
      : FilesHistory(std::move(plan), tell), restores_(shared_) {
    shared_.restores = &restores_;
  }

  Outcome judge() {
    Outcome out = run();
    out.restores = restores_.done;
    out.noticed = restores_.noticed;
    out.accepted = restores_.accepted;
    return out;
  }

 private:
  void rescue(sim::Actor& self) override;
  void last(sim::Actor& self) override;
  void inspect_file(Workload& client, std::size_t path) override;
  bool may_be_left(std::uint64_t) const override { return restores_.has_lapsed(); }
  void look_at_kept(const std::set<std::uint64_t>& kept) override;

  void rescue_lfss(Workload& client);
  void rescue_lfs(Workload& client, const Node& node, unsigned index);
  void rescue_server(Workload& client, const SystemStatus& status);
  Status mark(client::Session& session, const std::vector<cli::MarkedFile>& files);
  Status accept_stale(Workload& client, unsigned index);
  Status accept_old(Workload& client);
  void inspect_marked(sim::Actor& self);
  void inspect_found(Workload& client);

  Restores restores_;
  std::set<std::uint64_t> marked_;  // files
  std::vector<std::size_t> mixed_paths_;
  bool found_ = false;  // what was forgotten has been given names
};

// ---- the person ----

void RestoresHistory::rescue(sim::Actor& self) {
  Workload client(shared_, self, "person", plan_.seed + 3);
  self.pause(12s);  // until everybody has been heard
  if (!client.connect()) return accuse("nobody can connect");
  const auto status = client.client().status();
  if (!status) return accuse("status: " + status.error().to_string());
  if (restores_.server().newest || !status->refused.empty()) rescue_server(client, *status);
  rescue_lfss(client);
  self.pause(3s);
  const auto healed = client.client().status(plan_.lfss);
  if (!healed) return accuse("after the rescue: " + healed.error().to_string());
  if (!healed->refused.empty()) accuse("after the rescue: " + healed->refused);
  for (const auto& node : healed->nodes)
    if (node.state != "up") accuse(fmt::format("after the rescue: {} is {}: {}", node.name, node.state, node.trouble));
}

void RestoresHistory::rescue_server(Workload& client, const SystemStatus& status) {
  const auto& server = restores_.server();
  if (!server.newest) return accuse("a false alarm: " + status.refused);
  if (status.refused.empty()) {
    if (server.must_notice) accuse("the directory was put back, and the server serves");
    oracle_.forget_names(server.lost, false);
    return restores_.accept_server();
  }
  ++restores_.noticed;
  if (!plan_.accepts) return restores_.bring_all_back();
  ++restores_.accepted;
  oracle_.forget_names(server.lost, true);
  if (const auto done = accept_old(client); !done) accuse("accept-old: " + done.error().to_string());
  restores_.accept_all();
}

void RestoresHistory::rescue_lfss(Workload& client) {
  const auto status = client.client().status();
  if (!status) return accuse("status: " + status.error().to_string());
  for (unsigned i = 0; i < plan_.lfss; ++i)  // these first: nobody plans with some missing
    if (restores_.lfs(i).newest && restores_.lfs(i).is_foreign) {
      ++restores_.noticed;
      if (status->nodes[i].state == "up") accuse(fmt::format("lfs{} serves from a disk that is not its own", i));
      restores_.bring_back(i);
    }
  for (unsigned i = 0; i < plan_.lfss; ++i) rescue_lfs(client, status->nodes[i], i);
}

void RestoresHistory::rescue_lfs(Workload& client, const Node& node, unsigned index) {
  const auto& part = restores_.lfs(index);
  if (!part.newest) {
    if (node.state == "stale") accuse("a false alarm: " + node.trouble);
    return;
  }
  if (node.state != "stale") {
    if (part.must_notice) accuse(fmt::format("lfs{} was put back, and is {}", index, node.state));
    return restores_.accept(index);
  }
  ++restores_.noticed;
  if (!plan_.accepts && !restores_.server().is_unseen_with_lfss) return restores_.bring_back(index);
  ++restores_.accepted;
  // Others have been started just now, perhaps.
  Status done = fail(Code::kUnavailable, "not tried");
  for (int i = 0; i < 10 && !done; ++i) {
    done = accept_stale(client, index);
    if (!done) (void)client.pause(1s);
  }
  if (!done) accuse(fmt::format("accept-stale lfs{}: {}", index, done.error().to_string()));
  restores_.accept(index);
}

Status RestoresHistory::mark(client::Session& session, const std::vector<cli::MarkedFile>& files) {
  for (const auto& file : files) {
    proto::Envelope request;
    request.mutable_mark_files()->add_files(file.file);
    request.mutable_mark_files()->mutable_mark()->set_node(file.node);
    request.mutable_mark_files()->mutable_mark()->set_kind(file.kind);
    PIF_TRY(ask(session, std::move(request)));
    marked_.insert(file.file);
    say(fmt::format("marks {:x} on node {}: {}", file.file, file.node, file.kind));
  }
  return {};
}

// As `pif node accept-stale` does.
Status RestoresHistory::accept_stale(Workload& client, unsigned index) {
  const auto session = client::session_of(client.client());
  cli::Inventory inventory(session);
  PIF_TRY(inventory.open(cli::Inventory::Needs::kAnswers));
  PIF_TRY_VALUE(const auto files, inventory.all_files());
  PIF_TRY_VALUE(const auto components, inventory.components_on(inventory.nodes().at(index)));
  PIF_TRY(mark(*session, cli::plan_stale(index + 1, files, components, inventory.nodes()).marked));
  proto::Envelope request;
  request.mutable_accept_stale()->set_node(index + 1);
  return ask(*session, std::move(request));
}

// As `pif server accept-old` does.
Status RestoresHistory::accept_old(Workload& client) {
  PIF_TRY_VALUE(const SystemStatus status, client.client().status());
  const auto session = client::session_of(client.client());
  cli::Inventory inventory(session);
  PIF_TRY(inventory.open(cli::Inventory::Needs::kAnswers));
  PIF_TRY(inventory.flush());
  PIF_TRY_VALUE(const auto everything, inventory.everything());
  PIF_TRY_VALUE(const auto files, inventory.all_files());
  const auto plan = cli::plan_old(files, everything, inventory.nodes());
  proto::Envelope adopt;
  for (const auto& one : plan.adopted) {
    *adopt.mutable_adopt_files()->add_files() = one;
    say(fmt::format("adopts {:x}", one.file()));
    if (one.marks_size() > 0) marked_.insert(one.file());
  }
  if (!plan.adopted.empty()) PIF_TRY(ask(*session, std::move(adopt)));
  PIF_TRY(mark(*session, plan.marked));
  proto::Envelope done;
  done.mutable_adopt_files()->set_done(true);
  PIF_TRY(ask(*session, std::move(done)));
  found_ = true;
  return {};
}

// ---- what became of it ----

void RestoresHistory::last(sim::Actor& self) {
  FilesHistory::last(self);
  Workload client(shared_, self, "finder", plan_.seed + 4);
  if (!is_served(client)) return;
  if (found_) inspect_found(client);
  inspect_marked(self);
}

// A file that may have lost something says so; all others are as they were.
void RestoresHistory::inspect_file(Workload& client, std::size_t path) {
  const auto entry = client.client().stat(paths_.text(path));
  if (entry && entry->marks.empty() && restores_.must_be_of_one_moment()) {
    oracle_.begin_one_moment(entry->id);
    (void)client.read(path, true);
    oracle_.end_one_moment();
  }
  if (!entry || entry->marks.empty()) return FilesHistory::inspect_file(client, path);
  if (!marked_.contains(entry->id)) accuse(fmt::format("{} is marked, and nobody has done so", paths_.text(path)));
  if (client.read(path, true) || client.last_error().code != Code::kStaleData)
    accuse(fmt::format("{} is marked, and was opened all the same", paths_.text(path)));
  oracle_.is_mixed(entry->id);
  mixed_paths_.push_back(path);
}

void RestoresHistory::inspect_marked(sim::Actor& self) {
  if (mixed_paths_.empty()) return;
  Workload client(shared_, self, "stale", plan_.seed + 5, true);
  if (!is_served(client)) return;
  for (const auto path : mixed_paths_)
    if (!client.read(path, true) && client.last_error().code == Code::kStaleData)
      accuse(fmt::format("{} cannot be opened with --stale", paths_.text(path)));
}

void RestoresHistory::inspect_found(Workload& client) {
  for (const auto& [file, records] : oracle_.forgotten()) {
    if (records == 0 || oracle_.may_be_broken(file) || marked_.contains(file)) continue;
    const auto path = fmt::format("/lost+found/{:016x}", file);
    if (!client.read_found(path, file)) accuse(fmt::format("{}: {}", path, client.last_error().to_string()));
  }
}

// Nothing is removed that had a name.
void RestoresHistory::look_at_kept(const std::set<std::uint64_t>& kept) {
  for (const auto& [file, records] : oracle_.forgotten())
    if (records > 0 && !kept.contains(file) && !oracle_.may_be_broken(file))
      accuse(fmt::format("file {:x} had a name and {} records, and no LFS has anything of it", file, records));
}

}  // namespace

Outcome run_restores_history(std::uint64_t seed, const std::function<void(const std::string&)>& tell) {
  RestoresHistory history(Plan::for_restores(seed), tell);
  return history.judge();
}

}  // namespace pif::simulate
