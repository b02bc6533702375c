#include "zmq_socket.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#ifdef __SANITIZE_THREAD__
// The ZeroMQ of the system is not built for this sanitizer, which so cannot see how its threads hand memory over; nor
// the cipher they use for CURVE.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:libzmq.so\nrace:crypto_secretbox\n"; }
#endif

namespace pif::net {
namespace {

constexpr std::size_t kCopiedMax = 4096;  // below, a copy is cheaper than a shared message

struct Shared {
  Buffer buffer;
  std::shared_ptr<Backlog> backlog;
};

// On ZeroMQ's thread.
void release_shared(void*, void* hint) {
  auto* shared = static_cast<Shared*>(hint);
  shared->backlog->bytes.fetch_sub(shared->buffer.size(), std::memory_order_relaxed);
  delete shared;
}

void release_frame(void* owner) {
  auto* message = static_cast<zmq_msg_t*>(owner);
  zmq_msg_close(message);
  delete message;
}

}  // namespace

tl::unexpected<Error> fail_zmq(const std::string& what) {
  const int error = zmq_errno();
  if (error == EMFILE) return fail_errno(error, what);
  const Code code = error == EADDRINUSE                 ? Code::kBusy
                    : error == EACCES || error == EPERM ? Code::kPermission
                    : error == EADDRNOTAVAIL || error == ENODEV || error == EPROTONOSUPPORT || error == ENAMETOOLONG ||
                            error == ENOCOMPATPROTO
                        ? Code::kInvalid
                        : code_from_errno(error);
  return fail(code, fmt::format("{}: {}", what, zmq_strerror(error)));
}

std::span<std::byte> Frame::allocate(std::size_t size) {
  zmq_msg_close(&raw_);
  if (zmq_msg_init_size(&raw_, size) != 0) throw std::bad_alloc();
  return {static_cast<std::byte*>(zmq_msg_data(&raw_)), size};
}

void Frame::assign(Buffer buffer, const std::shared_ptr<Backlog>& backlog) {
  const std::size_t size = buffer.size();
  if (size <= kCopiedMax) {
    const auto room = allocate(size);
    if (size != 0) std::memcpy(room.data(), buffer.data(), size);
    return;
  }
  auto shared = std::make_unique<Shared>(Shared{std::move(buffer), backlog});
  zmq_msg_close(&raw_);
  if (zmq_msg_init_data(&raw_, shared->buffer.data(), size, release_shared, shared.get()) != 0) throw std::bad_alloc();
  backlog->bytes.fetch_add(size, std::memory_order_relaxed);
  (void)shared.release();
}

Buffer Frame::take() {
  if (bytes().empty()) return {};
  auto owner = std::make_unique<zmq_msg_t>();
  zmq_msg_init(owner.get());
  zmq_msg_move(owner.get(), &raw_);
  auto* data =
      static_cast<std::byte*>(zmq_msg_data(owner.get()));  // after the move: short ones lie in the handle itself
  const std::size_t size = zmq_msg_size(owner.get());
  return Buffer(data, size, owner.release(), release_frame);
}

std::span<const std::byte> Frame::bytes() const {
  return {static_cast<const std::byte*>(zmq_msg_data(&raw_)), zmq_msg_size(&raw_)};
}

std::string_view Frame::text() const { return {static_cast<const char*>(zmq_msg_data(&raw_)), zmq_msg_size(&raw_)}; }

std::string_view Frame::property(const char* name) {
  const char* value = zmq_msg_gets(&raw_, name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

Result<ZmqSocket> ZmqSocket::open(void* context, int type) {
  ZmqSocket out;
  out.raw_ = zmq_socket(context, type);
  if (out.raw_ == nullptr) return fail_zmq("cannot make a ZeroMQ socket");
  return out;
}

Status ZmqSocket::set(int option, int value) {
  if (zmq_setsockopt(raw_, option, &value, sizeof value) != 0) return fail_zmq(fmt::format("ZeroMQ option {}", option));
  return {};
}

Status ZmqSocket::set_wide(int option, std::int64_t value) {
  if (zmq_setsockopt(raw_, option, &value, sizeof value) != 0) return fail_zmq(fmt::format("ZeroMQ option {}", option));
  return {};
}

Status ZmqSocket::set(int option, const std::string& value) {
  // With its end: keys in text form are told from binary ones by their length.
  const std::size_t size = value.size() + (option == ZMQ_ZAP_DOMAIN ? 0 : 1);
  if (zmq_setsockopt(raw_, option, value.c_str(), size) != 0)
    return fail(Code::kInvalid, fmt::format("ZeroMQ option {}: {}", option, zmq_strerror(zmq_errno())));
  return {};
}

Status ZmqSocket::bind(const std::string& endpoint) {
  if (zmq_bind(raw_, endpoint.c_str()) != 0) return fail_zmq(fmt::format("cannot listen on {}", endpoint));
  return {};
}

Status ZmqSocket::connect(const std::string& endpoint) {
  if (zmq_connect(raw_, endpoint.c_str()) != 0) return fail_zmq(fmt::format("cannot connect to {}", endpoint));
  return {};
}

std::string ZmqSocket::last_endpoint() const {
  std::array<char, 512> text{};
  std::size_t size = text.size();
  if (zmq_getsockopt(raw_, ZMQ_LAST_ENDPOINT, text.data(), &size) != 0) return {};
  return text.data();
}

int ZmqSocket::fd() const {
  int fd = -1;
  std::size_t size = sizeof fd;
  zmq_getsockopt(raw_, ZMQ_FD, &fd, &size);
  return fd;
}

ZmqSocket::Io ZmqSocket::send(Frame& frame, bool more) {
  for (;;) {
    if (zmq_msg_send(frame.raw(), raw_, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0) return Io::kDone;
    if (zmq_errno() == EINTR) continue;
    return zmq_errno() == EAGAIN ? Io::kAgain : Io::kUnreachable;
  }
}

ZmqSocket::Io ZmqSocket::receive(Frame& frame) {
  for (;;) {
    if (zmq_msg_recv(frame.raw(), raw_, ZMQ_DONTWAIT) >= 0) return Io::kDone;
    if (zmq_errno() == EINTR) continue;
    return zmq_errno() == EAGAIN ? Io::kAgain : Io::kUnreachable;
  }
}

}  // namespace pif::net
