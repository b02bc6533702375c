// node accept-stale, node accept-loss, node replace, node lost, server accept-old: what a person decides when a disk is
// not what it was.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "command/confirm.h"
#include "command/dispatch.h"
#include "command/program.h"
#include "daemons/roots.h"
#include "daemons/startup.h"
#include "hosts/several_hosts.h"
#include "pif/base/print.h"
#include "pif/cluster/cluster.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"
#include "repair/inventory.h"
#include "repair/rescue_plan.h"
#include "text/text.h"

namespace pif::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kUpDeadline = std::chrono::seconds(20);
constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr std::size_t kMarkedAtOnce = 4096;
constexpr std::size_t kAdoptedAtOnce = 500;
constexpr std::size_t kTrialBytes = 256u << 10;  // more than an empty root needs

struct RescueOptions {
  std::string node;
  std::string root;
  bool list_only = false;
  bool force = false;
  bool yes = false;
};

Status mark(client::Session& session, const std::vector<MarkedFile>& files) {
  for (std::size_t begin = 0; begin < files.size();) {
    proto::MarkFiles ask_for;
    const MarkedFile& first = files[begin];
    ask_for.mutable_mark()->set_node(first.node);
    ask_for.mutable_mark()->set_kind(first.kind);
    for (; begin < files.size() && ask_for.files_size() < static_cast<int>(kMarkedAtOnce) &&
           files[begin].kind == first.kind && files[begin].node == first.node;
         ++begin) {
      ask_for.add_files(files[begin].file);
    }
    PIF_TRY(session.call(std::move(ask_for)));
  }
  return {};
}

using Files = std::map<std::uint64_t, FileRecord>;

bool has_mark(const Files& files, const MarkedFile& one) {
  const auto& marks = files.at(one.file).marks();
  return std::any_of(marks.begin(), marks.end(), [&](const proto::FileMark& mark) { return mark.node() == one.node; });
}

// Takes away the marks of these nodes that the directory had before, or those that it did not have.
Status unmark(client::Session& session, const Files& files, std::vector<MarkedFile> marked, bool had) {
  std::erase_if(marked, [&](const MarkedFile& one) { return has_mark(files, one) != had; });
  for (MarkedFile& one : marked) one.kind = kNoMark;
  return mark(session, marked);
}

// Nobody knows whether it was done.
bool is_unknown(const Error& error) { return error.code == Code::kUnavailable || error.code == Code::kTimeout; }

// Marks files, and does what the marks are for. If that is refused, no mark is left without a reason.
Status mark_and(client::Session& session, const Files& files, const std::vector<MarkedFile>& marked,
                const std::function<Status()>& act) {
  PIF_TRY(mark(session, marked));
  Status done = act();
  if (!done && !is_unknown(done.error())) PIF_TRY(unmark(session, files, marked, false));
  return done;
}

Json json_of(const std::vector<MarkedFile>& files) {
  Json out = Json::array();
  for (const MarkedFile& file : files)
    out.push_back(
        {{"path", file.path}, {"file", file.file}, {"kind", file.kind == wire::kMarkLost ? "lost" : "mixed"}});
  return out;
}

// Each file once, with the worst of its marks.
std::map<std::uint64_t, MarkedFile> by_file(const std::vector<MarkedFile>& files) {
  std::map<std::uint64_t, MarkedFile> out;
  for (const MarkedFile& file : files) {
    const auto [at, is_new] = out.try_emplace(file.file, file);
    if (!is_new) at->second.kind = std::max(at->second.kind, file.kind);
  }
  return out;
}

