// What the parts of a daemon need, driven by hand: a messenger that notes what is sent, and fibers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "pif/base/limits.h"
#include "pif/daemon/replies.h"
#include "sim/by_hand.h"

namespace pif::daemon::test {

struct ByHand {
  ByHand() {
    messenger.on_send = [this](net::PeerId to, const net::Packet& packet) { sent.emplace_back(to, packet.envelope); };
  }
  net::Delivery request(std::uint64_t id, std::uint32_t timeout_ms = 0, std::size_t bytes = 0) const {
    net::Delivery delivery;
    delivery.peer = peer;
    delivery.packet.envelope.set_id(id);
    delivery.packet.envelope.set_version(kProtocolVersion);
    delivery.packet.envelope.set_timeout_ms(timeout_ms);
    delivery.packet.envelope.mutable_stats();
    delivery.packet.body = net::Buffer(bytes);
    return delivery;
  }
  net::Delivery closed() const {
    net::Delivery delivery;
    delivery.kind = net::Delivery::Kind::kClosed;
    delivery.peer = peer;
    return delivery;
  }
  // Fibers whose time comes by then go on.
  void pass(Duration time) {
    clock.advance(time);
    fibers.run();
  }

  sim::FakeClock clock;
  sim::FakeMessenger messenger{clock};
  const net::PeerId peer = messenger.add({});
  std::vector<std::pair<net::PeerId, proto::Envelope>> sent;
  Fibers fibers{clock};
};

}  // namespace pif::daemon::test
