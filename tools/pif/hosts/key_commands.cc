// key rotate: another key for the MACs of credentials and capabilities.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "daemons/daemons.h"
#include "daemons/startup.h"
#include "hosts/hosts_commands.h"
#include "hosts/key_change.h"
#include "hosts/one_host.h"
#include "hosts/several_hosts.h"
#include "pif/base/decimal.h"
#include "pif/base/print.h"
#include "pif/cluster/key_file.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr auto kDaemonsLook = std::chrono::milliseconds(2500);  // they look each second whether the key has changed

struct KeyOptions {
  std::string folder;
  std::int64_t seconds = kOldKeySeconds;
  HostsOptions hosts;
};

std::int64_t wall_seconds() { return std::time(nullptr); }

// The key as it is here goes to all other hosts.
Status send_key(const Program& program, const cluster::Cluster& cluster, const RemoteShell& shell,
                const std::string& failed) {
  if (!cluster.has_hosts()) return {};
  const auto answers = SeveralHosts(cluster, shell).send();
  return report_hosts(
      program, answers, failed,
      fmt::format("mend what is said above, and run `pif key rotate {}` again", shell_word(cluster.folder)));
}

Outcome key_rotate(const Program& program, const KeyOptions& options) {
  const std::string& named = options.folder.empty() ? program.common.where : options.folder;
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(named));
  PIF_TRY_VALUE(const cluster::Cluster cluster, load_system(folder));
  PIF_TRY(cluster::check_ready(cluster));
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  PIF_TRY(change_key(program, cluster, RemoteShell(options.hosts.rsh), options.seconds));
  PIF_TRY_VALUE(const cluster::KeyFile keys, cluster::load_key_file(cluster));
  const std::int64_t left = std::max<std::int64_t>(0, keys.until - wall_seconds());
  if (program.common.json) {
    PIF_TRY(print(Json{{"folder", cluster.folder}, {"number", keys.number}, {"old_key_seconds", left}}));
  } else if (!program.common.quiet) {
    PIF_TRY(print(fmt::format("{} has key number {}; the one before is good for {} s more\n", cluster.folder,
                              keys.number, left)));
  }
  return ExitCode::kDone;
}

}  // namespace

Status change_key(const Program& program, const cluster::Cluster& cluster, const RemoteShell& shell,
                  std::int64_t seconds) {
  PIF_TRY_VALUE(const cluster::KeyFile before, cluster::load_key_file(cluster));
  if (!before.has_old(wall_seconds())) {
    PIF_TRY(cluster::begin_key_change(cluster));
    PIF_TRY(send_key(program, cluster, shell, "the new key is not used yet, for it is not accepted"));
    std::this_thread::sleep_for(kDaemonsLook);
    PIF_TRY(cluster::end_key_change(cluster, wall_seconds(), seconds));
  }
  return send_key(program, cluster, shell, "the old key still signs");
}

Result<bool> is_key_changing(const cluster::Cluster& cluster) {
  PIF_TRY_VALUE(const cluster::KeyFile keys, cluster::load_key_file(cluster));
  return keys.is_changing();
}

void add_key_command(CLI::App& app, Program& program) {
  CLI::App* key = add_command(app, program, "key", "Change the key under which the daemons sign",
                              "  pif key rotate\n  pif key rotate --old-good-for 60 /data/pif");
  key->require_subcommand(1);
  CLI::App* rotate = key->add_subcommand(
      "rotate", "Another key, on all hosts and without a restart; again, it goes on where it has stopped");
  rotate->fallthrough();
  auto options = std::make_shared<KeyOptions>();
  rotate->add_option("DIR", options->folder, "Folder of the file system (default: as for all commands)");
  rotate
      ->add_option("--old-good-for", options->seconds,
                   "How long the old key is accepted; less than 600 s costs clients what they have open")
      ->type_name("SECONDS")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{kOldKeySeconds}))
      ->transform(whole_number)
      ->capture_default_str();
  add_rsh_option(rotate, options->hosts);
  on_run(rotate, program, options, key_rotate);
}

}  // namespace pif::cli
