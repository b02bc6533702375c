#include "context/authorizer.h"

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {

Authorizer::Peer& Authorizer::peer_of(net::PeerId id) {
  if (keys_version_ != keys_.version()) {
    peers_.clear();
    keys_version_ = keys_.version();
  }
  if (const auto at = peers_.find(id); at != peers_.end()) return at->second;
  if (peers_.size() >= kPeersMax) peers_.clear();  // everything can be verified again
  Peer& peer = peers_[id];
  const auto worker = override_(id);
  peer.identity = worker ? worker->identity : messenger_.identity(id);
  if (worker) peer.since = worker->since;
  return peer;
}

Result<Requester> Authorizer::identify(net::PeerId id, const proto::Envelope& request) {
  Peer& peer = peer_of(id);
  Requester who{std::nullopt, peer.identity.via, 0};
  const std::int64_t now = messenger_.clock().wall_seconds();
  if (peer.identity.has_uid) {
    who.uid = peer.identity.uid;  // the transport knows better than any credential
    who.session = session_of(peer, request.credential(), now);
    return who;
  }
  // Of each request, whatever came before: over ipc and plain tcp another program can take the routing id of one that
  // left.
  if (request.credential().empty()) return who;
  if (!peer.credential || request.credential() != peer.packed) {
    PIF_TRY_VALUE(peer.credential, verify_credential(keys_, request.credential(), now));
    peer.packed = request.credential();
  }
  if (peer.credential->expiry < now - kClockSkewSeconds)
    return fail(Code::kBadCapability, "the credential has expired: say hello to the PIF Server again");
  PIF_ASSERT(peer.packed == request.credential());
  who.uid = peer.credential->uid;
  who.session = peer.credential->session.value;
  return who;
}

// Of somebody whom the transport names. Without a credential of his that holds, nobody knows the session.
std::uint64_t Authorizer::session_of(Peer& peer, const std::string& credential, std::int64_t now) const {
  if (credential != peer.packed) {
    peer.packed = credential;
    auto held = verify_credential(keys_, credential, now);
    peer.credential = held ? std::optional(std::move(*held)) : std::nullopt;
  }
  return peer.credential && peer.credential->uid == peer.identity.uid ? peer.credential->session.value : 0;
}

Result<Capability> Authorizer::verified(Peer& peer, const std::string& packed) {
  const std::int64_t now = peer.since ? *peer.since : messenger_.clock().wall_seconds();
  if (const auto at = peer.capabilities.find(packed); at != peer.capabilities.end()) {
    if (at->second.expiry < now - kClockSkewSeconds) {
      peer.capabilities.erase(at);
      return fail(Code::kBadCapability, "the capability has expired: renew it at the PIF Server");
    }
    return at->second;
  }
  PIF_TRY_VALUE(const Capability capability, verify_capability(keys_, packed, now));
  if (peer.capabilities.size() >= kCapabilitiesMax) peer.capabilities.clear();
  peer.capabilities.emplace(packed, capability);
  return capability;
}

Result<Capability> Authorizer::allow(net::PeerId id, const Requester& who, const proto::Envelope& request, FileId file,
                                     std::uint32_t rights) {
  if (request.capability().empty())
    return fail(Code::kPermission, "the request needs a capability: open or create the file at the PIF Server");
  PIF_TRY_VALUE(const Capability capability, verified(peer_of(id), request.capability()));
  const bool is_daemon = (capability.rights & kMayManage) != 0 && capability.file.value == 0;
  if (!who.uid && !is_daemon)
    return fail(Code::kPermission, "the requester is unknown: this connection needs a credential from the PIF Server");
  PIF_TRY(require(capability, file, rights, is_daemon ? capability.uid : *who.uid));
  return capability;
}

}  // namespace pif::lfs
