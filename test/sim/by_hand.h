// What drives a whole daemon on one thread and without sockets: a clock that tests move, entropy that counts, and a
// messenger that hands over what it was given, and notes when the daemon would wait.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "pif/net/messenger.h"

namespace pif::sim {

class FakeClock final : public Clock {
 public:
  Time now() const override { return now_; }
  std::int64_t wall_seconds() const override { return wall_; }
  std::int64_t wall_ns() const override { return wall_ * 1'000'000'000 + within_; }
  void advance(Duration by) {
    now_ += by;
    wall_ += std::chrono::duration_cast<std::chrono::seconds>(by).count();
    within_ += by.count() % 1'000'000'000;
  }

 private:
  Time now_ = Time(std::chrono::hours(1));
  std::int64_t wall_ = 1'700'000'000;
  std::int64_t within_ = 0;  // ns, of moves by less than a second: wall_ does not know of them
};

class CountingEntropy final : public Entropy {
 public:
  std::uint64_t next() override { return ++last_ * 0x9e3779b97f4a7c15; }

 private:
  std::uint64_t last_ = 0;
};

class FakeMessenger : public net::Messenger {
 public:
  explicit FakeMessenger(FakeClock& clock) : clock_(clock) {}

  net::PeerId add(net::Identity identity) {
    identities_[++last_peer_] = std::move(identity);
    return last_peer_;
  }
  void deliver(net::PeerId peer, net::Packet packet) {
    net::Delivery delivery;
    delivery.peer = peer;
    delivery.packet = std::move(packet);
    inbox_.push_back(std::move(delivery));
  }
  void close(net::PeerId peer) {
    net::Delivery delivery;
    delivery.kind = net::Delivery::Kind::kClosed;
    delivery.peer = peer;
    inbox_.push_back(std::move(delivery));
  }
  // Set when the daemon would wait; for serve(), which then returns.
  std::atomic<bool>& idle() { return idle_; }
  // What the daemon sends goes here: answers, and its requests.
  std::function<void(net::PeerId, const net::Packet&)> on_send;

  Result<net::PeerId> connect(const proto::Endpoints& to, net::Route) override {
    auto& peer = connected_[to.SerializeAsString()];
    if (peer == 0) peer = add({.via = net::Identity::Via::kUnix, .has_uid = true, .uid = 0, .gids = {0}});
    return peer;
  }
  Result<net::PeerId> adopt(Handle) override { return fail(Code::kUnsupported, "no sockets here"); }
  void disconnect(net::PeerId) override {}
  Status send(net::PeerId peer, net::Packet packet) override {
    if (on_send) on_send(peer, packet);
    return {};
  }
  Result<std::optional<net::Delivery>> receive(Time deadline) override {
    if (!inbox_.empty()) {
      net::Delivery delivery = std::move(inbox_.front());
      inbox_.pop_front();
      return std::optional<net::Delivery>(std::move(delivery));
    }
    if (deadline > clock_.now()) idle_ = true;
    return std::optional<net::Delivery>();
  }
  const net::Identity& identity(net::PeerId peer) const override { return identities_.at(peer); }
  void wake() override {}
  Clock& clock() override { return clock_; }

 private:
  FakeClock& clock_;
  std::atomic<bool> idle_ = false;
  std::deque<net::Delivery> inbox_;
  std::map<std::string, net::PeerId> connected_;  // by endpoints
  std::map<net::PeerId, net::Identity> identities_;
  net::PeerId last_peer_ = 0;
};

}  // namespace pif::sim
