// Where a worker listens for workers of other machines: at its LFS's own address, at one of the file system's
// worker-ports. The LFS says both in the worker's environment (docs/PROTOCOL.md "Worker host").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "pif/base/result.h"
#include "pif/tool/worker.h"

namespace pif::tool {

inline constexpr const char* kWorkerListen = "PIF_WORKER_LISTEN";

struct WorkerPorts {
  std::string address;      // of this machine, as an endpoint has it: in brackets if it is IPv6
  std::uint16_t first = 0;  // 0 and 0: any port
  std::uint16_t last = 0;
};
// "tcp://ADDRESS:FIRST-LAST", or "tcp://ADDRESS:0". kInvalid for anything else.
[[nodiscard]] Result<WorkerPorts> parse_worker_listen(std::string_view text);

// Listens at the first port that is free, `start` of them on from the first and around: workers of one machine begin at
// different ones. `listen_at`: takes an endpoint; kBusy: somebody has it. kBusy, naming address and setting, if all
// are taken; else the first other error.
[[nodiscard]] Result<Mailbox> listen_at_free_port(
    const WorkerPorts& ports, std::uint64_t start,
    const std::function<Result<Mailbox>(const std::string& tcp)>& listen_at);

// `tcp`, which somebody listens at, with the address that others know instead.
std::string advertised(const std::string& tcp, std::string_view known_as);

}  // namespace pif::tool
