// What drives a whole daemon from bytes, by hand (test/sim/by_hand.h): the steps an input is made of.
//
// An input is a list of steps. Envelopes in it are bytes like any other; rights are made here, because no fuzzer
// guesses a MAC: a step says which of them are good.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "../../net/src/local/line.h"
#include "../sim/by_hand.h"
#include "fuzz.h"
#include "pif/base/capability.h"
#include "pif/base/limits.h"
#include "pif/net/calls.h"

namespace pif::fuzz {

inline ClusterKey test_key() {
  ClusterKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(i);
  return key;
}

using sim::CountingEntropy;
using sim::FakeClock;

// Takes no packet that a transport would not.
class FakeMessenger final : public sim::FakeMessenger {
 public:
  using sim::FakeMessenger::FakeMessenger;
  Status send(net::PeerId peer, net::Packet packet) override {
    PIF_TRY(net::frame_size(packet));
    return sim::FakeMessenger::send(peer, std::move(packet));
  }
  Result<net::PeerId> connect(const proto::Endpoints& to, net::Route route) override {
    auto peer = sim::FakeMessenger::connect(to, route);
    if (peer) addresses_[*peer] = to.unix_path();
    return peer;
  }
  // Whom the daemon has connected to: the path of a Unix socket. Empty: it has not.
  std::string address(net::PeerId peer) const {
    const auto at = addresses_.find(peer);
    return at == addresses_.end() ? std::string() : at->second;
  }

 private:
  std::map<net::PeerId, std::string> addresses_;
};

// ---- steps ----

enum Flags : unsigned {
  kGoodCredential = 1,
  kGoodCapability = 2,
  kAnyFile = 4,    // the capability is a daemon's, for any file
  kOtherUser = 8,  // it was issued to somebody else
  kExpired = 16,
  kRawEnvelope = 32,  // as it is: no version or id filled in
};

// A request as bytes of an input: flags, rights and file of its capability, envelope, body.
struct Request {
  unsigned flags = 0;
  unsigned rights = 0;
  unsigned file = 0;
  std::string_view envelope;
  std::string_view body;
};

inline Request take_request(Input& in) {
  Request out;
  out.flags = in.byte();
  out.rights = in.byte() & 15;
  out.file = in.byte();
  out.envelope = in.text();
  out.body = in.text();
  return out;
}

// The packet, as the transport would hand it over; nothing if it would not.
inline std::optional<net::Packet> packet_of(const Request& request, const ClusterKey& key, std::uint32_t uid,
                                            std::int64_t wall, std::uint64_t id) {
  net::Packet out;
  if (!out.envelope.ParseFromArray(request.envelope.data(), static_cast<int>(request.envelope.size()))) return {};
  if ((request.flags & kRawEnvelope) == 0) {
    out.envelope.set_version(kProtocolVersion);
    if (out.envelope.id() == 0) out.envelope.set_id(id);
  }
  const std::int64_t expiry = (request.flags & kExpired) != 0 ? wall - 1000 : wall + kCapabilitySeconds;
  const std::uint32_t holder = (request.flags & kOtherUser) != 0 ? uid + 1 : uid;
  if ((request.flags & kGoodCredential) != 0)
    out.envelope.set_credential(mint(key, Credential{SessionId(uid), holder, {holder}, expiry}));
  const bool any = (request.flags & kAnyFile) != 0;
  if ((request.flags & kGoodCapability) != 0)
    out.envelope.set_capability(
        mint(key, Capability{FileId(any ? 0 : request.file), holder, any ? kMayManage : request.rights,
                             std::uint64_t{request.file} >> 6, expiry}));
  out.body = net::Buffer::copy_of(std::as_bytes(std::span(request.body)));
  const std::string bytes = out.envelope.SerializeAsString();
  proto::Envelope wire;
  if (!net::parse_envelope(std::as_bytes(std::span(bytes)), wire)) return {};
  return out;
}

// For seeds.
inline std::string request_step(unsigned step, unsigned flags, unsigned rights, unsigned file,
                                const proto::Envelope& envelope, std::string_view body = {}) {
  return Output().byte(step).byte(flags).byte(rights).byte(file).text(envelope.SerializeAsString()).text(body).str();
}

// Nobody is answered twice, or without having asked.
class Answers {
 public:
  void asked(net::PeerId peer, std::uint64_t id) { ++open_[{peer, id}]; }
  void sent(net::PeerId peer, const proto::Envelope& envelope) {
    if (!net::is_reply(envelope) || envelope.working()) return;
    const auto found = open_.find({peer, envelope.id()});
    must(found != open_.end() && found->second > 0, "every answer has its request");
    --found->second;
  }
  void clear() { open_.clear(); }

 private:
  std::map<std::pair<net::PeerId, std::uint64_t>, unsigned> open_;
};

}  // namespace pif::fuzz
