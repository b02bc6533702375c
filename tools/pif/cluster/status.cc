// status, node list, df: the LFSs as the server knows them.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "cluster/activity.h"
#include "command/dispatch.h"
#include "command/program.h"
#include "daemons/daemons.h"
#include "hosts/hosts_commands.h"
#include "hosts/hosts_status.h"
#include "pif/base/print.h"
#include "pif/base/write_all.h"
#include "pif/cluster/cluster.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr double kWatchSecondsDefault = 1;
constexpr Duration kServerPatience = std::chrono::seconds(3);  // over tcp nobody says that nobody listens
constexpr std::string_view kClear = "\x1b[H\x1b[2J";           // the screen
constexpr std::uint64_t kInodesShare = 20;                     // below this part of them df warns
constexpr double kWatchSecondsMin = 0.05, kWatchSecondsMax = 86400;

struct StatusOptions {
  bool all = false;
  CLI::Option* watch = nullptr;
  double watch_seconds = 0;  // 0: not said
  HostsOptions hosts;
};

Json json_of(const Node& node) {
  return {{"id", node.id},
          {"name", node.name},
          {"state", node.state},
          {"pid", node.pid},
          {"bytes_total", node.bytes_total},
          {"bytes_free", node.bytes_free},
          {"inodes_total", node.inodes_total},
          {"inodes_free", node.inodes_free},
          {"components", node.components},
          {"bytes_stored", node.bytes_stored},
          {"silent_ms", node.silent_ms},
          {"root", node.root},
          {"unix", node.unix_path},
          {"ipc", node.ipc},
          {"tcp", node.tcp},
          {"uuid", node.uuid},
          {"incarnation", node.incarnation},
          {"number", node.number},
          {"view_state", node.view_state},
          {"rebuilt_percent", node.rebuilt_percent},
          {"lacking", node.lacking},
          {"scrubbed", node.scrubbed},
          {"scrub_damages", node.scrub_damages},
          {"trouble", node.trouble},
          {"trouble_since", node.trouble_since},
          {"clock_ahead", node.clock_ahead}};
}

// Of the file system that answers; one without hosts if its folder cannot be read any more.
cluster::Cluster cluster_of(const Program& program) {
  return cluster::load_cluster(program.folder()).value_or(cluster::Cluster());
}

Json json_of(const SystemStatus& status, const std::vector<DaemonStats>& stats) {
  Json nodes = Json::array(), daemons = Json::array();
  for (const auto& node : status.nodes) nodes.push_back(json_of(node));
  for (const auto& daemon : stats) daemons.push_back(cli::json_of(daemon));
  Json server = {{"state", status.refused.empty() ? "up" : "behind"},
                 {"run", status.run},
                 {"index", status.index},
                 {"view", status.view},
                 {"trouble", status.refused},
                 {"trouble_since", status.refused_since}};
  return {{"cluster", status.cluster},
          {"server", server},
          {"nodes", nodes},
          {"files", status.files},
          {"folders", status.folders},
          {"pending", status.pending},
          {"doomed", status.doomed},
          {"off_pairs", status.off_pairs},
          {"sessions", status.sessions},
          {"daemons", daemons}};
}

// What is lost if another LFS goes, too, and what to do about it.
std::string exposure_of(const Node& node) {
  constexpr std::string_view kExposed =
      "files with parity on it are exposed: another lost LFS of their bevies would lose rows";
  if (node.view_state == "rebuilding" || node.view_state == "returning")
    return fmt::format("{} is {}: {} until it is a member (pif rebuild {} looks on, and starts it on an empty disk)\n",
                       node.name, node.view_state, kExposed, node.name);
  if (node.view_state == "lost")
    return fmt::format(
        "{0} is lost: {1}; start it (pif up), or give it a new disk: pif node replace {0}, "
        "pif rebuild {0}\n",
        node.name, kExposed);
  if (node.lacking > 0)
    return fmt::format(
        "{0} lacks its part of {1} that it could not be given: pif rebuild {0} names them, and says why\n", node.name,
        node.lacking == 1 ? "a file" : fmt::format("{} files", node.lacking));
  if (node.state == "down" && node.view_state == "member")
    return fmt::format(
        "{0} is down: who writes files that need it waits until it is lost (10 s, or pif node lost {0})\n", node.name);
  return {};
}