std::string text_of(const std::vector<MarkedFile>& files) {
  std::string out;
  for (const auto& [id, file] : by_file(files)) {
    const std::string name =
        file.path.empty() ? fmt::format("file {}, which is being created, and is given up", id) : one_line(file.path);
    out += fmt::format("{}  {}\n", file.kind == wire::kMarkLost ? "lost " : "mixed", name);
  }
  return out;
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Waits until the server takes the LFS for up. kUnavailable: it was started here, and has ended.
Status await_node(Client& client, Startup& startup, const std::string& name) {
  const auto deadline = SteadyClock::now() + kUpDeadline;
  while (true) {
    PIF_TRY(startup.check_alive());
    PIF_TRY(all_of(startup.errors()));
    PIF_TRY_VALUE(const SystemStatus status, client.status());
    for (const Node& node : status.nodes) {
      if (node.name == name && node.state == "up") return {};
    }
    if (SteadyClock::now() >= deadline)
      return fail(Code::kTimeout, fmt::format("{} is not up after {} s: see its log", name, kUpDeadline.count()));
    std::this_thread::sleep_for(kPoll);
  }
}

// An empty root is better than an old one: it gets back every byte of files with parity.
std::string better_way(const std::string& lfs, std::size_t files) {
  return fmt::format(
      "{0} of these can be brought back whole instead, from parity: pif down, move the root of {1} away, "
      "pif node replace {1}, pif up, pif rebuild {1}\n",
      files, lfs);
}

Status confirm_stale(const proto::NodeInfo& node, const StalePlan& plan, const RescueOptions& options) {
  if (plan.rebuildable == 0) return {};
  print_error("pif: " + better_way(node.name(), plan.rebuildable));
  if (options.yes || !can_ask()) return {};
  return confirm(fmt::format("pif: take {} as it is, and mark them?", node.name()), "nothing was changed");
}

std::string taken(const proto::NodeInfo& node, const StalePlan& plan) {
  std::string text = fmt::format("{} serves again; {} marked, to be read with --stale only\n", node.name(),
                                 counted(by_file(plan.marked).size(), "file"));
  if (plan.parity > 0)
    text += fmt::format("parity of {} may be old or missing there: run pif scrub, which makes it anew\n",
                        counted(plan.parity, "file"));
  return text;
}

Status take_back(client::Session& session, std::uint32_t node) {
  proto::AcceptStale request;
  request.set_node(node);
  const auto done = session.call(std::move(request));
  return done ? Status() : fail(done.error());
}

Outcome accept_stale(const Program& program, const RescueOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  const auto session = client::session_of(client);
  Inventory inventory(session);
  PIF_TRY(inventory.open(Inventory::Needs::kAnswers));
  PIF_TRY_VALUE(const proto::NodeInfo node, inventory.node_named(options.node));
  if (node.state() != kNodeStale)
    return fail(Code::kInvalid, fmt::format("{} is not stale: pif status says how it is", node.name()));
  PIF_TRY_VALUE(const auto files, inventory.all_files());
  PIF_TRY_VALUE(const auto components, inventory.components_on(node));
  const StalePlan plan = plan_stale(node.id(), files, components, inventory.nodes());
  if (program.common.json)
    PIF_TRY(print(Json{{"node", node.name()},
                       {"files", json_of(plan.marked)},
                       {"rebuildable", plan.rebuildable},
                       {"parity", plan.parity},
                       {"accepted", !options.list_only}}));
  if (!program.common.json) PIF_TRY(print(text_of(plan.marked)));
  if (options.list_only) {
    if (plan.rebuildable > 0 && !program.common.quiet) print_error(better_way(node.name(), plan.rebuildable));
    return ExitCode::kDone;
  }
  PIF_TRY(confirm_stale(node, plan, options));
  PIF_TRY(mark_and(*session, files, plan.marked, [&] { return take_back(*session, node.id()); }));
  Startup runs_already;
  PIF_TRY(await_node(client, runs_already, node.name()));
  if (!program.common.quiet) print_error(taken(node, plan));
  return ExitCode::kDone;
}

// A root is made of these, and a try to make one leaves them.
bool is_of_root(const std::string& name) {
  return name == "lfs.toml" || name == "lfs.toml.new" || name == "lock" || name == "used-by" || name == "catalogue" ||
         name.ends_with(".log");
}

// Before anything is changed; the LFS itself looks again.
Status check_empty(const std::string& root) {
  std::error_code none;  // not there: it is made
  for (const auto& entry : std::filesystem::directory_iterator(root, none)) {
    const std::string name = entry.path().filename().string();
    const bool is_try = is_of_root(name) && name != "lfs.toml";  // cut short
    if (!is_try) return fail(Code::kExists, fmt::format("{} has {} in it: give an empty folder", root, one_line(name)));
  }
  return {};
}

void remove_root(const std::string& root, bool with_folder) {
  std::error_code ignored;  // what is left is a try, and the next one takes it over
  std::vector<std::filesystem::path> made;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    if (is_of_root(entry.path().filename().string())) made.push_back(entry.path());
  }
  for (const auto& path : made) std::filesystem::remove_all(path, ignored);
  if (with_folder) std::filesystem::remove(root, ignored);
}

