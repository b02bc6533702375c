// config: the keys of pif.toml that may be set at any time.
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "command/program.h"
#include "daemons/daemons.h"
#include "hosts/hosts_commands.h"
#include "hosts/one_host.h"
#include "hosts/several_hosts.h"

namespace pif::cli {
namespace {

struct ConfigOptions {
  std::string key, value;
  HostsOptions hosts;
};

// What a key is for, in the order of kSettings.
constexpr std::array<std::string_view, cluster::kSettings.size()> kMeanings = {
    "folders of the hosts that --read and --write give to workers of tools",
    "of the host that one process of a worker may take; none: no limit, for tools built with sanitizers"};

std::string_view value_of(const cluster::Cluster& cluster, const cluster::Setting& setting) {
  return cluster.*setting.is_normal ? setting.normal : setting.other;
}

Outcome config_list(const Program& program, const ConfigOptions&) {
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(program.common.where));
  PIF_TRY_VALUE(const cluster::Cluster cluster, load_system(folder));
  Json values = Json::object();
  std::string text;
  for (std::size_t i = 0; i < kMeanings.size(); ++i) {
    const cluster::Setting& setting = cluster::kSettings[i];
    values[std::string(setting.key)] = value_of(cluster, setting);
    text += fmt::format("{} = {}   # {} or {}: {}\n", setting.key, value_of(cluster, setting), setting.normal,
                        setting.other, kMeanings[i]);
  }
  if (program.common.json)
    PIF_TRY(print(values));
  else
    PIF_TRY(print(text));
  return ExitCode::kDone;
}

Result<cluster::Setting> setting_of(const ConfigOptions& options) {
  const auto& all = cluster::kSettings;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.key == options.key; });
  if (found == all.end())
    return fail(Code::kInvalid, fmt::format("'{}' is no key that can be set: pif config list shows them", options.key));
  if (options.value != found->normal && options.value != found->other)
    return fail(Code::kInvalid,
                fmt::format("{} is {} or {}, not '{}'", found->key, found->normal, found->other, options.value));
  return *found;
}

Outcome config_set(const Program& program, const ConfigOptions& options) {
  PIF_TRY_VALUE(const cluster::Setting setting, setting_of(options));
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(program.common.where));
  PIF_TRY_VALUE(cluster::Cluster cluster, load_system(folder));
  PIF_TRY(cluster::check_ready(cluster));
  if (cluster.has_hosts() && !cluster.serves_here())
    return fail(Code::kInvalid, fmt::format("pif.toml is changed on the PIF Server's host, {}: run this command there",
                                            cluster.servers.front().host));
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  PIF_TRY_VALUE(cluster, load_system(folder));  // as whoever had the lock has left it
  if (value_of(cluster, setting) == options.value) return ExitCode::kDone;
  cluster.*setting.is_normal = options.value == setting.normal;
  if (cluster.has_hosts())
    PIF_TRY(publish_edition(program, cluster, RemoteShell(options.hosts.rsh)));
  else
    PIF_TRY(cluster::save_cluster(cluster));
  return ExitCode::kDone;
}

}  // namespace

void add_config_command(CLI::App& app, Program& program) {
  CLI::App* config = add_command(app, program, "config", "Settings of the file system, in its pif.toml",
                                 "  pif config list\n  pif config set grants none");
  config->require_subcommand(1);
  auto options = std::make_shared<ConfigOptions>();
  CLI::App* list = config->add_subcommand("list", "Show all settings, and what they may be");
  list->fallthrough();
  on_run(list, program, options, config_list);
  CLI::App* set = config->add_subcommand("set", "Change one; LFSs heed it for workers that start from then on");
  set->fallthrough();
  set->add_option("KEY", options->key, "Which one: grants or worker-memory")->required();
  set->add_option("VALUE", options->value, "grants: any or none; worker-memory: half or none")->required();
  add_rsh_option(set, options->hosts);
  on_run(set, program, options, config_set);
}

}  // namespace pif::cli
