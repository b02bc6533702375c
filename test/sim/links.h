// Connections between actors of the simulated world, and the messenger each actor has. One actor runs
// at a time, so nothing is locked.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "pif/daemon/fiber.h"
#include "sim/executor.h"
#include "sim/world.h"

namespace pif::sim {

// A packet on its way. The envelope travels as bytes, so that actors share no objects.
struct Parcel {
  Time arrives;
  bool closed = false;
  std::string envelope;
  net::Buffer body;
  std::vector<Handle> handles;
};

// A connection of two actors; what each end has yet to receive.
struct Link {
  struct End {
    ActorState* owner = nullptr;  // null: in a handle nobody has adopted, or gone
    net::PeerId peer = 0;         // what the owner calls the other end
    bool open = true;
    Time last_arrival{};
    std::deque<Parcel> inbox;
    std::size_t inbox_bytes = 0;
    net::Identity seen;  // the other end's, as the owner sees it
  };
  std::array<End, 2> ends;
  bool connectionless = false;  // ZeroMQ-like: nobody is told when the other end goes
};

// One end, as its owner or a handle holds it.
struct Port {
  std::shared_ptr<Link> link;
  unsigned side = 0;
  Link::End& mine() const { return link->ends[side]; }
  Link::End& theirs() const { return link->ends[1 - side]; }
};

// Which connections there are, and the rules by which parcels travel.
struct Switchboard {
  explicit Switchboard(World& owner) : world(owner) {}

  Port attach(ActorState& actor, std::shared_ptr<Link> link, unsigned side);
  // A link from `from` to the living actor `to`; the port is from's end.
  Port connect(ActorState& from, ActorState& to, net::Identity::Via via);
  std::pair<Handle, Handle> make_pair();
  Status send(const Port& port, net::Packet packet);
  void post(const Port& port, Parcel parcel);
  Time arrival(const Port& port);
  bool is_cut_off(const Port& port) const;
  bool keeps_order(const Port& port) const;
  void close(const Port& port);
  // Both ends get what is left of what was on its way to them, then see it close.
  void sever(Link& link);

  World& world;
  std::set<void*> loose;  // ends in handles
};

class SeededEntropy final : public Entropy {
 public:
  explicit SeededEntropy(std::uint64_t seed) : random_(seed) {}
  std::uint64_t next() override { return random_(); }

 private:
  std::mt19937_64 random_;
};

class SimClock final : public Clock {
 public:
  explicit SimClock(const World& world) : world_(world) {}
  Time now() const override { return world_.now(); }
  std::int64_t wall_seconds() const override {
    return 1'700'000'000 + std::chrono::duration_cast<std::chrono::seconds>(world_.now().time_since_epoch()).count();
  }
  std::int64_t wall_ns() const override {
    return 1'700'000'000'000'000'000 + Duration(world_.now().time_since_epoch()).count();
  }

 private:
  const World& world_;
};

class SimMessenger final : public net::Messenger {
 public:
  SimMessenger(World& world, ActorState& actor) : world_(world), actor_(actor), clock_(world) {}

  Result<net::PeerId> connect(const proto::Endpoints& to, net::Route route) override;
  Result<net::PeerId> adopt(Handle connection) override;
  void disconnect(net::PeerId peer) override;
  Status send(net::PeerId peer, net::Packet packet) override;
  Result<std::optional<net::Delivery>> receive(Time deadline) override;
  const net::Identity& identity(net::PeerId peer) const override;
  void wake() override;
  Clock& clock() override { return clock_; }

  bool has_delivery() const;
  Time next_arrival() const;
  void close_all();
  void break_some();

 private:
  friend struct Switchboard;
  struct Peer {
    Port port;
    std::string far_name;  // connectionless: whom to find again
    net::Identity::Via via = net::Identity::Via::kSimulated;
  };
  Result<net::PeerId> connect_name(const std::string& endpoint, net::Identity::Via via);
  std::optional<net::Delivery> take();
  std::optional<net::Delivery> open_parcel(net::PeerId id, Parcel parcel);

  World& world_;
  ActorState& actor_;
  SimClock clock_;
  std::map<net::PeerId, Peer> peers_;
  std::map<std::string, net::PeerId> outgoing_;
  net::PeerId next_peer_ = 1;
  net::Identity last_closed_;
  net::PeerId last_closed_id_ = 0;
};

struct ActorState {
  ActorState(World& world, ActorId its_id, std::string its_name, Who its_who, std::uint64_t seed)
      : id(its_id),
        name(std::move(its_name)),
        who(std::move(its_who)),
        entropy(seed),
        executor(world, *this),
        messenger(world, *this) {}

  const ActorId id;
  const std::string name;
  const Who who;
  std::optional<ActorId> parent;
  bool is_main = false;
  SeededEntropy entropy;
  SimExecutor executor;
  SimMessenger messenger;

  std::unique_ptr<daemon::Fiber> fiber;
  bool started = false;
  bool ended = false;
  bool killed = false;
  bool pausing = false;             // waits for the deadline only
  Time stalled{};                   // until when it does nothing
  Time deadline{};                  // until when it waits; in the past: it can go on
  std::atomic<bool> woken = false;  // the one thing another thread may set
  unsigned receives_after_death = 0;
};

}  // namespace pif::sim
