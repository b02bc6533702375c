#include "worker/worker_ports.h"

#include <charconv>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::tool {
namespace {

constexpr std::string_view kTcp = "tcp://";

// All of `text` as a port.
bool parse_port(std::string_view text, std::uint16_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<WorkerPorts> parse_worker_listen(std::string_view text) {
  const auto colon = text.rfind(':');
  WorkerPorts out;
  const bool has_address = text.starts_with(kTcp) && colon != std::string_view::npos && colon > kTcp.size();
  bool is_good = has_address;
  if (has_address) {
    out.address = text.substr(kTcp.size(), colon - kTcp.size());
    const std::string_view ports = text.substr(colon + 1);
    const auto dash = ports.find('-');
    is_good = parse_port(ports.substr(0, dash), out.first);
    if (is_good && dash != std::string_view::npos)
      is_good = parse_port(ports.substr(dash + 1), out.last) && out.first > 0 && out.first <= out.last;
    else
      is_good = is_good && out.first == 0;
  }
  if (is_good) return out;
  return fail(Code::kInvalid, fmt::format("${} is '{}': it comes from the LFS", kWorkerListen, text));
}

Result<Mailbox> listen_at_free_port(const WorkerPorts& ports, std::uint64_t start,
                                    const std::function<Result<Mailbox>(const std::string& tcp)>& listen_at) {
  PIF_ASSERT(ports.first <= ports.last, ports.first, ports.last);
  const std::uint64_t count = ports.last - ports.first + 1u;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto box = listen_at(fmt::format("tcp://{}:{}", ports.address, ports.first + (start + i) % count));
    if (box || box.error().code != Code::kBusy) return box;
  }
  return fail(
      Code::kBusy,
      fmt::format("all ports for workers at {} are taken ({}-{}): wait until other jobs have ended, or give more "
                  "in pif.toml (worker-ports)",
                  ports.address, ports.first, ports.last));
}

std::string advertised(const std::string& tcp, std::string_view known_as) {
  PIF_ASSERT(tcp.rfind(':') != std::string::npos, tcp.size());  // this process listens there
  return fmt::format("{}{}", known_as.substr(0, known_as.rfind(':')), tcp.substr(tcp.rfind(':')));
}

}  // namespace pif::tool
