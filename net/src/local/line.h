// The common part of the transports inside the messenger: lines (the way out to one peer) and sources (where deliveries
// come from). Everything here belongs to the messenger's thread.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "pif/base/limits.h"
#include "pif/net/messenger.h"

namespace pif::net {

// The way to one peer.
class Line {
 public:
  virtual ~Line() = default;
  // kUnavailable: its queue is full, or it is gone; lost() then says whether the line is of no more use.
  virtual Status send(Packet packet) = 0;
  virtual bool lost() const = 0;

  Identity identity;
};

// The outcome of asking a source for its next delivery.
struct Taken {
  enum class What : std::uint8_t {
    kNothing,  // nothing ready: leaves the ring until epoll names it again
    kMore,     // did something, but has nothing to deliver: ask again
    kDelivery,
    kMalformed,  // `delivery.peer` sent something wrong; `error` is for it, if delivery.packet.envelope has an id
  };
  What what = What::kNothing;
  Delivery delivery;
  Error error;
};

// Something epoll watches. A source stays in the messenger's ring of ready sources while it says so.
class Source {
 public:
  virtual ~Source() = default;
  virtual Taken take() = 0;
  // Whether it must be asked again before the messenger may sleep (ZeroMQ: its descriptor tells only of changes).
  virtual bool stays_ready() const { return false; }

  bool in_ring = false;
};

// The services of the messenger for sources and lines.
class Hub {
 public:
  virtual PeerId add_line(std::unique_ptr<Line> line) = 0;  // a peer that came to us
  virtual void lose(PeerId peer) = 0;                       // forget it, and deliver kClosed
  virtual Status watch(int fd, Source& source) = 0;
  virtual void watch_writable(int fd, Source& source, bool on) = 0;
  virtual void unwatch(int fd, Source& source) = 0;
  virtual void mark_ready(Source& source) = 0;
  virtual std::span<std::byte> scratch() = 0;  // kUnixPacketBytesMax + 1 bytes

 protected:
  ~Hub() = default;
};

// Reads one protobuf frame into `out`. The sender gets errors as an answer if out.id() could be read.
[[nodiscard]] Status parse_envelope(std::span<const std::byte> frame, proto::Envelope& out);
// Reads one packet of a Unix socket (docs/PROTOCOL.md "Unix sockets"). Errors as above.
[[nodiscard]] Status parse_packet(std::span<const std::byte> bytes, Packet& out);
// Size of the envelope as a frame; kTooLarge over a limit of base/limits.h.
[[nodiscard]] Result<std::size_t> frame_size(const Packet& packet);

}  // namespace pif::net
