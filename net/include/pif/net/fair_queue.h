// The next peer, where many want more than can be done at once: deficit round robin, counted in bytes (Shreedhar and
// Varghese, "Efficient Fair Queuing using Deficit Round Robin", 1995). There the length of a packet is known before it
// is sent. Here nobody knows before what a request costs, so a peer pays afterwards, and waits until it has paid. Pure:
// no clock, no I/O. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pif/base/assert.h"
#include "pif/net/messenger.h"

namespace pif::net {

// The cost a peer may have in its turn, and the least cost of everything that is taken. A request by message takes an
// LFS about 10 us whatever it asks for, in which it reads and checks 64 KiB.
inline constexpr std::int64_t kTurnBytes = 64 << 10;

// T: what waits; movable.
template <typename T>
class FairQueue {
 public:
  struct Taken {
    PeerId peer = 0;
    T item;
  };
  struct Waiting {
    PeerId peer = 0;
    std::size_t count = 0;
    std::uint64_t bytes = 0;  // as they were pushed
  };

  // Behind all that waits of this peer. bytes: of memory that it takes, for peer_bytes() and bytes() alone.
  void push(PeerId peer, T item, std::uint64_t bytes = 0) {
    Peer& queue = peer_of(peer);
    queue.items.push_back({std::move(item), bytes});
    queue.bytes += bytes;
    bytes_ += bytes;
    ++size_;
  }
  // The oldest item of the peer whose turn it is, which costs it kTurnBytes; nothing if nothing waits.
  std::optional<Taken> pop() {
    if (size_ == 0) return std::nullopt;
    for (;;) {
      const PeerId id = ring_.front();
      Peer& peer = peers_.at(id);
      PIF_ASSERT(peer.balance <= kTurnBytes, peer.balance);
      if (peer.balance > 0 && !peer.items.empty()) return Taken{id, take(peer)};
      ring_.pop_front();
      if (peer.items.empty() && peer.balance >= 0) {
        peers_.erase(id);
        continue;
      }
      peer.balance += kTurnBytes;
      ring_.push_back(id);
    }
  }
  // Charges it so many bytes beside kTurnBytes for what was taken. A peer that neither waits nor owes pays nothing.
  void charge(PeerId peer, std::uint64_t bytes) {
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    const auto cost = static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, kDebtMax));
    found->second.balance = std::max(found->second.balance - cost, -kDebtMax);
  }
  // Whether something of this peer, pushed now, would be taken before it has waited for others.
  bool owes(PeerId peer) const {
    const auto found = peers_.find(peer);
    return found != peers_.end() && found->second.balance <= 0;
  }
  // The peer is gone. Its items that wait, the oldest first.
  std::vector<T> drop(PeerId peer) {
    std::vector<T> out;
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return out;
    for (Item& item : found->second.items) out.push_back(std::move(item.item));
    PIF_ASSERT(size_ >= out.size() && bytes_ >= found->second.bytes, size_, bytes_);
    size_ -= out.size();
    bytes_ -= found->second.bytes;
    peers_.erase(found);
    std::erase(ring_, peer);
    return out;
  }
  // Nothing waits, and nobody had to wait for anybody: no peer owes anything any more.
  void forgive() {
    PIF_ASSERT(size_ == 0 && bytes_ == 0, size_, bytes_);
    peers_.clear();
    ring_.clear();
  }

  // The items that wait and their bytes, of all peers or of one.
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t peer_size(PeerId peer) const {
    const auto found = peers_.find(peer);
    return found == peers_.end() ? 0 : found->second.items.size();
  }
  std::uint64_t peer_bytes(PeerId peer) const {
    const auto found = peers_.find(peer);
    return found == peers_.end() ? 0 : found->second.bytes;
  }
  // Those with something waiting, in no particular order.
  std::vector<Waiting> waiting() const {
    std::vector<Waiting> out;
    for (const auto& [id, peer] : peers_)
      if (!peer.items.empty()) out.push_back({id, peer.items.size(), peer.bytes});
    return out;
  }

 private:
  static constexpr std::int64_t kDebtMax = 32 << 20;  // a peer is never shut out for longer than this takes others

  struct Item {
    T item;
    std::uint64_t bytes = 0;
  };
  struct Peer {
    std::deque<Item> items;
    std::uint64_t bytes = 0;
    std::int64_t balance = kTurnBytes;  // what it may still cost; below zero it owes
  };
  Peer& peer_of(PeerId id) {
    const auto [found, is_new] = peers_.try_emplace(id);
    if (is_new) ring_.push_back(id);
    return found->second;
  }
  T take(Peer& peer) {
    Item out = std::move(peer.items.front());
    peer.items.pop_front();
    PIF_ASSERT(size_ > 0 && bytes_ >= out.bytes && peer.bytes >= out.bytes, size_, bytes_);
    --size_;
    bytes_ -= out.bytes;
    peer.bytes -= out.bytes;
    peer.balance -= kTurnBytes;
    return std::move(out.item);
  }

  std::unordered_map<PeerId, Peer> peers_;  // those who wait or owe
  std::deque<PeerId> ring_;                 // the same: whose turn it is, and so on
  std::size_t size_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace pif::net
