#include "pif/cluster/notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pif/base/handle.h"

namespace pif::cluster {

void notify_ready() {
  const char* named = std::getenv("NOTIFY_SOCKET");
  std::string path = named == nullptr ? "" : named;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return;
  if (path[0] == '@') path[0] = '\0';  // an abstract socket
  path.copy(address.sun_path, path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view kReady = "READY=1";
  // Nobody waits any more: no reason not to serve.
  ::sendto(socket.get(), kReady.data(), kReady.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size()));
}

}  // namespace pif::cluster
