// ZeroMQ's C handles as owners, and its errors as values. Nothing above this file sees errno from ZeroMQ.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <zmq.h>

#include "pif/base/result.h"
#include "pif/net/buffer.h"

namespace pif::net {

// "WHAT: why", of ZeroMQ's errno.
tl::unexpected<Error> fail_zmq(const std::string& what);

// Bytes handed to ZeroMQ for one peer and not yet sent. ZeroMQ's own high-water mark counts messages, not bytes.
struct Backlog {
  std::atomic<std::size_t> bytes = 0;
};

class Frame {
 public:
  Frame() { zmq_msg_init(&raw_); }
  ~Frame() { zmq_msg_close(&raw_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // `size` bytes to fill in.
  std::span<std::byte> allocate(std::size_t size);
  // Large buffers are not copied, and counted in `backlog` until ZeroMQ has let go of them.
  void assign(Buffer buffer, const std::shared_ptr<Backlog>& backlog);
  // The content, without a copy; this is empty afterwards.
  Buffer take();

  std::span<const std::byte> bytes() const;
  std::string_view text() const;
  bool more() const { return zmq_msg_more(&raw_) != 0; }
  std::string_view property(const char* name);  // empty: none
  zmq_msg_t* raw() { return &raw_; }

 private:
  mutable zmq_msg_t raw_;  // zmq_msg_data() and zmq_msg_size() want it mutable
};

class ZmqSocket {
 public:
  ZmqSocket() = default;
  ZmqSocket(ZmqSocket&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  ZmqSocket& operator=(ZmqSocket&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~ZmqSocket() {
    if (raw_ != nullptr) zmq_close(raw_);
  }

  static Result<ZmqSocket> open(void* context, int type);
  [[nodiscard]] Status set(int option, int value);
  [[nodiscard]] Status set_wide(int option, std::int64_t value);
  [[nodiscard]] Status set(int option, const std::string& value);
  [[nodiscard]] Status bind(const std::string& endpoint);
  [[nodiscard]] Status connect(const std::string& endpoint);
  std::string last_endpoint() const;
  int fd() const;

  // One frame, without waiting.
  enum class Io : std::uint8_t { kDone, kAgain, kUnreachable };
  Io send(Frame& frame, bool more);
  Io receive(Frame& frame);

 private:
  void* raw_ = nullptr;
};

}  // namespace pif::net
