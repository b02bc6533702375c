#include "local/unix_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pif/base/assert.h"
#include "pif/wire/convert.h"

namespace pif::net {
namespace {

constexpr int kSendBufferBytes = 1 << 20;  // several of the largest packets
constexpr int kBacklog = 1024;
constexpr int kAcceptsAtOnce = 64;  // then others get their turn
constexpr std::size_t kGroupsReadMax = 65536;

using Control = std::array<char, CMSG_SPACE(sizeof(int) * kHandlesMax)>;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(Code::kInvalid, fmt::format("'{}' cannot name a Unix socket: it must have 1 to {} bytes", path,
                                            sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<UniqueFd> make_socket(int type) {
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail_errno(errno, "cannot make a Unix socket");
  return fd;
}

int connect_to(int fd, const sockaddr_un& address) {
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

void enlarge_send_buffer(int fd) {
  const int bytes = kSendBufferBytes;  // only root may pass the system's limit; without it, less fits at once
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

Result<Identity> identity_of(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return fail_errno(errno, "cannot tell who is at the other end of a Unix socket");
  Identity out;
  out.via = Identity::Via::kUnix;
  out.has_uid = true;
  out.uid = who.uid;
  out.pid = who.pid;
  out.gids.push_back(who.gid);
  std::vector<gid_t> groups(64);
  for (;;) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0) {
      groups.resize(bytes / sizeof(gid_t));
      break;
    }
    if (errno != ERANGE || groups.size() >= kGroupsReadMax) return out;  // a socketpair has no groups
    groups.resize(kGroupsReadMax);
  }
  for (const gid_t gid : groups)
    if (gid != who.gid) out.gids.push_back(gid);
  return out;
}

std::vector<Handle> received_handles(const msghdr& message) {
  std::vector<Handle> out;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(const_cast<msghdr*>(&message), c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      out.push_back({UniqueFd(fd), nullptr});
    }
  }
  return out;
}

void attach_handles(msghdr& message, Control& control, const std::vector<Handle>& handles) {
  PIF_ASSERT(!handles.empty() && handles.size() <= kHandlesMax, handles.size());
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int) * handles.size());
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int) * handles.size());
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const int fd = handles[i].fd.get();
    std::memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof fd);
  }
}

void put_u32(char* out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>((value >> (8 * i)) & 0xff);
}

Status check_handles(const std::vector<Handle>& handles) {
  if (handles.size() > kHandlesMax)
    return fail(Code::kTooLarge,
                fmt::format("{} descriptors in one packet, of at most {}", handles.size(), kHandlesMax));
  for (const auto& handle : handles)
    if (!handle.fd) return fail(Code::kInvalid, "a handle without a descriptor cannot be passed over a Unix socket");
  return {};
}

}  // namespace

// ---- connection ----

UnixLine::~UnixLine() {
  if (fd_) hub_.unwatch(fd_.get(), *this);
  if (!shares_) return;
  all_are_read();
  const auto share = shares_->find(identity.uid);
  PIF_ASSERT(share != shares_->end() && share->second.connections > 0, identity.uid);
  if (--share->second.connections == 0) shares_->erase(share);
}

bool UnixLine::count_in(const std::shared_ptr<UserShares>& shares, std::uint32_t most) {
  PIF_ASSERT(shares_ == nullptr && shares != nullptr, identity.uid);
  UserShare& share = (*shares)[identity.uid];
  if (share.connections >= most) return false;
  ++share.connections;
  shares_ = shares;
  per_user_max_ = most;
  return true;
}

void UnixLine::all_are_read() {
  PIF_ASSERT(!shares_ || shares_->at(identity.uid).unread >= unread_, identity.uid, unread_);
  if (shares_) shares_->at(identity.uid).unread -= unread_;
  unread_ = 0;
}

Status UnixLine::count_unread(std::size_t handles) {
  if (handles == 0) return {};
  int bytes = 0;
  if (unread_ > 0 && queue_.empty() && ioctl(fd_.get(), SIOCOUTQ, &bytes) == 0 && bytes == 0) all_are_read();
  const auto count = static_cast<std::uint32_t>(handles);
  if (unread_ + count > kUnixUnreadMax) return overrun();
  if (shares_) {
    UserShare& share = shares_->at(identity.uid);
    if (share.unread + count > per_user_max_) return overrun();
    share.unread += count;
  }
  PIF_ASSERT(unread_ <= kUnixUnreadMax - count, unread_, count);
  unread_ += count;
  return {};
}

Status UnixLine::overrun() {
  overrun_ = true;
  return fail(Code::kUnavailable, "the peer does not read what it is sent; disconnected");
}

Status UnixLine::start() {
  PIF_TRY_VALUE(identity, identity_of(fd_.get()));
  enlarge_send_buffer(fd_.get());
  return hub_.watch(fd_.get(), *this);
}

