// The border to ZeroMQ (cppzmq): what it throws becomes a value here. Nothing above this file sees its exceptions.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <fmt/format.h>

#include "pif/base/result.h"
#include "pif/net/buffer.h"
#include "zmq/cppzmq.h"

namespace pif::net {

// "WHAT: why", of what cppzmq threw.
tl::unexpected<Error> fail_zmq(const zmq::error_t& error, const std::string& what);

// Bytes handed to ZeroMQ for one peer and not yet sent. ZeroMQ's own high-water mark counts messages, not bytes.
struct Backlog {
  std::atomic<std::size_t> bytes = 0;
};

// The buffer as a message. Large buffers are not copied, and are counted in `backlog` until ZeroMQ has let go of them.
zmq::message_t message_of(Buffer buffer, const std::shared_ptr<Backlog>& backlog);
// The content of a message, without a copy.
Buffer buffer_of(zmq::message_t message);
// Valid as long as the message is neither changed nor moved.
std::span<std::byte> bytes_of(zmq::message_t& message);

// One socket, of one thread.
class ZmqSocket {
 public:
  ZmqSocket() = default;
  static Result<ZmqSocket> open(zmq::context_t& context, zmq::socket_type type);

  // option: of zmq::sockopt.
  template <int kOption, typename T, bool kIsFlag>
  [[nodiscard]] Status set(zmq::sockopt::integral_option<kOption, T, kIsFlag> option, T value) {
    return caught([&] { socket_.set(option, value); }, kOption);
  }
  template <int kOption, int kEnd>
  [[nodiscard]] Status set(zmq::sockopt::array_option<kOption, kEnd> option, const std::string& value) {
    return caught([&] { socket_.set(option, value); }, kOption);
  }
  [[nodiscard]] Status bind(const std::string& endpoint);
  [[nodiscard]] Status connect(const std::string& endpoint);
  std::string last_endpoint() const;  // empty: not bound
  int fd() const;                     // -1: not open

  // One frame, without waiting.
  enum class Io : std::uint8_t { kDone, kAgain, kUnreachable };
  Io send(zmq::message_t& frame, bool more);
  Io receive(zmq::message_t& frame);

 private:
  template <typename F>
  static Status caught(const F& set, int option) {
    try {
      set();
    } catch (const zmq::error_t& error) {
      return fail_zmq(error, fmt::format("ZeroMQ option {}", option));
    }
    return {};
  }

  zmq::socket_t socket_;
};

}  // namespace pif::net
