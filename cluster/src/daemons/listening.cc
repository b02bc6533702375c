// Of daemons alone: what logs is not linked into clients.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "description/description.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {

Result<std::unique_ptr<net::Messenger>> start_listening(const Cluster& cluster, const std::string& daemon) {
  net::MessengerOptions options;
  auto listen = cluster.listen_options(daemon);
  auto messenger = listen.and_then([&](const net::ListenOptions& found) {
    options.listen = found;
    options.listen.on_refused = [](const std::string& what) { spdlog::warn("{}", what); };
    options.client_keys = found.curve;
    options.machine = cluster.own_machine();
    if (cluster.has_hosts()) options.io_threads = 2;  // they encrypt
    return net::make_real_messenger(options);
  });
  if (!messenger && cluster.has_hosts())
    messenger.error().text = fmt::format("host {} (its addresses and ports are in {}): {}", cluster.own_host,
                                         description_path(cluster.folder), messenger.error().text);
  return messenger;
}

}  // namespace pif::cluster
