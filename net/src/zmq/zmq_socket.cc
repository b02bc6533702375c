#include "zmq/zmq_socket.h"
#include "pif/base/assert.h"

#include <cerrno>
#include <memory>
#include <utility>

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
  const std::size_t before = shared->backlog->bytes.fetch_sub(shared->buffer.size(), std::memory_order_relaxed);
  PIF_ASSERT(before >= shared->buffer.size(), before, shared->buffer.size());
  delete shared;
}

void release_message(void* owner) { delete static_cast<zmq::message_t*>(owner); }

// transfer: false where it would have to wait.
template <typename F>
ZmqSocket::Io without_waiting(const F& transfer) {
  for (;;) {
    try {
      return transfer() ? ZmqSocket::Io::kDone : ZmqSocket::Io::kAgain;
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) return ZmqSocket::Io::kUnreachable;
    }
  }
}

}  // namespace

tl::unexpected<Error> fail_zmq(const zmq::error_t& thrown, const std::string& what) {
  const int error = thrown.num();
  if (error == EMFILE) return fail_errno(error, what);
  const Code code = error == EADDRINUSE                 ? Code::kBusy
                    : error == EACCES || error == EPERM ? Code::kPermission
                    : error == EADDRNOTAVAIL || error == ENODEV || error == EPROTONOSUPPORT || error == ENAMETOOLONG ||
                            error == ENOCOMPATPROTO
                        ? Code::kInvalid
                        : code_from_errno(error);
  return fail(code, fmt::format("{}: {}", what, thrown.what()));
}

zmq::message_t message_of(Buffer buffer, const std::shared_ptr<Backlog>& backlog) {
  const std::size_t size = buffer.size();
  if (size <= kCopiedMax) return zmq::message_t(buffer.data(), size);
  PIF_ASSERT(backlog != nullptr, size);
  auto shared = std::make_unique<Shared>(Shared{std::move(buffer), backlog});
  zmq::message_t message(shared->buffer.data(), size, release_shared, shared.get());
  backlog->bytes.fetch_add(size, std::memory_order_relaxed);
  (void)shared.release();
  return message;
}

Buffer buffer_of(zmq::message_t message) {
  if (message.empty()) return {};
  auto owner = std::make_unique<zmq::message_t>(std::move(message));
  const auto bytes = bytes_of(*owner);  // after the move: short ones lie in the message itself
  PIF_ASSERT(!bytes.empty());
  return Buffer(bytes.data(), bytes.size(), owner.release(), release_message);
}

std::span<std::byte> bytes_of(zmq::message_t& message) { return {message.data<std::byte>(), message.size()}; }

Result<ZmqSocket> ZmqSocket::open(zmq::context_t& context, zmq::socket_type type) {
  ZmqSocket out;
  try {
    out.socket_ = zmq::socket_t(context, type);
  } catch (const zmq::error_t& error) {
    return fail_zmq(error, "cannot make a ZeroMQ socket");
  }
  return out;
}

Status ZmqSocket::bind(const std::string& endpoint) {
  try {
    socket_.bind(endpoint);
  } catch (const zmq::error_t& error) {
    return fail_zmq(error, fmt::format("cannot listen on {}", endpoint));
  }
  return {};
}

Status ZmqSocket::connect(const std::string& endpoint) {
  try {
    socket_.connect(endpoint);
  } catch (const zmq::error_t& error) {
    return fail_zmq(error, fmt::format("cannot connect to {}", endpoint));
  }
  return {};
}

std::string ZmqSocket::last_endpoint() const {
  try {
    return socket_.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t&) {
    return {};
  }
}

int ZmqSocket::fd() const {
  if (!socket_) return -1;
  try {
    return socket_.get(zmq::sockopt::fd);
  } catch (const zmq::error_t&) {
    return -1;
  }
}

ZmqSocket::Io ZmqSocket::send(zmq::message_t& frame, bool more) {
  const auto flags = more ? zmq::send_flags::dontwait | zmq::send_flags::sndmore : zmq::send_flags::dontwait;
  return without_waiting([&] { return socket_.send(frame, flags).has_value(); });
}

ZmqSocket::Io ZmqSocket::receive(zmq::message_t& frame) {
  return without_waiting([&] { return socket_.recv(frame, zmq::recv_flags::dontwait).has_value(); });
}

}  // namespace pif::net
