#include "description/hosts.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "files/files.h"

namespace pif::cluster {
namespace {

constexpr std::size_t kHostNameMax = 63;
constexpr std::size_t kAddressMax = 253;  // of a name in DNS
constexpr mode_t kHostMode = 0644;

bool is_host_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  // A dash in front would be an option to some program.
  return !name.empty() && name.size() <= kHostNameMax && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), is_allowed);
}

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0)
    return fail(Code::kInvalid, "is not a port, 1 to 65535");
  return port;
}

bool is_literal(const std::string& address) {
  in6_addr any{};
  return ::inet_pton(AF_INET, address.c_str(), &any) == 1 || ::inet_pton(AF_INET6, address.c_str(), &any) == 1;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
}

// As others find them: ZeroMQ takes IPv6 where a name has both.
std::vector<const addrinfo*> best_first(const addrinfo* found) {
  std::vector<const addrinfo*> all;
  for (; found != nullptr; found = found->ai_next) {
    const bool is_local = found->ai_family == AF_INET6 &&
                          IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr);
    if (!is_local) all.push_back(found);
  }
  std::stable_sort(all.begin(), all.end(), [](const addrinfo* a, const addrinfo* b) {
    const auto rank = [](const addrinfo* one) {
      return (is_loopback(one->ai_addr) ? 2 : 0) + (one->ai_family == AF_INET6 ? 0 : 1);
    };
    return rank(a) < rank(b);
  });
  return all;
}

}  // namespace

const HostEntry* Cluster::find_host(std::string_view name) const {
  const auto found = std::find_if(hosts.begin(), hosts.end(), [&](const HostEntry& host) { return host.name == name; });
  return found == hosts.end() ? nullptr : &*found;
}

bool Cluster::serves_here() const {
  return hosts.empty() || std::any_of(servers.begin(), servers.end(),
                                      [&](const ServerEntry& server) { return server.host == own_host; });
}

std::string Cluster::folder_on(std::string_view host) const {
  if (host == own_host) return folder;
  const HostEntry* entry = find_host(host);
  return entry == nullptr ? std::string() : entry->folder;
}

Status check_host_name(std::string_view name) {
  if (is_host_name(name)) return {};
  return fail(Code::kInvalid, fmt::format("must be 1 to {} of a-z, 0-9, - and _, and not begin with -", kHostNameMax));
}

Status check_address(std::string_view address) {
  const std::string text(address);
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1) return {};
  const auto is_allowed = [](char c) { return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_'; };
  if (!text.empty() && text.size() <= kAddressMax && is_letter_or_digit(text[0]) &&
      std::all_of(text.begin(), text.end(), is_allowed))
    return {};
  return fail(Code::kInvalid, "must be a host name, an IPv4 address, or an IPv6 address without brackets");
}

std::string plain_address(std::string_view address) {
  std::string text(address);
  in6_addr six{};
  std::array<char, INET6_ADDRSTRLEN> plain{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1 &&
      ::inet_ntop(AF_INET6, &six, plain.data(), plain.size()) != nullptr)
    return plain.data();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string tcp_endpoint(std::string_view address, std::uint16_t port) {
  const bool is_ipv6 = address.find(':') != std::string_view::npos;
  return is_ipv6 ? fmt::format("tcp://[{}]:{}", address, port) : fmt::format("tcp://{}:{}", address, port);
}

Result<std::string> resolve_own(const std::string& address, bool may_be_loopback) {
  if (is_literal(address)) return address;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), nullptr, &wanted, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  if (error != 0)
    return fail(Code::kInvalid,
                fmt::format("the name {} is not known here ({}): write this host's address as `bind` into pif.toml",
                            address, ::gai_strerror(error)));
  const auto all = best_first(found);
  if (all.empty() || (is_loopback(all.front()->ai_addr) && !may_be_loopback))
    return fail(Code::kInvalid,
                fmt::format("the name {} stands here for an address that other hosts cannot reach (look into "
                            "/etc/hosts): write this host's address as `bind` into pif.toml",
                            address));
  std::array<char, INET6_ADDRSTRLEN> text{};
  const sockaddr* first = all.front()->ai_addr;
  const void* bytes = first->sa_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(first)->sin_addr)
                          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(first)->sin6_addr);
  if (::inet_ntop(first->sa_family, bytes, text.data(), text.size()) == nullptr)
    return fail_errno(errno, "cannot read the address of " + address);
  return std::string(text.data());
}

Result<PortRange> parse_port_range(std::string_view text) {
  if (text == "any") return PortRange{};
  const auto dash = text.find('-');
  const auto first = parse_port(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_port(text.substr(dash + 1));
  if (dash == std::string_view::npos || !first || !last || *first > *last)
    return fail(Code::kInvalid, "must be \"any\" or two ports with a dash between, such as \"7500-7999\"");
  return PortRange{*first, *last};
}

Result<std::string> read_own_host(const std::string& folder) {
  auto text = read_file(own_host_path(folder), kHostNameMax + 1);
  if (!text && text.error().code == Code::kNotFound) return std::string();
  if (!text && text.error().code != Code::kTooLarge) return fail(std::move(text.error()));
  if (text && text->ends_with('\n')) text->pop_back();
  if (text && is_host_name(*text)) return std::move(*text);
  return fail(Code::kInvalid, fmt::format("{} must be one line, the name that this host has in {}/pif.toml",
                                          own_host_path(folder), folder));
}

Status write_own_host(const std::string& folder, std::string_view name) {
  if (const Status good = check_host_name(name); !good)
    return fail(Code::kInvalid, fmt::format("{}: a host's name {}", own_host_path(folder), good.error().text));
  return write_file(own_host_path(folder), std::string(name) + "\n", kHostMode, Existing::kReplace);
}

}  // namespace pif::cluster