// What a person has to decide, and since when.
std::string troubles_of(const SystemStatus& status) {
  std::string out;
  if (!status.refused.empty())
    out += fmt::format("the server serves nobody since {}: {}\n", iso_second(status.refused_since), status.refused);
  for (const auto& node : status.nodes) {
    if (node.state == "failing")
      out += fmt::format(
          "{0} since {1}: {2}. Others do without it when it is lost (by itself, where files have parity, or "
          "by pif node lost {0}); then give it a new disk: pif node replace {0}, pif rebuild {0}\n",
          node.name, iso_second(node.trouble_since), node.trouble);
    else if (!node.trouble.empty())
      out += fmt::format("{} serves nothing since {}: {}\n", node.name, iso_second(node.trouble_since), node.trouble);
  }
  if (status.off_pairs > 0)
    out += fmt::format(
        "{} no pair of bevies: the loss of one LFS of each pair may take them; pif protect --all makes them anew\n",
        status.off_pairs == 1 ? "a file lies on" : fmt::format("{} files lie on", status.off_pairs));
  for (const auto& node : status.nodes) {
    out += exposure_of(node);
    if (std::abs(node.clock_ahead) >= kClocksApart)
      out += fmt::format("the clock of {} is {} s {} the server's: set both right (NTP), for rights expire by them\n",
                         node.name, std::abs(node.clock_ahead), node.clock_ahead > 0 ? "ahead of" : "behind");
  }
  return out;
}

// "up"; "down, lost"; "up, rebuilding 42 %".
std::string state_text(const Node& node) {
  if (node.view_state == "rebuilding")
    return fmt::format("{}, {} {} %", node.state, node.view_state, node.rebuilt_percent);
  return node.view_state == "member" ? node.state : fmt::format("{}, {}", node.state, node.view_state);
}

// "3 days ago", "today, 2 damages", "never".
std::string scrubbed_text(const Node& node, std::int64_t now) {
  if (node.scrubbed == 0) return "never";
  const std::int64_t days = std::max<std::int64_t>(0, now - node.scrubbed) / (24 * 3600);
  const std::string when = days == 0 ? "today" : days == 1 ? "1 day ago" : fmt::format("{} days ago", days);
  return node.scrub_damages == 0 ? when : fmt::format("{}, {} damages", when, node.scrub_damages);
}

std::string text_of(const SystemStatus& status) {
  std::vector<std::vector<std::string>> rows = {
      {"node", "state", "pid", "free", "of", "components", "stored", "silent ms", "scrubbed", "root"}};
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::size_t up = 0;
  for (const auto& node : status.nodes) {
    up += node.state == "up" ? 1 : 0;
    rows.push_back({node.name, state_text(node), std::to_string(node.pid), human_bytes(node.bytes_free),
                    human_bytes(node.bytes_total), std::to_string(node.components), human_bytes(node.bytes_stored),
                    std::to_string(node.silent_ms), scrubbed_text(node, now), node.root});
  }
  return fmt::format(
             "cluster {}: server {}, {} of {} LFSs up, {} files, {} folders, {} pending, {} doomed, {} sessions\n",
             status.cluster, status.refused.empty() ? "up" : "behind", up, status.nodes.size(), status.files,
             status.folders, status.pending, status.doomed, status.sessions) +
         table(rows, {2, 3, 4, 5, 6, 7}) + troubles_of(status);
}

// Nobody answers: what this machine can tell by itself, from the locks that daemons hold.
Outcome report_down(const Program& program, const StatusOptions& options, const Error& why) {
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(program.common.where));
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(folder));
  if (cluster.has_hosts()) {
    PIF_TRY(print_hosts_down(program, cluster, RemoteShell(options.hosts.rsh)));
    print_error(fmt::format("pif: {}\n", program.text_of(why)));
    return ExitCode::kNegative;
  }
  Json nodes = Json::array();
  Json server;
  std::string text = fmt::format("cluster {}: the server does not answer\n", cluster.id);
  for (const auto& daemon : daemons_of(cluster, program_folder())) {
    PIF_TRY_VALUE(const auto pid, holder(daemon));
    const std::string state = pid ? "running" : "down";
    text += fmt::format("{}  {}{}\n", daemon.name, state, pid ? fmt::format(" (process {})", *pid) : "");
    const Json one = {{"name", daemon.name}, {"state", state}, {"pid", pid.value_or(0)}, {"root", daemon.folder}};
    if (daemon.name == "server") {
      server = one;
    } else {
      nodes.push_back(one);
    }
  }
  PIF_TRY(program.common.json ? print(Json{{"cluster", cluster.id}, {"server", server}, {"nodes", nodes}})
                              : print(text));
  print_error(fmt::format("pif: {}\n", program.text_of(why)));
  return ExitCode::kNegative;
}

