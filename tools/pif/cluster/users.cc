// user add: keys for those who are not the owner, and use the file system over tcp.
#include <memory>

#include <fmt/format.h>

#include "command/program.h"
#include "hosts/hosts_commands.h"
#include "hosts/one_host.h"
#include "hosts/several_hosts.h"
#include "pif/base/decimal.h"
#include "pif/base/print.h"
#include "pif/cluster/users.h"

namespace pif::cli {
namespace {

struct UserOptions {
  std::string name;
  CLI::Option* has_uid = nullptr;
  CLI::Option* has_gid = nullptr;
  std::uint32_t uid = 0, gid = 0;
  HostsOptions hosts;
};

Result<cluster::User> user_of(const UserOptions& options) {
  if (options.has_uid->count() == 0) return cluster::look_up_user(options.name);
  return cluster::User{options.name, options.uid, {options.has_gid->count() == 0 ? options.uid : options.gid}};
}

Outcome user_add(const Program& program, const UserOptions& options) {
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(program.common.where));
  PIF_TRY_VALUE(cluster::Cluster cluster, load_system(folder));
  if (cluster.tcp != cluster::TcpMode::kCurve)
    return fail(Code::kInvalid, fmt::format("{} does not listen on tcp with keys: its users need none", folder));
  PIF_TRY_VALUE(const cluster::User user, user_of(options));
  PIF_TRY_VALUE(const net::CurveKeys pair, cluster::add_user(cluster, user));
  if (cluster.has_hosts()) PIF_TRY(publish_edition(program, cluster, RemoteShell(options.hosts.rsh)));
  const std::string text = cluster::format_keys(pair);
  if (program.common.json) {
    PIF_TRY(print(Json{{"user", user.name}, {"uid", user.uid}, {"cluster", cluster.id}, {"keys", text}}));
    return ExitCode::kDone;
  }
  PIF_TRY(print(text));
  if (!program.common.quiet)
    print_error(fmt::format("these two lines are for {0} alone, in ~/.config/pif/keys/{1}.curve, mode 0600\n",
                            user.name, cluster.id));
  return ExitCode::kDone;
}

}  // namespace

void add_user_command(CLI::App& app, Program& program) {
  CLI::App* user = add_command(app, program, "user", "Let other users in over tcp",
                               "  (umask 077; pif user add ann >ann.curve)\n  pif user add --uid 1007 --gid 100 ben");
  user->require_subcommand(1);
  CLI::App* add = user->add_subcommand("add", "Make a pair of keys, and print it for the user");
  add->fallthrough();
  auto options = std::make_shared<UserOptions>();
  add->add_option("NAME", options->name, "Who may use it; a user of this machine, but for --uid")->required();
  options->has_uid = add->add_option("--uid", options->uid, "His number on all hosts (default: as on this machine)")
                         ->type_name("N")
                         ->transform(whole_number);
  options->has_gid = add->add_option("--gid", options->gid, "The number of his group (default: the same)")
                         ->type_name("N")
                         ->transform(whole_number)
                         ->needs(options->has_uid);
  add_rsh_option(add, options->hosts);
  on_run(add, program, options, user_add);
}

}  // namespace pif::cli
