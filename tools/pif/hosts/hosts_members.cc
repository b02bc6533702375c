// host add, host remove, node add: which hosts and LFSs a file system of several hosts consists of.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command/program.h"
#include "daemons/daemons.h"
#include "daemons/startup.h"
#include "hosts/hosts_commands.h"
#include "hosts/hosts_plan.h"
#include "hosts/one_host.h"
#include "hosts/several_hosts.h"
#include "pif/base/print.h"
#include "pif/cluster/cluster.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct MemberOptions {
  std::string host;  // "h5", "h5=10.0.0.5", with ":/ROOT" for `node add`
  std::string folder;
  bool shut_out = false;
  HostsOptions hosts;
};

Result<cluster::Cluster> load_with_hosts(const Program& program) {
  PIF_TRY_VALUE(const std::string folder, cluster::find_cluster(program.common.where));
  PIF_TRY_VALUE(cluster::Cluster cluster, load_system(folder));
  if (!cluster.has_hosts())
    return fail(Code::kInvalid,
                fmt::format("{} is on this machine alone: only one made with pif init --hosts has hosts", folder));
  PIF_TRY(cluster::check_ready(cluster));
  return cluster;
}

// The host that the words name, as pif.toml has it or as it will.
Result<std::string> add_host(cluster::Cluster& cluster, const std::string& words, const std::string& folder) {
  const cluster::HostEntry* own = cluster.find_host(cluster.own_host);
  PIF_TRY_VALUE(const auto hosts, parse_hosts(words, folder.empty() ? own->folder : folder));
  if (hosts.size() != 1) return fail(Code::kInvalid, "name one host");
  const cluster::HostEntry& host = hosts[0];
  const cluster::HostEntry* present = cluster.find_host(host.name);
  if (present == nullptr) {
    cluster.hosts.push_back(host);
  } else if (host.address != host.name && host.address != present->address) {
    return fail(Code::kInvalid, fmt::format("{} has the address {}", host.name, present->address));
  }
  return host.name;
}

std::uint16_t free_port(const cluster::Cluster& cluster, const std::string& host) {
  std::uint16_t port = cluster.servers.front().port;
  for (const auto& lfs : cluster.lfss) {
    if (lfs.host == host) port = std::max(port, lfs.port);
  }
  return static_cast<std::uint16_t>(port + 1);
}

// The LFS with that root, which is added if there is none: done again, it goes on.
Result<std::string> add_lfs(cluster::Cluster& cluster, const std::string& host, const std::string& root) {
  cluster::LfsEntry added;
  for (const auto& lfs : cluster.lfss) {
    if (lfs.host == host && lfs.root == root) return lfs.name;
    added.id = std::max(added.id, lfs.id);
  }
  added.name = fmt::format("lfs{}", added.id++);
  added.host = host;
  added.root = root;
  added.port = free_port(cluster, host);
  PIF_TRY_VALUE(added.uuid, cluster::random_uuid());
  cluster.lfss.push_back(added);
  return added.name;
}

// The host may have done it, or do it when it is asked again; one that has refused has not.
bool can_go_on(const Error& error) { return error.code == Code::kUnavailable || error.code == Code::kTimeout; }

Outcome host_add(const Program& program, const MemberOptions& options) {
  PIF_TRY_VALUE(cluster::Cluster cluster, load_with_hosts(program));
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  PIF_TRY_VALUE(const std::string host, add_host(cluster, options.host, options.folder));
  const RemoteShell shell(options.hosts.rsh);
  PIF_TRY(SeveralHosts::admit(cluster, shell, host, ""));
  PIF_TRY(publish_edition(program, cluster, shell));
  if (!program.common.quiet) print_error(fmt::format("{} is a host of {}\n", host, cluster.folder));
  return ExitCode::kDone;
}