// What this machine can tell of one file system by the locks that its daemons hold.
Json summary_of(const std::string& folder) {
  const auto cluster = cluster::load_cluster(folder);
  if (!cluster) {
    const char* state = cluster.error().code == Code::kNotFound ? "gone" : "unreadable";
    return {{"folder", folder}, {"state", state}, {"daemons", 0}, {"running", 0}};
  }
  std::size_t running = 0;
  bool is_hidden = false;
  const auto daemons = daemons_of(*cluster, program_folder());
  for (const Daemon& daemon : daemons) {
    const auto pid = holder(daemon);
    running += pid && *pid ? 1 : 0;
    is_hidden = is_hidden || !pid;
  }
  const char* state = is_hidden ? "unknown" : running == 0 ? "down" : running == daemons.size() ? "up" : "partly up";
  return {{"folder", folder},
          {"state", state},
          {"daemons", daemons.size()},
          {"running", running},
          {"cluster", cluster->id}};
}

// The file systems that the user knows, the one that is meant here among them.
Outcome list_all(const Program& program) {
  PIF_TRY_VALUE(std::vector<std::string> folders, cluster::known_clusters());
  const auto here = cluster::look_up_cluster(program.common.where);
  if (here && std::find(folders.begin(), folders.end(), here->folder) == folders.end()) folders.push_back(here->folder);
  const std::string chosen = cluster::default_cluster();
  Json documents = Json::array();
  std::vector<std::vector<std::string>> rows = {{"", "state", "running", "folder"}};
  for (const std::string& folder : folders) {
    Json one = summary_of(folder);
    one["default"] = folder == chosen;
    const std::string running =
        fmt::format("{} of {}", one["running"].get<std::size_t>(), one["daemons"].get<std::size_t>());
    rows.push_back({folder == chosen ? "*" : "", one["state"], running, shown(folder)});
    documents.push_back(std::move(one));
  }
  PIF_TRY(program.common.json ? print(Json{{"file_systems", documents}}) : print(table(rows)));
  if (!program.common.quiet && !program.common.json && !chosen.empty()) print_error("* is your default\n");
  return ExitCode::kDone;
}

// Servers that are older than the operation have nothing to say.
Result<std::vector<DaemonStats>> stats_of(Client& client) {
  auto stats = client.daemon_stats();
  if (!stats && stats.error().code == Code::kUnsupported) return std::vector<DaemonStats>();
  return stats;
}

Result<double> watch_seconds(const StatusOptions& options) {
  const double seconds = options.watch_seconds == 0 ? kWatchSecondsDefault : options.watch_seconds;
  if (seconds >= kWatchSecondsMin && seconds <= kWatchSecondsMax) return seconds;
  return fail(Code::kInvalid,
              fmt::format("--watch: {} is not from {} to {} seconds", seconds, kWatchSecondsMin, kWatchSecondsMax));
}

