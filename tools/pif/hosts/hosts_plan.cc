#include "hosts/hosts_plan.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pif/base/print.h"

namespace pif::cli {
namespace {

using Addresses = std::set<std::string>;  // as numbers

std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  if (address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  return text.data();
}

Result<Addresses> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return fail_errno(errno, "cannot find this machine's addresses");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> held(first, &::freeifaddrs);
  Addresses own;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr != nullptr) own.insert(numeric(at->ifa_addr));
  }
  own.erase("");
  return own;
}

Result<Addresses> addresses_of(const cluster::HostEntry& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(host.address.c_str(), nullptr, &hints, &first); error != 0)
    return fail(Code::kInvalid, fmt::format("host {}: the address {} is not known here ({}): give one as {}=ADDRESS",
                                            host.name, host.address, ::gai_strerror(error), host.name));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> held(first, &::freeaddrinfo);
  Addresses found;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) found.insert(numeric(at->ai_addr));
  return found;
}

// Two names for one host would be two hosts with one port.
Status check_addresses(const std::vector<cluster::HostEntry>& hosts) {
  std::map<std::string, std::string> owners;
  for (const cluster::HostEntry& host : hosts) {
    PIF_TRY_VALUE(const Addresses addresses, addresses_of(host));
    for (const std::string& address : addresses) {
      const auto [other, is_new] = owners.emplace(address, host.name);
      if (!is_new && other->second != host.name)
        return fail(Code::kInvalid, fmt::format("hosts {} and {} have one address, {}: they are one host",
                                                other->second, host.name, address));
    }
  }
  return {};
}

void add_lfss(cluster::Cluster& plan, std::size_t hosts, const HostsOptions& options) {
  for (std::uint32_t round = 0; round < options.lfss_per_host; ++round) {
    for (std::size_t host = 0; host < hosts; ++host) {
      const auto number = static_cast<std::uint32_t>(plan.lfss.size());
      cluster::LfsEntry lfs;
      lfs.id = number + 1;
      lfs.name = fmt::format("lfs{}", number);
      lfs.host = plan.hosts[host].name;
      lfs.root = fmt::format("{}/{}", plan.hosts[host].folder, lfs.name);
      lfs.port = static_cast<std::uint16_t>(options.port + 1 + round);
      plan.lfss.push_back(std::move(lfs));
    }
  }
}

}  // namespace

Result<std::vector<cluster::HostEntry>> parse_hosts(const std::string& list, const std::string& folder) {
  std::vector<cluster::HostEntry> hosts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    const std::string name = word.substr(0, word.find('='));
    const std::string address = name.size() < word.size() ? word.substr(name.size() + 1) : name;
    if (const Status good = cluster::check_host_name(name); !good)
      return fail(Code::kInvalid,
                  fmt::format("\"{}\" cannot be a host's name: it {}", one_line(name), good.error().text));
    if (const Status good = cluster::check_address(address); !good)
      return fail(Code::kInvalid,
                  fmt::format("the address of {}, \"{}\", {}", name, one_line(address), good.error().text));
    const auto same = [&](const cluster::HostEntry& host) { return host.name == name; };
    if (std::any_of(hosts.begin(), hosts.end(), same))
      return fail(Code::kInvalid, fmt::format("the host {} is named twice", name));
    hosts.push_back({name, address, "", folder});
    begin = end + 1;
  }
  return hosts;
}

Result<std::string> find_own_host(const std::vector<cluster::HostEntry>& hosts) {
  PIF_TRY_VALUE(const Addresses own, own_addresses());
  std::vector<std::string> names, found;
  for (const cluster::HostEntry& host : hosts) {
    PIF_TRY_VALUE(const Addresses addresses, addresses_of(host));
    names.push_back(host.name);
    const auto is_own = [&](const std::string& address) { return own.count(address) != 0; };
    if (std::any_of(addresses.begin(), addresses.end(), is_own)) found.push_back(host.name);
  }
  if (found.size() == 1) return found[0];
  return fail(Code::kInvalid,
              found.empty()
                  ? fmt::format("none of the hosts {} has an address of this machine: say which one it is with "
                                "--host NAME, or run this on one of them",
                                fmt::join(names, ", "))
                  : fmt::format("the hosts {} all have addresses of this machine: say which one it is with "
                                "--host NAME",
                                fmt::join(found, ", ")));
}

Result<cluster::Cluster> plan_hosts(const std::string& folder, const HostsOptions& options) {
  cluster::Cluster plan;
  plan.tcp = cluster::TcpMode::kCurve;
  plan.worker_ports = options.worker_ports;
  PIF_TRY_VALUE(plan.hosts, parse_hosts(options.hosts, folder));
  const std::size_t with_lfss = plan.hosts.size();
  if (!options.client_hosts.empty()) {
    PIF_TRY_VALUE(const auto others, parse_hosts(options.client_hosts, folder));
    plan.hosts.insert(plan.hosts.end(), others.begin(), others.end());
  }
  PIF_TRY(check_addresses(plan.hosts));
  plan.own_host = options.own;
  if (plan.own_host.empty()) {
    PIF_TRY_VALUE(plan.own_host, find_own_host(plan.hosts));
  }
  plan.servers.push_back({1, plan.hosts[0].name, options.port});
  add_lfss(plan, with_lfss, options);
  return plan;
}

}  // namespace pif::cli