Outcome node_add(const Program& program, const MemberOptions& options) {
  const std::size_t colon = options.host.find(":/");
  if (colon == std::string::npos)
    return fail(Code::kInvalid, fmt::format("{}: say HOST:ROOT, such as h5:/disk1/lfs", one_line(options.host)));
  PIF_TRY_VALUE(cluster::Cluster cluster, load_with_hosts(program));
  PIF_TRY_VALUE(UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  const cluster::Cluster before = cluster;
  PIF_TRY_VALUE(const std::string host, add_host(cluster, options.host.substr(0, colon), options.folder));
  PIF_TRY_VALUE(const std::string lfs, add_lfs(cluster, host, options.host.substr(colon + 1)));
  const RemoteShell shell(options.hosts.rsh);
  if (const Status admitted = SeveralHosts::admit(cluster, shell, host, lfs); !admitted) {
    if (can_go_on(admitted.error())) return fail(admitted.error());
    cluster.hosts = before.hosts;
    cluster.lfss = before.lfss;
    PIF_TRY(publish_edition(program, cluster, shell));
    return fail(admitted.error());
  }
  PIF_TRY(publish_edition(program, cluster, shell));
  alone.reset();
  PIF_TRY(SeveralHosts(cluster, shell).up_one(host));
  Startup elsewhere;
  PIF_TRY(await_up(cluster, elsewhere, {{lfs, 0}}));
  if (!program.common.quiet) print_error(fmt::format("{} is up on {}: new files use it\n", lfs, host));
  return ExitCode::kDone;
}

Outcome host_remove(const Program& program, const MemberOptions& options) {
  PIF_TRY_VALUE(cluster::Cluster cluster, load_with_hosts(program));
  PIF_TRY_VALUE(const UniqueFd alone, lock_out_starters(cluster, kSystemUpDeadline));
  if (cluster.find_host(options.host) == nullptr)
    return fail(Code::kNotFound, fmt::format("{}/pif.toml has no host {}", cluster.folder, one_line(options.host)));
  if (options.host == cluster.own_host)
    return fail(Code::kInvalid, fmt::format("{} is this host: say so on another one", options.host));
  std::vector<std::string> there;
  for (const auto& server : cluster.servers) {
    if (server.host == options.host) there.emplace_back("the server");
  }
  for (const auto& lfs : cluster.lfss) {
    if (lfs.host == options.host) there.push_back(lfs.name);
  }
  if (!there.empty() && !options.shut_out)
    return fail(Code::kBusy,
                fmt::format("{} has {}, without which files cannot be read: to refuse its key all the same "
                            "say --shut-out",
                            options.host, fmt::join(there, ", ")));
  for (const char* key :
       {"{}/keys/hosts/{}.pub", "{}/keys/clients/host-{}.pub"}) {  // its daemons', and the owner's there
    const std::string path = fmt::format(fmt::runtime(key), cluster.folder, options.host);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, "cannot remove " + path);
  }
  if (there.empty()) std::erase_if(cluster.hosts, [&](const auto& host) { return host.name == options.host; });
  PIF_TRY(publish_edition(program, cluster, RemoteShell(options.hosts.rsh)));
  if (!program.common.quiet)
    print_error(
        fmt::format("{} is refused from now on; it has seen the cluster's key, which is changed by: pif key rotate\n",
                    options.host));
  return ExitCode::kDone;
}

CLI::App* add_member_command(CLI::App& parent, const char* name, const char* description, MemberOptions& options,
                             const char* operand, const char* meaning) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->fallthrough();
  command->add_option(operand, options.host, meaning)->required();
  add_rsh_option(command, options.hosts);
  return command;
}

void add_folder_option(CLI::App* command, MemberOptions& options) {
  command->add_option("--folder", options.folder, "The file system's folder there (default: the same as here)")
      ->type_name("DIR");
}

}  // namespace

void add_member_commands(CLI::App& host, CLI::App& node, Program& program) {
  auto options = std::make_shared<MemberOptions>();
  CLI::App* add = add_member_command(host, "add", "Make another host part of it; a known one gets new keys", *options,
                                     "HOST", "Its name, or NAME=ADDRESS");
  add_folder_option(add, *options);
  on_run(add, program, options, host_add);
  CLI::App* remove = add_member_command(host, "remove", "Let a host in no longer", *options, "HOST", "Its name");
  remove->add_flag("--shut-out", options->shut_out, "Also one with an LFS or the server: its key is refused");
  on_run(remove, program, options, host_remove);
  CLI::App* add_node = add_member_command(node, "add", "A new LFS, on a host of it or a new one", *options, "HOST:ROOT",
                                          "The host, as in pif host add, and an absolute folder there");
  add_folder_option(add_node, *options);
  on_run(add_node, program, options, node_add);
}

}  // namespace pif::cli
