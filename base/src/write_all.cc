#include "pif/base/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace pif {

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& failure) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // whoever gave us it has made it so: it takes more when it can
      pollfd writable{fd, POLLOUT, 0};
      if (::poll(&writable, 1, -1) >= 0 || errno == EINTR) continue;
    }
    if (n < 0) return fail_errno(errno, failure);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace pif
