// A file system of several hosts, as a whole: this host itself, the others through a remote shell, all at once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "command/program.h"
#include "hosts/one_host.h"
#include "hosts/remote_shell.h"
#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

// The answer of a host, or why there is none; errors name the host.
struct HostAnswer {
  std::string host;
  Result<Json> answer = Json();
};

class SeveralHosts {
 public:
  // `cluster` has hosts, and must outlive this.
  SeveralHosts(const cluster::Cluster& cluster, RemoteShell shell) : cluster_(cluster), shell_(std::move(shell)) {}

  // The answers of all hosts, in the order of pif.toml. No host stops the others.
  std::vector<HostAnswer> up() const;  // a host whose pif.toml is older is sent this one
  std::vector<HostAnswer> down() const;
  std::vector<HostAnswer> status() const;
  // The findings of `pif doctor` on each of the others.
  std::vector<HostAnswer> examine_others() const;
  // Sends pif.toml, what else all hosts have alike, and the cluster's key to all others.
  std::vector<HostAnswer> send() const;
  // For a new file system: gives each host what is its own, makes the folders, and writes down that they are there when
  // all hosts have said so. Again, too. Changes `cluster`, and sends it.
  [[nodiscard]] static Result<std::vector<HostAnswer>> make_ready(cluster::Cluster& cluster, const RemoteShell& shell);
  // Sees that `host` has pif.toml as `cluster` is, the keys, and the root of `lfs` (empty: of none). One that has no
  // files yet gets a new pair of keys. Writes `cluster` down here first: what fails goes on when it is done again.
  [[nodiscard]] static Status admit(cluster::Cluster& cluster, const RemoteShell& shell, const std::string& host,
                                    const std::string& lfs);
  // up() of one host.
  [[nodiscard]] Result<Json> up_one(const std::string& host) const;

 private:
  [[nodiscard]] Result<KnownSystem> known_system() const;  // as it is here
  // `input_of`: what the command of a host has on its standard input.
  Result<Json> ask_one(const std::string& host, const std::vector<std::string>& command,
                       const std::vector<std::string>& options, std::string input) const;
  std::vector<HostAnswer> ask_others(const std::vector<std::string>& command, const std::vector<std::string>& options,
                                     const std::function<std::string(const std::string&)>& input_of) const;
  std::vector<HostAnswer> ask_all(const std::vector<std::string>& command, const std::vector<std::string>& options,
                                  const std::function<Result<Json>()>& here) const;
  std::vector<HostAnswer> in_order(std::vector<HostAnswer> answers) const;

  const cluster::Cluster& cluster_;
  RemoteShell shell_;
};

// Writes down a new edition of pif.toml, and sends it with all public keys to all other hosts. One that cannot be
// reached is a note on stderr: it gets them when its daemons ask, or with the next `pif up`.
[[nodiscard]] Status publish_edition(const Program& program, cluster::Cluster& cluster, const RemoteShell& shell);

// Says each error on stderr. kUnavailable if there was one: `what` has failed on how many hosts, and what to do.
[[nodiscard]] Status report_hosts(const Program& program, const std::vector<HostAnswer>& answers,
                                  const std::string& what, const std::string& todo);

}  // namespace pif::cli
