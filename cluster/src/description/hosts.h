// Which host of the description this machine is, and how hosts are named.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {

inline std::string own_host_path(const std::string& folder) { return folder + "/host"; }

// The content of FOLDER/host; empty if there is no such file. kInvalid if it is not one line with a host's name.
[[nodiscard]] Result<std::string> read_own_host(const std::string& folder);
// An address in the form in which two of one host are equal: case and the zeros of IPv6 do not matter.
std::string plain_address(std::string_view address);

// "tcp://ADDRESS:PORT", with brackets around IPv6.
std::string tcp_endpoint(std::string_view address, std::uint16_t port);
// Where a daemon listens for `address`: itself, or what a name stands for here. With loopback addresses only if there
// are no others, and `may_be_loopback`. kInvalid says what to write into pif.toml.
[[nodiscard]] Result<std::string> resolve_own(const std::string& address, bool may_be_loopback);

// Both ends belong to it. {0, 0}: any port, as the kernel chooses.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool contains(std::uint16_t port) const { return first <= port && port <= last; }
};
// "7500-7999"; "any" is {0, 0}. kInvalid for anything else.
[[nodiscard]] Result<PortRange> parse_port_range(std::string_view text);

}  // namespace pif::cluster
