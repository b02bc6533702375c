// Verifies credentials and capabilities without asking the PIF Server: who asks, and whether they may. Verified ones
// are remembered per peer, so that a repeated check costs a lookup. Their expiry is checked every time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "pif/base/key_ring.h"
#include "pif/net/messenger.h"

namespace pif::lfs {

struct Requester {
  std::optional<std::uint32_t> uid;  // nothing: neither transport nor credential says
  net::Identity::Via via = net::Identity::Via::kIpc;
  std::uint64_t session = 0;  // as the credential says; 0: without one
};

// A worker's connection speaks for this user, though the transport names another one.
struct WorkerIdentity {
  net::Identity identity;
  std::int64_t since = 0;  // wall seconds: when its job came here
};

class Authorizer {
 public:
  // Nothing for a connection that is no worker's. A capability that held when a worker's job came holds for that worker
  // as long as it lives: it cannot renew it, but its controller does so, and ends the job when that fails.
  using Override = std::function<std::optional<WorkerIdentity>(net::PeerId)>;

  Authorizer(KeyRing keys, net::Messenger& messenger, Override override_identity)
      : keys_(std::move(keys)), messenger_(messenger), override_(std::move(override_identity)) {}

  // kBadCapability for a credential that does not hold.
  [[nodiscard]] Result<Requester> identify(net::PeerId peer, const proto::Envelope& request);
  // The request's capability, if it gives these rights to this requester for `file`. A kMayManage capability for any
  // file is a right of the cluster's daemons, whatever user they run as. kPermission, kBadCapability.
  [[nodiscard]] Result<Capability> allow(net::PeerId peer, const Requester& who, const proto::Envelope& request,
                                         FileId file, std::uint32_t rights);
  void forget(net::PeerId peer) { peers_.erase(peer); }

 private:
  static constexpr std::size_t kPeersMax = 16384;
  static constexpr std::size_t kCapabilitiesMax = 1024;  // remembered per peer

  struct Peer {
    net::Identity identity;
    std::optional<std::int64_t> since;  // a worker's
    std::string packed;                 // credential
    std::optional<Credential> credential;
    std::unordered_map<std::string, Capability> capabilities;
  };
  Peer& peer_of(net::PeerId peer);
  std::uint64_t session_of(Peer& peer, const std::string& credential, std::int64_t now) const;
  [[nodiscard]] Result<Capability> verified(Peer& peer, const std::string& packed);

  const KeyRing keys_;
  std::uint64_t keys_version_ = 0;  // by which the peers' rights were verified
  net::Messenger& messenger_;
  Override override_;
  std::unordered_map<net::PeerId, Peer> peers_;
};

}  // namespace pif::lfs