// Before anything is changed: a root can be made there. Nothing is left of the trial.
Status try_root(const std::string& root) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directory(root, error);
  if (error) return fail_errno(error.value(), "cannot make the folder " + root);
  const std::string path = root + "/lfs.toml.new";
  std::ofstream trial(path, std::ios::binary | std::ios::trunc);
  trial << std::string(kTrialBytes, '\0');
  trial.close();
  const int why = errno;
  const bool is_written = trial.good();
  std::filesystem::remove(path, error);
  if (is_new) std::filesystem::remove(root, error);
  return is_written ? Status() : fail_errno(why, "cannot write into " + root);
}

// An LFS that is to be replaced does not run, and its new folder has no root in it.
Status check_replaceable(const cluster::Cluster& cluster, const std::string& name, const std::string& root) {
  for (const Daemon& daemon : daemons_of(cluster, program_folder())) {
    if (daemon.name != name) continue;
    const auto pid = holder(daemon);  // of a dead disk nothing may be said
    if (pid && *pid)
      return fail(Code::kBusy,
                  fmt::format("{} runs (process {}): only an LFS whose disk is lost is replaced", name, **pid));
  }
  if (::access((root + "/lfs.toml").c_str(), F_OK) == 0)
    return fail(
        Code::kExists,
        fmt::format("{} has the root of an LFS in it: start it with pif up, move it away, or give another folder "
                    "with --root",
                    root));
  PIF_TRY(check_empty(root));
  PIF_TRY(make_disk_folder(cluster, root));
  return try_root(root);
}

cluster::LfsEntry* entry_of(cluster::Cluster& cluster, const std::string& name) {
  const auto found =
      std::find_if(cluster.lfss.begin(), cluster.lfss.end(), [&](const auto& lfs) { return lfs.name == name; });
  return found == cluster.lfss.end() ? nullptr : &*found;
}

// For some seconds after an LFS has died the server believes in it, and lets nobody replace it.
Status await_silence(Client& client, std::uint32_t id) {
  const auto deadline = SteadyClock::now() + kUpDeadline;
  while (true) {
    PIF_TRY_VALUE(const SystemStatus status, client.status());
    const auto is_up = [id](const Node& node) { return node.id == id && node.state == "up"; };
    const auto up = std::find_if(status.nodes.begin(), status.nodes.end(), is_up);
    if (up == status.nodes.end()) return {};
    if (SteadyClock::now() >= deadline)
      return fail(Code::kBusy,
                  fmt::format("the server still hears {}: only an LFS whose disk is lost is replaced", up->name));
    std::this_thread::sleep_for(kPoll);
  }
}

// The server must know before it is asked; a host that is off gets it with the next `pif up`.
void tell_hosts(const cluster::Cluster& cluster) {
  for (const HostAnswer& answer : SeveralHosts(cluster, RemoteShell("")).send()) {
    if (!answer.answer) print_error(fmt::format("pif: {}\n", one_line(answer.answer.error().to_string())));
  }
}

// One that is away may have what this one is rebuilt from: without it all files of the two would be lost.
Status check_others_there(const cluster::LfsEntry& lfs, const std::map<std::uint64_t, FileRecord>& files,
                          const std::vector<proto::NodeInfo>& nodes) {
  const std::vector<std::uint32_t> needed = needed_of_pair(lfs.id, files, nodes);
  if (needed.empty()) return {};
  const auto other = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const proto::NodeInfo& node) { return node.id() == needed.front(); });
  return fail(
      Code::kBusy,
      fmt::format("{0} is {1}, and may have what {2} is rebuilt from: start it (pif up) and wait until it takes "
                  "part (pif rebuild {0}); if its disk is lost, too, give both up with --force",
                  other->name(), wire::view_state_name(other->view_state()), lfs.name));
}

// Asked again while nobody knows whether it was done.
Status replace_at_server(client::Session& session, const cluster::LfsEntry& lfs) {
  const auto deadline = SteadyClock::now() + kUpDeadline;
  while (true) {
    proto::ReplaceNode request;
    request.set_node(lfs.id);
    request.set_uuid(lfs.uuid);
    const auto done = session.call(std::move(request));
    if (done) return {};
    if (!is_unknown(done.error()) || SteadyClock::now() >= deadline) return fail(done.error());
    std::this_thread::sleep_for(kPoll);
  }
}

