// What `pif doctor` finds on the other hosts of a file system.
#include <fmt/format.h>

#include "doctor/doctor.h"
#include "hosts/several_hosts.h"

namespace pif::cli {
namespace {

void add_findings(Doctor& doctor, const std::string& host, const Json& document) {
  const Json checks = document.value("checks", Json::array());
  std::size_t well = 0;
  for (const Json& check : checks) {
    const std::string state = check.value("state", ""), text = fmt::format("{}: {}", host, check.value("text", ""));
    const std::string todo = fmt::format("on {}: {}", host, check.value("do", ""));
    if (state == "wrong") doctor.wrong(check.value("check", ""), text, todo);
    if (state == "warning") doctor.warn(check.value("check", ""), text, todo);
    well += state == "ok" ? 1 : 0;
  }
  if (well == checks.size()) doctor.ok("hosts", fmt::format("{}: all {} checks are well", host, well));
}

}  // namespace

void check_hosts(Doctor& doctor, const cluster::Cluster& cluster, const RemoteShell& shell) {
  for (const HostAnswer& answer : SeveralHosts(cluster, shell).examine_others()) {
    if (answer.answer) {
      add_findings(doctor, answer.host, *answer.answer);
    } else {
      doctor.wrong("hosts", answer.answer.error().text, "then run pif doctor again");
    }
  }
}

}  // namespace pif::cli