Status UnixLine::send(Packet packet) {
  if (output_broken_) return fail(Code::kUnavailable, "the peer has closed the connection");
  PIF_TRY_VALUE(const auto size, frame_size(packet));
  PIF_TRY(check_handles(packet.handles));
  PIF_TRY(count_unread(packet.handles.size()));
  const std::size_t total = 4 + size + packet.body.size();
  if (total > kUnixPacketBytesMax)
    return fail(Code::kTooLarge,
                fmt::format("a packet of {} bytes is over the {} of a Unix socket; use ZeroMQ (--route ipc)", total,
                            kUnixPacketBytesMax));
  head_.resize(4 + size);
  put_u32(head_.data(), static_cast<std::uint32_t>(size));
  packet.envelope.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(head_.data() + 4));
  PIF_ASSERT(head_.size() + packet.body.size() == total, head_.size(), packet.body.size(), total);
  if (!queue_.empty()) return enqueue(head_, std::move(packet));
  switch (write(head_, packet.body, packet.handles)) {
    case Sent::kAll: return {};
    case Sent::kLater: return enqueue(head_, std::move(packet));
    case Sent::kRefused:
      return fail(Code::kBusy, "too many descriptors are on their way to programs that do not take them: try again");
    case Sent::kGone: break;
  }
  return fail(Code::kUnavailable, "the peer has closed the connection");
}