// The LFS has an empty root from now on: in pif.toml, on the disk, at the server. If one of them refuses, all is as it
// was.
Status switch_root(client::Session& session, cluster::Cluster& cluster, cluster::LfsEntry& lfs,
                   const std::string& root) {
  const cluster::LfsEntry before = lfs;
  const bool is_new = ::access(root.c_str(), F_OK) != 0;
  PIF_TRY_VALUE(lfs.uuid, cluster::random_uuid());
  lfs.root = root;
  if (cluster.has_hosts()) ++cluster.edition;
  PIF_TRY(cluster::save_cluster(cluster));
  const Status made = make_root_anew(cluster, lfs.name);
  const Status done = made ? replace_at_server(session, lfs) : made;
  if (done && cluster.has_hosts()) tell_hosts(cluster);
  if (done || (made && is_unknown(done.error()))) return done;
  remove_root(root, is_new);
  lfs = before;
  if (cluster.has_hosts()) ++cluster.edition;
  PIF_TRY(cluster::save_cluster(cluster));
  return fail(Code::kBusy, fmt::format("{} keeps its old root: {}", lfs.name, done.error().text));  // that is known
}

Status confirm_replace(const cluster::LfsEntry& lfs, const LostPlan& plan, const RescueOptions& options) {
  const std::size_t lost = by_file(plan.marked).size();
  if (lost == 0 || options.yes || !can_ask()) return {};
  return confirm(
      fmt::format("pif: give {} an empty root? Rows of {} are lost with the old one", lfs.name, counted(lost, "file")),
      "nothing was changed");
}

// All is looked at and asked before the first change. Marks stand for the rows of the old root: those of files that are
// rebuilt have no reason any more.
Result<LostPlan> replace_root(Client& client, cluster::Cluster& cluster, cluster::LfsEntry& lfs,
                              const std::string& root, const RescueOptions& options) {
  const auto session = client::session_of(client);
  Inventory inventory(session);
  PIF_TRY(inventory.open(Inventory::Needs::kServer));
  PIF_TRY_VALUE(const auto files, inventory.all_files());
  if (!options.force) PIF_TRY(check_others_there(lfs, files, inventory.nodes()));
  LostPlan plan = plan_lost(lfs.id, files, inventory.nodes());
  PIF_TRY(confirm_replace(lfs, plan, options));
  PIF_TRY(mark_and(*session, files, plan.marked, [&] { return switch_root(*session, cluster, lfs, root); }));
  PIF_TRY(unmark(*session, files, plan.rebuilt, true));
  if (plan.rebuilt.empty()) PIF_TRY(inventory.note_complete(lfs.id));
  return plan;
}

Outcome replace(const Program& program, const RescueOptions& options) {
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(program.common.where));
  PIF_TRY_VALUE(cluster::Cluster cluster, cluster::load_cluster(folder));
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kUpDeadline));
  PIF_TRY_VALUE(cluster, cluster::load_cluster(folder));
  PIF_TRY(cluster::check_ready(cluster));
  cluster::LfsEntry* lfs = entry_of(cluster, options.node);
  if (lfs == nullptr)
    return fail(Code::kNotFound, fmt::format("{}/pif.toml has no LFS named {}", cluster.folder, options.node));
  if (!cluster.is_here(*lfs))
    return fail(Code::kInvalid, fmt::format("{} is on host {}: run this there", lfs->name, lfs->host));
  const std::string root =
      options.root.empty() ? lfs->root : std::filesystem::absolute(options.root).lexically_normal().string();
  PIF_TRY(check_replaceable(cluster, lfs->name, root));
  // The server must take part; if it does not run, it runs for as long as that takes.
  Startup startup;
  if (cluster.serves_here()) PIF_TRY(startup.start_missing({daemons_of(cluster, program_folder()).front()}));
  PIF_TRY_VALUE(Client client, await_server(cluster, startup, SteadyClock::now() + kUpDeadline));
  PIF_TRY_VALUE(Client patient, program.connect());
  PIF_TRY(await_silence(patient, lfs->id));
  PIF_TRY_VALUE(const LostPlan plan, replace_root(patient, cluster, *lfs, root, options));
  if (startup.started() == 0) {
    Startup lfs_startup;
    std::vector<Daemon> daemons = daemons_of(cluster, program_folder());
    std::erase_if(daemons, [&](const Daemon& daemon) { return daemon.name != lfs->name; });
    PIF_TRY(lfs_startup.start_missing(daemons));
    PIF_TRY(await_node(patient, lfs_startup, lfs->name));
    lfs_startup.keep();
  }
  if (program.common.json) {
    PIF_TRY(print(Json{{"node", lfs->name},
                       {"root", lfs->root},
                       {"files", json_of(plan.marked)},
                       {"rebuilt", json_of(plan.rebuilt)}}));
  } else {
    PIF_TRY(print(text_of(plan.marked)));
  }
  if (!program.common.quiet)
    print_error(fmt::format("{} has an empty root at {}; {} marked, whose rows are lost{}{}\n", lfs->name, lfs->root,
                            counted(by_file(plan.marked).size(), "file"),
                            plan.rebuilt.empty() ? ""
                                                 : fmt::format("; {} to be rebuilt: run pif rebuild {}",
                                                               counted(plan.rebuilt.size(), "file"), lfs->name),
                            startup.started() == 0 ? "" : "; start the file system with pif up"));
  return ExitCode::kDone;
}

