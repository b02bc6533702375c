#include "daemons/ready.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace pif::cli {

Result<ReadyListener> ReadyListener::open() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof address.sun_family;  // no name: the kernel makes up an abstract one
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return fail_errno(errno, "cannot make a socket to wait for daemons");
  size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return fail_errno(errno, "cannot name a socket to wait for daemons");
  const std::string_view name(address.sun_path, size - offsetof(sockaddr_un, sun_path));
  return ReadyListener(std::move(socket), "@" + std::string(name.substr(1)));
}

pid_t ReadyListener::receive() const {
  std::array<char, 4096> text{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  iovec part = {text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) return 0;
  ucred sender{};
  std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
  const std::string_view said(text.data(), static_cast<std::size_t>(got));
  return said.find("READY=1") == std::string_view::npos ? 0 : sender.pid;
}

std::vector<pid_t> ReadyListener::wait(std::chrono::milliseconds patience) const {
  pollfd waiting = {socket_.get(), POLLIN, 0};
  ::poll(&waiting, 1, static_cast<int>(patience.count()));
  std::vector<pid_t> ready;
  while (const pid_t pid = receive()) ready.push_back(pid);
  return ready;
}

}  // namespace pif::cli
