// ZeroMQ: one ROUTER for ipc and one for tcp where others connect, one DEALER per peer we connect to. A message is the
// envelope, then the body if there is one; docs/PROTOCOL.md "ZeroMQ". Bodies are neither copied in nor out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "local/line.h"
#include "pif/net/real_messenger.h"
#include "zmq/cppzmq.h"

namespace pif::net {

class ZmqRouter;
class ZapServer;
class KeyRing;

class ZmqTransport {
 public:
  explicit ZmqTransport(Hub& hub);
  ~ZmqTransport();
  ZmqTransport(const ZmqTransport&) = delete;
  ZmqTransport& operator=(const ZmqTransport&) = delete;

  // heartbeats: of MessengerOptions.
  [[nodiscard]] Status start(unsigned io_threads, bool heartbeats);
  // Both add what they listen on to `bound`.
  [[nodiscard]] Status listen_ipc(const std::string& endpoint, proto::Endpoints& bound);
  [[nodiscard]] Status listen_tcp(const ListenOptions& options, proto::Endpoints& bound);
  // The line is the hub's. kInvalid: not an endpoint; kPermission: no keys for a CURVE peer.
  [[nodiscard]] Result<PeerId> connect(const std::string& endpoint, Identity::Via via, const std::string& server_key,
                                       const CurveKeys& keys);

 private:
  Hub& hub_;
  bool heartbeats_ = true;
  std::optional<zmq::context_t> context_;  // from start() on; ended after the sockets below, and the lines of the hub
  std::unique_ptr<KeyRing> keys_;          // of CURVE; outlives those who ask it
  std::unique_ptr<ZapServer> zap_;
  std::vector<std::unique_ptr<ZmqRouter>> routers_;
};

[[nodiscard]] Result<CurveKeys> make_zmq_curve_keys();

}  // namespace pif::net