// The server does it when the node's lease is over, some seconds after it was asked first.
Outcome declare_lost(const Program& program, const RescueOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  const auto session = client::session_of(client);
  const auto began = SteadyClock::now();
  while (true) {
    PIF_TRY_VALUE(const SystemStatus status, client.status());
    const auto node = std::find_if(status.nodes.begin(), status.nodes.end(),
                                   [&](const Node& one) { return one.name == options.node; });
    if (node == status.nodes.end())
      return fail(Code::kNotFound, fmt::format("there is no LFS named {}: see pif node list", options.node));
    proto::NodeLost request;
    request.set_node(node->id);
    request.set_force(options.force);
    const auto declared = session->call(std::move(request));
    if (declared) break;
    const bool is_late = SteadyClock::now() - began > kUpDeadline;
    if (declared.error().code != Code::kBusy || is_late) return fail(declared.error());
    std::this_thread::sleep_for(kPoll);
  }
  if (program.common.json) PIF_TRY(print(Json{{"node", options.node}, {"view_state", "lost"}}));
  if (!program.common.quiet)
    print_error(fmt::format(
        "{} is lost, and ends if it still runs; started again (pif up) it fetches what it missed, by itself\n",
        options.node));
  return ExitCode::kDone;
}

// What only this LFS had since another was lost cannot be known without it: files on both may lack it.
Outcome accept_loss(const Program& program, const RescueOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  const auto session = client::session_of(client);
  Inventory inventory(session);
  PIF_TRY(inventory.open(Inventory::Needs::kServer));
  PIF_TRY_VALUE(const proto::NodeInfo node, inventory.node_named(options.node));
  if (!wire::is_absent(node.view_state()))
    return fail(Code::kInvalid, fmt::format("{} is not lost: pif status says how it is", node.name()));
  PIF_TRY_VALUE(const auto files, inventory.all_files());
  const AcceptedPlan plan = plan_accepted(node.id(), files, inventory.nodes());
  const std::vector<MarkedFile>& concerned = plan.concerned;
  if (!program.common.json) {
    std::string text;
    for (const MarkedFile& file : concerned) text += one_line(file.path) + "\n";
    PIF_TRY(print(text));
  }
  if (!options.yes) {
    if (!can_ask())
      return fail(Code::kInvalid, fmt::format("what only {} had of {} is given up, and there is nobody to ask: say "
                                              "--yes",
                                              node.name(), counted(concerned.size(), "file")));
    PIF_TRY(confirm(fmt::format("pif: give up what was appended to {} and only {} had?",
                                concerned.size() == 1 ? "this file" : "these files", node.name()),
                    "nothing was changed"));
  }
  PIF_TRY(mark(*session, plan.marked));
  proto::AcceptLoss request;
  request.set_node(node.id());
  const auto accepted = session->call(std::move(request));
  // Where those that wait for it take part already, there is no order to change.
  if (!accepted && (accepted.error().code != Code::kInvalid || plan.marked.empty())) return fail(accepted.error());
  if (program.common.json) {
    Json paths = Json::array();
    for (const MarkedFile& file : concerned) paths.push_back({{"path", file.path}, {"file", file.file}});
    PIF_TRY(print(Json{{"node", node.name()}, {"files", paths}}));
  }
  if (!program.common.quiet)
    print_error(fmt::format("{} returns after the other LFSs that are lost; {} may lack what only it had\n",
                            node.name(), counted(concerned.size(), "file")));
  return ExitCode::kDone;
}