// What happens between one look and the next, until somebody ends it.
Outcome watch(const Program& program, const StatusOptions& options, Client& client) {
  PIF_TRY_VALUE(const double seconds, watch_seconds(options));
  const bool screen = !program.common.json && ::isatty(1) == 1;
  std::vector<DaemonStats> before;
  auto looked = std::chrono::steady_clock::now();
  while (true) {
    PIF_TRY_VALUE(const SystemStatus now, client.status());
    PIF_TRY_VALUE(const std::vector<DaemonStats> stats, stats_of(client));
    const auto moment = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = moment - looked;
    if (program.common.json) {
      PIF_TRY(print(json_of(now, stats)));
    } else {
      const auto& base = before.empty() ? stats : before;
      if (screen) PIF_TRY(write_all(1, std::as_bytes(std::span(kClear)), "cannot write to standard output"));
      PIF_TRY(print(text_of(now) + waiting_text(stats) + "\n" +
                    activity_table(activity_between(base, stats, std::max(passed.count(), kWatchSecondsMin)))));
    }
    before = stats;
    looked = moment;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

Outcome status(const Program& program, const StatusOptions& options) {
  if (options.all) return list_all(program);
  const auto greeted = program.connect(kServerPatience);
  if (!greeted && (greeted.error().code == Code::kUnavailable || greeted.error().code == Code::kTimeout))
    return report_down(program, options, greeted.error());
  auto client = program.connect();
  if (!client) return fail(client.error());
  if (options.watch->count() > 0) return watch(program, options, *client);
  PIF_TRY_VALUE(const SystemStatus now, client->status());
  const auto stats = stats_of(*client);
  if (!program.common.json) {  // the table is worth showing alone
    PIF_TRY(print(hosts_table(cluster_of(program), now) + text_of(now) + (stats ? waiting_text(*stats) : "")));
    return ExitCode::kDone;
  }
  if (!stats) return fail(stats.error());
  Json document = json_of(now, *stats);
  document["hosts"] = hosts_json(cluster_of(program), now);
  PIF_TRY(print(document));
  return ExitCode::kDone;
}

Outcome list_nodes(const Program& program, const StatusOptions&) {
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const SystemStatus now, client.status());
  Json nodes = Json::array();
  std::vector<std::vector<std::string>> rows = {{"id", "name", "state", "pid", "root", "unix", "ipc", "tcp"}};
  for (const auto& node : now.nodes) {
    nodes.push_back(json_of(node));
    rows.push_back({std::to_string(node.id), node.name, state_text(node), std::to_string(node.pid), node.root,
                    node.unix_path, node.ipc, node.tcp.empty() ? "-" : node.tcp});
  }
  PIF_TRY(program.common.json ? print(Json{{"nodes", nodes}}) : print(table(rows, {0, 3})));
  return ExitCode::kDone;
}

// Free share of the inodes of the LFS's disk; "-" where there are as many as it needs.
std::string inodes_text(const Node& node) {
  if (node.inodes_total == 0) return "-";
  return fmt::format("{}% free", node.inodes_free * 100 / node.inodes_total);
}
bool is_short_of_inodes(const Node& node) {
  return node.inodes_total > 0 && node.inodes_free * kInodesShare < node.inodes_total;
}

Outcome space(const Program& program, const StatusOptions&) {
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const SystemStatus now, client.status());
  Json nodes = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"node", "total", "free", "free share", "inodes", "stored", "components"}};
  Node sum;
  for (const auto& node : now.nodes) {
    nodes.push_back({{"name", node.name},
                     {"bytes_total", node.bytes_total},
                     {"bytes_free", node.bytes_free},
                     {"inodes_total", node.inodes_total},
                     {"inodes_free", node.inodes_free},
                     {"bytes_stored", node.bytes_stored},
                     {"components", node.components}});
    const std::uint64_t share = node.bytes_total == 0 ? 0 : node.bytes_free * 100 / node.bytes_total;
    rows.push_back({node.name, human_bytes(node.bytes_total), human_bytes(node.bytes_free), fmt::format("{}%", share),
                    inodes_text(node), human_bytes(node.bytes_stored), std::to_string(node.components)});
    sum.bytes_stored += node.bytes_stored;
    sum.components += node.components;
  }
  rows.push_back({"all", "", "", "", "", human_bytes(sum.bytes_stored), std::to_string(sum.components)});
  if (program.common.json) {
    PIF_TRY(print(Json{{"nodes", nodes}, {"bytes_stored", sum.bytes_stored}, {"components", sum.components}}));
    return ExitCode::kDone;
  }
  PIF_TRY(print(table(rows, {1, 2, 3, 4, 5, 6})));
  for (const auto& node : now.nodes) {
    if (!program.common.quiet && is_short_of_inodes(node))
      print_error(fmt::format(
          "pif: {}: its disk has {} of {} inodes left, so few new files fit, whatever is free: remove small "
          "files on the disk of {}\n",
          one_line(node.name), node.inodes_free, node.inodes_total, one_line(node.root)));
  }
  if (!program.common.quiet) print_error("LFSs whose roots share a local file system share its space\n");
  return ExitCode::kDone;
}

}  // namespace

CLI::App* add_status_commands(CLI::App& app, Program& program) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* status_command =
      add_command(app, program, "status", "Show the server and its LFSs: state, space, what they hold",
                  "  pif status\n  pif status --watch              what happens, each second\n"
                  "  pif status --all                 which file systems there are\n"
                  "  pif status --watch 10 --json    all counters, a line every ten seconds\n"
                  "  pif status --json | jq '.daemons[] | .node, .operations[]'");
  options->watch = status_command
                       ->add_option("--watch", options->watch_seconds,
                                    "Again every second or every SECONDS, with operations, bytes and latencies")
                       ->expected(0, 1)
                       ->type_name("[SECONDS]");
  status_command
      ->add_flag("--all", options->all,
                 "All file systems that you have started on this machine, and whether they are up")
      ->excludes(options->watch);
  add_rsh_option(status_command, options->hosts);
  on_run(status_command, program, options, status);

  CLI::App* node = add_command(app, program, "node", "Show the storage nodes, and decide about them",
                               "  pif node list\n  pif node list --json\n  pif node accept-stale --list lfs1\n"
                               "  pif node lost lfs1\n  pif node accept-loss lfs5\n"
                               "  pif node replace --root /disk9/lfs1 lfs1");
  CLI::App* list = node->add_subcommand("list", "All LFSs with their addresses");
  list->fallthrough();
  node->require_subcommand(1);
  on_run(list, program, options, list_nodes);
  add_rescue_commands(app, *node, program);

  CLI::App* df = add_command(app, program, "df", "Show the space of every LFS", "  pif df\n  pif df --json");
  df->add_flag_callback(
      "-h,--human-readable", [] {}, "Accepted: sizes are always in KiB, MiB and so on");
  on_run(df, program, options, space);
  return node;
}

}  // namespace pif::cli
