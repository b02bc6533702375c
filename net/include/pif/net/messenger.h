// The transport seam: packets to and from peers, and the one place where an actor (daemon, client, worker) waits.
// Behind it: Unix sockets (identity, descriptors) and ZeroMQ over ipc, tcp and CURVE (real_messenger.h), or a
// simulation where a seed decides the order (test/sim).
//
// A messenger belongs to one thread; only wake() may be called from others. Delivery between two peers is in order and
// at most once; a lost peer shows as Delivery::kClosed where the transport can tell, as silence otherwise. So every
// request has a deadline (calls.h), and is safe to repeat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pif/base/clock.h"
#include "pif/base/handle.h"
#include "pif/base/result.h"
#include "pif/net/buffer.h"
#include "pif/proto/messages.pb.h"

namespace pif::net {

using PeerId = std::uint64_t;  // of one messenger; never reused; 0: none

// The identity that the transport itself vouches for.
struct Identity {
  enum class Via : std::uint8_t { kUnix, kIpc, kTcp, kCurve, kSimulated };
  Via via = Via::kIpc;
  bool has_uid = false;  // kernel (kUnix), key folder (kCurve) or simulation says so
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;  // primary first
  std::int32_t pid = 0;             // kUnix only
};

struct Packet {
  proto::Envelope envelope;
  Buffer body;
  std::vector<Handle> handles;  // Unix sockets and simulation only
};

struct Delivery {
  enum class Kind : std::uint8_t { kPacket, kClosed, kWake };
  Kind kind = Kind::kPacket;
  PeerId peer = 0;
  Packet packet;
};

// How a connection may be made.
enum class Route : std::uint8_t {
  kAuto,  // the Unix socket if there is one, else CURVE or tcp
  kUnix,
  kIpc,
  kTcp,  // CURVE if the endpoint has a key
};

class Messenger {
 public:
  virtual ~Messenger() = default;

  // A peer for this endpoint; the same endpoint and route gives the same peer while it is open. Does not wait: a ZeroMQ
  // peer that is not there yet shows as silence; a Unix socket that nobody listens on is kUnavailable.
  virtual Result<PeerId> connect(const proto::Endpoints& to, Route route) = 0;
  // Takes a connected SOCK_SEQPACKET socket (or a simulated end) as a peer.
  virtual Result<PeerId> adopt(Handle connection) = 0;
  // Nothing more is sent to it or comes from it, and it is not announced as closed. A peer that is gone: nothing
  // happens.
  virtual void disconnect(PeerId peer) = 0;

  // Takes over the packet. Never waits: a peer whose queue is full is disconnected (it costs itself) and gets
  // kUnavailable. kTooLarge over the limits of base/limits.h.
  virtual Status send(PeerId peer, Packet packet) = 0;

  // The next delivery, or nothing at the deadline. A deadline in the past polls. An error is of the wait itself, and
  // ends who waits; kCancelled: a simulation ends this actor.
  // Malformed frames from a peer are counted and dropped, with an error reply where an id could be read.
  virtual Result<std::optional<Delivery>> receive(Time deadline) = 0;

  virtual const Identity& identity(PeerId peer) const = 0;  // peer: open, or the one of the last delivery

  // Makes receive() return Delivery::kWake soon. Any thread, and signal handlers.
  virtual void wake() = 0;

  virtual Clock& clock() = 0;  // of all deadlines here; lives as long as the messenger
};

}  // namespace pif::net