Outcome accept_old(const Program& program, const RescueOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  const auto session = client::session_of(client);
  Inventory inventory(session);
  PIF_TRY(inventory.open(Inventory::Needs::kAnswers));
  PIF_TRY(inventory.flush());  // so that components say what was overwritten
  PIF_TRY_VALUE(const Everything everything, inventory.everything());
  PIF_TRY_VALUE(const auto files, inventory.all_files());
  const OldDirectoryPlan plan = plan_old(files, everything, inventory.nodes());
  if (program.common.json) {
    Json adopted = Json::array();
    for (const auto& one : plan.adopted)
      adopted.push_back({{"path", fmt::format("/lost+found/{:016x}", one.file())},
                         {"records", one.file_length().records()},
                         {"owner", one.owner()}});
    PIF_TRY(print(Json{{"adopted", adopted}, {"files", json_of(plan.marked)}, {"accepted", !options.list_only}}));
  } else {
    std::string text;
    for (const auto& one : plan.adopted)
      text += fmt::format("found  /lost+found/{:016x}  ({}, of user {})\n", one.file(),
                          counted(one.file_length().records(), "record"), one.owner());
    PIF_TRY(print(text + text_of(plan.marked)));
  }
  if (options.list_only) return ExitCode::kDone;
  for (std::size_t begin = 0; begin < plan.adopted.size(); begin += kAdoptedAtOnce) {
    proto::AdoptFiles request;
    for (std::size_t i = begin; i < std::min(plan.adopted.size(), begin + kAdoptedAtOnce); ++i)
      *request.add_files() = plan.adopted[i];
    PIF_TRY(session->call(std::move(request)));
  }
  PIF_TRY(mark(*session, plan.marked));
  proto::AdoptFiles request;
  request.set_done(true);
  PIF_TRY(session->call(std::move(request)));
  if (!program.common.quiet)
    print_error(fmt::format("{}; {} put under /lost+found, {} marked\n",
                            status.refused.empty() ? "the server serves" : "the server serves again",
                            counted(plan.adopted.size(), "file"), counted(by_file(plan.marked).size(), "file")));
  return ExitCode::kDone;
}

}  // namespace

void add_rescue_commands(CLI::App& app, CLI::App& node, Program& program) {
  auto stale_options = std::make_shared<RescueOptions>();
  CLI::App* stale =
      node.add_subcommand("accept-stale", "Take a stale LFS as it is; mark files that may mix old and new rows");
  stale->add_option("NODE", stale_options->node, "Name of the LFS, such as lfs1")->required();
  stale->add_flag("--list", stale_options->list_only, "List the files only; change nothing");
  stale->add_flag("-y,--yes", stale_options->yes, "Do not ask");
  stale->fallthrough();
  on_run(stale, program, stale_options, accept_stale);

  auto replace_options = std::make_shared<RescueOptions>();
  CLI::App* replaces =
      node.add_subcommand("replace", "Give an LFS whose disk is lost an empty root; mark files that lost rows");
  replaces->add_option("NODE", replace_options->node, "Name of the LFS, such as lfs1")->required();
  replaces->add_option("--root", replace_options->root, "Another folder for it (default: the same)")->type_name("DIR");
  replaces->add_flag("-y,--yes", replace_options->yes, "Do not ask");
  replaces->add_flag("--force", replace_options->force, "Though another LFS is away that files need then");
  replaces->fallthrough();
  on_run(replaces, program, replace_options, replace);

  auto lost_options = std::make_shared<RescueOptions>();
  CLI::App* lost = node.add_subcommand("lost", "Declare an LFS lost that does not run; it may come back");
  lost->add_option("NODE", lost_options->node, "Name of the LFS, such as lfs1")->required();
  lost->add_flag("--force", lost_options->force, "Though another LFS is lost that may be its companion");
  lost->fallthrough();
  on_run(lost, program, lost_options, declare_lost);

  auto loss_options = std::make_shared<RescueOptions>();
  CLI::App* loss = node.add_subcommand(
      "accept-loss", "Give up what only an LFS had that is gone for good; one that was lost before it returns first");
  loss->add_option("NODE", loss_options->node, "Name of the LFS that is gone, such as lfs5")->required();
  loss->add_flag("-y,--yes", loss_options->yes, "Do not ask");
  loss->fallthrough();
  on_run(loss, program, loss_options, accept_loss);

  CLI::App* server = add_command(app, program, "server", "Decide about the server's directory",
                                 "  pif server accept-old --list\n"
                                 "  pif server accept-old      keep a directory that is older than its LFSs");
  auto old_options = std::make_shared<RescueOptions>();
  CLI::App* old =
      server->add_subcommand("accept-old", "Keep an old directory; what it does not know goes to /lost+found");
  old->add_flag("--list", old_options->list_only, "List what would be found and marked; change nothing");
  old->fallthrough();
  server->require_subcommand(1);
  on_run(old, program, old_options, accept_old);
}

}  // namespace pif::cli