UnixLine::Sent UnixLine::write(const std::string& head, const Buffer& body, const std::vector<Handle>& handles) {
  std::array<iovec, 2> pieces{iovec{const_cast<char*>(head.data()), head.size()},
                              iovec{const_cast<std::byte*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = body.empty() ? 1 : 2;
  alignas(cmsghdr) Control control{};
  if (!handles.empty()) attach_handles(message, control, handles);
  for (;;) {
    if (sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Sent::kAll;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS) return Sent::kLater;
    // Too many descriptors of this user are on their way unread, to whomever, and nobody tells when that is over. Whom
    // we have connected to, one of our own, will take his; who has connected to us may never.
    if (errno == ETOOMANYREFS) return shares_ ? Sent::kRefused : Sent::kLater;
    output_broken_ = true;  // epoll reports the end, after what the peer sent before it
    return Sent::kGone;
  }
}

Status UnixLine::enqueue(std::string head, Packet packet) {
  PIF_ASSERT((queue_bytes_ == 0) == queue_.empty(), queue_bytes_, queue_.size());
  const std::size_t bytes = head.size() + packet.body.size();
  if (queue_.size() >= kUnixQueuePacketsMax || queue_bytes_ + bytes > kUnixQueueBytesMax) return overrun();
  queue_bytes_ += bytes;
  queue_.push_back({std::move(head), std::move(packet.body), std::move(packet.handles)});
  if (queue_.size() == 1) hub_.watch_writable(fd_.get(), *this, true);
  return {};
}

void UnixLine::flush() {
  while (!queue_.empty()) {
    const auto& next = queue_.front();
    const Sent sent = write(next.head, next.body, next.handles);
    if (sent == Sent::kLater) return;
    if (sent == Sent::kRefused) overrun_ = true;
    if (sent != Sent::kAll) {
      queue_.clear();
      queue_bytes_ = 0;
      break;
    }
    PIF_ASSERT(queue_bytes_ >= next.head.size() + next.body.size(), queue_bytes_, queue_.size());
    queue_bytes_ -= next.head.size() + next.body.size();
    queue_.pop_front();
  }
  hub_.watch_writable(fd_.get(), *this, false);
}

Taken UnixLine::closed() {
  Taken out;
  out.what = Taken::What::kDelivery;
  PIF_ASSERT(id_ != 0);
  out.delivery.kind = Delivery::Kind::kClosed;
  out.delivery.peer = id_;
  return out;
}

Taken UnixLine::take() {
  if (!queue_.empty()) flush();
  if (overrun_) return closed();
  const auto scratch = hub_.scratch();
  iovec piece{scratch.data(), scratch.size()};
  alignas(cmsghdr) Control control{};
  for (;;) {
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    auto handles = size >= 0 ? received_handles(message) : std::vector<Handle>();  // an empty packet may have some too
    if (size > 0) return unpack(static_cast<std::size_t>(size), message.msg_flags, std::move(handles));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return {};
    // A peer that ended without reading all we sent is reported as a reset once, before what it sent itself.
    if (size < 0 && errno == ECONNRESET && !std::exchange(reset_seen_, true)) continue;
    return closed();
  }
}

namespace {

bool has_room_for_descriptors(int fd) {
  const UniqueFd probe(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  return probe || errno != EMFILE;
}

// An answer whose descriptors found no room in this process. By this code whoever asked does without them, if it can.
Packet without_room(const Packet& packet) {
  Packet refused;
  refused.envelope.set_version(packet.envelope.version());
  refused.envelope.set_id(packet.envelope.id());
  auto error = fail_errno(EMFILE, "the descriptors that were sent have no room here").value();
  error.code = Code::kUnsupported;
  *refused.envelope.mutable_error() = wire::proto_of(error, "");
  return refused;
}

}  // namespace

Taken UnixLine::unpack(std::size_t size, int flags, std::vector<Handle> handles) {
  PIF_ASSERT(size > 0 && size <= hub_.scratch().size(), size, hub_.scratch().size());
  // While those that had room are held, a process that is at its limit can have no other.
  const bool is_full = (flags & MSG_CTRUNC) != 0 && !has_room_for_descriptors(fd_.get());
  const int over_limits = is_full ? MSG_TRUNC : MSG_TRUNC | MSG_CTRUNC;
  if ((flags & over_limits) != 0) return closed();  // not one of ours
  Taken out;
  out.delivery.peer = id_;
  auto& packet = out.delivery.packet;
  if (auto parsed = parse_packet(hub_.scratch().first(size), packet); !parsed) {
    out.what = Taken::What::kMalformed;
    out.error = std::move(parsed.error());
    return out;
  }
  packet.handles = std::move(handles);
  if (is_full) packet = without_room(packet);
  out.what = Taken::What::kDelivery;
  return out;
}

// ---- listener ----

UnixListener::~UnixListener() {
  if (!fd_) return;
  hub_.unwatch(fd_.get(), *this);
  struct stat now {};
  if (lstat(path_.c_str(), &now) == 0 && now.st_ino == inode_) unlink(path_.c_str());  // unless a successor has its own
}

Status UnixListener::bind_path() {
  PIF_TRY_VALUE(const auto address, address_of(path_));
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (bind(fd_.get(), raw, sizeof address) == 0) return {};
  if (errno != EADDRINUSE) return fail_errno(errno, fmt::format("cannot listen on {}", path_));
  struct stat old {};
  if (lstat(path_.c_str(), &old) == 0 && !S_ISSOCK(old.st_mode))
    return fail(Code::kExists, fmt::format("cannot listen on {}: something that is no socket has that name", path_));
  if (answers(path_, SOCK_SEQPACKET))
    return fail(Code::kBusy, fmt::format("cannot listen on {}: another daemon answers there; stop it first", path_));
  if (unlink(path_.c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, fmt::format("cannot replace the dead socket {}", path_));
  if (bind(fd_.get(), raw, sizeof address) != 0) return fail_errno(errno, fmt::format("cannot listen on {}", path_));
  return {};
}

Status UnixListener::start() {
  PIF_TRY_VALUE(fd_, make_socket(SOCK_SEQPACKET));
  if (auto bound = bind_path(); !bound) {
    fd_.reset();
    return bound;
  }
  struct stat made {};
  // Anybody may connect: who it is, the kernel says, and what it may do, the daemon decides. A worker may not change
  // modes (EPERM): only its own user reaches its socket, which is all it needs.
  if ((chmod(path_.c_str(), 0666) != 0 && errno != EPERM) || lstat(path_.c_str(), &made) != 0)
    return fail_errno(errno, fmt::format("cannot open {} to other users", path_));
  inode_ = made.st_ino;
  if (listen(fd_.get(), kBacklog) != 0) return fail_errno(errno, fmt::format("cannot listen on {}", path_));
  spare_ = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return hub_.watch(fd_.get(), *this);
}

void UnixListener::refuse_one() {
  spare_.reset();
  const UniqueFd refused(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  spare_ = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

Taken UnixListener::take() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EMFILE || errno == ENFILE) refuse_one();
      return {};
    }
    auto line = std::make_unique<UnixLine>(hub_, std::move(fd));
    if (!line->start()) continue;                           // gone already
    if (!line->count_in(shares_, per_user_max_)) continue;  // one user's connections must not become all there can be
    auto* raw = line.get();
    raw->set_id(hub_.add_line(std::move(line)));
  }
  return {};
}

// ---- connecting ----

Result<UniqueFd> connect_unix(const std::string& path) {
  PIF_TRY_VALUE(const auto address, address_of(path));
  PIF_TRY_VALUE(auto fd, make_socket(SOCK_SEQPACKET));
  if (const int error = connect_to(fd.get(), address); error != 0) {
    if (error == EACCES) return fail(Code::kPermission, fmt::format("may not connect to {}", path));
    const char* why = error == ENOENT   ? "there is no such socket"
                      : error == EAGAIN ? "it is overloaded"
                                        : "nobody answers";
    return fail(Code::kUnavailable, fmt::format("cannot connect to {}: {}", path, why));
  }
  return fd;
}

bool answers(const std::string& path, int type) {
  const auto address = address_of(path);
  if (!address) return false;
  const auto fd = make_socket(type);
  if (!fd) return true;  // cannot tell: leave it alone
  const int error = connect_to(fd->get(), *address);
  return error == 0 || error == EAGAIN || error == EACCES;
}

}  // namespace pif::net
