#include "hosts/several_hosts.h"

#include <algorithm>
#include <chrono>
#include <future>

#include <fmt/format.h>

#include "daemons/roots.h"
#include "hosts/one_host.h"
#include "hosts/sent_files.h"
#include "pif/base/assert.h"
#include "pif/base/print.h"
#include "pif/cluster/key_file.h"

namespace pif::cli {
namespace {

constexpr auto kHostPatience = std::chrono::seconds(40);  // more than a host takes to start or to stop its daemons

std::string no_input(const std::string&) { return {}; }

std::vector<std::string> up_options(const KnownSystem& known) {
  std::vector<std::string> options = {"--id", known.id, "--edition", std::to_string(known.edition)};
  if (known.key_number > 0) options.insert(options.end(), {"--key-number", std::to_string(known.key_number)});
  return options;
}

// What all hosts have alike, and the key, which daemons do not hand out.
Result<std::string> pack_shared(const cluster::Cluster& cluster) {
  PIF_TRY_VALUE(auto shared, cluster::read_shared_files(cluster));
  PIF_TRY_VALUE(const cluster::KeyFile keys, cluster::load_key_file(cluster));
  return pack_files({{}, std::move(shared), cluster::format_key_file(keys), {}, {}});
}

bool is_behind(const HostAnswer& answer) { return answer.answer && answer.answer->contains("behind"); }

}  // namespace

Result<KnownSystem> SeveralHosts::known_system() const {
  PIF_TRY_VALUE(const cluster::KeyFile keys, cluster::load_key_file(cluster_));
  return KnownSystem{cluster_.id, cluster_.edition, keys.number};
}

Result<Json> SeveralHosts::ask_one(const std::string& host, const std::vector<std::string>& command,
                                   const std::vector<std::string>& options, std::string input) const {
  const cluster::HostEntry* entry = cluster_.find_host(host);
  PIF_ASSERT(entry != nullptr, cluster_.hosts.size());
  std::vector<std::string> words = command;
  words.push_back(entry->folder);
  words.insert(words.end(), options.begin(), options.end());
  return std::move(shell_.ask({{host, entry->address, std::move(words), std::move(input)}}, kHostPatience)[0]);
}

std::vector<HostAnswer> SeveralHosts::ask_others(const std::vector<std::string>& command,
                                                 const std::vector<std::string>& options,
                                                 const std::function<std::string(const std::string&)>& input_of) const {
  std::vector<RemoteCommand> commands;
  for (const cluster::HostEntry& host : cluster_.hosts) {
    if (host.name == cluster_.own_host) continue;
    std::vector<std::string> words = command;
    words.push_back(host.folder);
    words.insert(words.end(), options.begin(), options.end());
    commands.push_back({host.name, host.address, std::move(words), input_of(host.name)});
  }
  auto said = shell_.ask(commands, kHostPatience);
  std::vector<HostAnswer> answers;
  for (std::size_t i = 0; i < commands.size(); ++i) answers.push_back({commands[i].host, std::move(said[i])});
  return answers;
}

std::vector<HostAnswer> SeveralHosts::in_order(std::vector<HostAnswer> answers) const {
  const auto place = [this](const HostAnswer& answer) { return cluster_.find_host(answer.host); };
  std::sort(answers.begin(), answers.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return answers;
}

std::vector<HostAnswer> SeveralHosts::ask_all(const std::vector<std::string>& command,
                                              const std::vector<std::string>& options,
                                              const std::function<Result<Json>()>& here) const {
  auto others = std::async(std::launch::async, [&] { return ask_others(command, options, no_input); });
  auto own = here();
  std::vector<HostAnswer> answers = others.get();
  if (!own) own.error().text = fmt::format("{} (here): {}", cluster_.own_host, own.error().text);
  answers.push_back({cluster_.own_host, std::move(own)});
  return in_order(std::move(answers));
}

std::vector<HostAnswer> SeveralHosts::up() const {
  const auto known_here = known_system();
  if (!known_here) return {{cluster_.own_host, fail(known_here.error())}};
  const KnownSystem& known = *known_here;
  const std::vector<std::string> options = up_options(known);
  auto answers = ask_all({"host", "up"}, options, [&] { return up_here(cluster_.folder, known); });
  if (std::none_of(answers.begin(), answers.end(), is_behind)) return answers;
  const auto sent = send();
  auto again = ask_others({"host", "up"}, options, no_input);
  for (HostAnswer& answer : answers) {
    const auto same = [&](const HostAnswer& other) { return other.host == answer.host; };
    if (!is_behind(answer)) continue;
    answer = *std::find_if(again.begin(), again.end(), same);
    const auto why = std::find_if(sent.begin(), sent.end(), same);
    if (why != sent.end() && !why->answer) answer = *why;
  }
  return answers;
}

std::vector<HostAnswer> SeveralHosts::down() const {
  return ask_all({"host", "down"}, {}, [this] { return down_here(cluster_.folder); });
}

std::vector<HostAnswer> SeveralHosts::status() const {
  return ask_all({"host", "status"}, {}, [this] { return status_here(cluster_.folder); });
}

std::vector<HostAnswer> SeveralHosts::examine_others() const {
  return ask_others({"doctor", "--here", "--pif"}, {}, no_input);
}

std::vector<HostAnswer> SeveralHosts::send() const {
  const auto packed = pack_shared(cluster_);
  if (!packed) return {{cluster_.own_host, fail(packed.error())}};
  return ask_others({"host", "receive"}, {}, [&](const std::string&) { return *packed; });
}

Result<std::vector<HostAnswer>> SeveralHosts::make_ready(cluster::Cluster& cluster, const RemoteShell& shell) {
  const SeveralHosts all(cluster, shell);
  std::map<std::string, net::CurveKeys> pairs;
  for (const cluster::HostEntry& host : cluster.hosts) {
    if (host.name == cluster.own_host) continue;
    PIF_TRY_VALUE(pairs[host.name], cluster::make_host_keys(cluster, host.name));
  }
  std::map<std::string, std::string> packed;  // with all public keys, which are there by now
  for (const auto& [host, pair] : pairs) {
    PIF_TRY_VALUE(const cluster::HostFiles files, cluster::files_for_host(cluster, host, pair));
    PIF_TRY_VALUE(packed[host], pack_files(files));
  }
  auto answers = all.ask_others({"host", "receive"}, {}, [&](const std::string& host) { return packed[host]; });
  PIF_TRY(make_own_roots(cluster));
  if (std::any_of(answers.begin(), answers.end(), [](const auto& answer) { return !answer.answer; })) return answers;
  cluster.stage = cluster::Stage::kReady;
  ++cluster.edition;
  PIF_TRY(cluster::save_cluster(cluster));
  return all.send();
}

Status SeveralHosts::admit(cluster::Cluster& cluster, const RemoteShell& shell, const std::string& host,
                           const std::string& lfs) {
  ++cluster.edition;
  PIF_TRY(cluster::save_cluster(cluster));
  if (host == cluster.own_host) return make_missing_root(cluster, lfs);
  const SeveralHosts all(cluster, shell);
  const std::vector<std::string> options =
      lfs.empty() ? std::vector<std::string>() : std::vector<std::string>{"--make", lfs};
  PIF_TRY_VALUE(std::string packed, pack_shared(cluster));
  const auto answer = all.ask_one(host, {"host", "receive"}, options, std::move(packed));
  if (answer) return {};
  if (answer.error().code != Code::kNotFound) return fail(answer.error());
  PIF_TRY_VALUE(const net::CurveKeys pair, cluster::make_host_keys(cluster, host));
  PIF_TRY_VALUE(const cluster::HostFiles files, cluster::files_for_host(cluster, host, pair));
  PIF_TRY_VALUE(packed, pack_files(files));
  PIF_TRY(all.ask_one(host, {"host", "receive"}, options, std::move(packed)));
  return {};
}

Result<Json> SeveralHosts::up_one(const std::string& host) const {
  PIF_TRY_VALUE(const KnownSystem known, known_system());
  if (host == cluster_.own_host) return up_here(cluster_.folder, known);
  return ask_one(host, {"host", "up"}, up_options(known), {});
}

Status publish_edition(const Program& program, cluster::Cluster& cluster, const RemoteShell& shell) {
  ++cluster.edition;
  PIF_TRY(cluster::save_cluster(cluster));
  for (const HostAnswer& answer : SeveralHosts(cluster, shell).send()) {
    if (!answer.answer) print_error(fmt::format("pif: later: {}\n", program.text_of(answer.answer.error())));
  }
  return {};
}

Status report_hosts(const Program& program, const std::vector<HostAnswer>& answers, const std::string& what,
                    const std::string& todo) {
  std::vector<std::string> failed;
  for (const HostAnswer& answer : answers) {
    if (answer.answer) continue;
    failed.push_back(answer.host);
    print_error(fmt::format("pif: {}\n", program.text_of(answer.answer.error())));
  }
  if (failed.empty()) return {};
  return fail(Code::kUnavailable, fmt::format("{} on {} of {} hosts ({}): {}", what, failed.size(), answers.size(),
                                              fmt::join(failed, ", "), todo));
}

}  // namespace pif::cli
