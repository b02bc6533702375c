// A tool in the simulated world: its controller in a client actor, its workers as programs of the cluster's LFSs.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "pif/tool/controller.h"
#include "pif/tool/worker.h"
#include "sim/cluster.h"

namespace pif::sim {

// Who listens where: endpoints that libtool made up, and the actors behind them.
using Names = std::map<std::string, std::string>;

// What came for a worker: mail from other workers, and the rest. A real worker has a messenger for each.
struct Inbox {
  std::deque<net::Delivery> mail, rest;
};

// Changes what a worker sends, as a worker that lies does. What has no operation afterwards is lost.
using Spoil = std::function<void(net::Packet& packet)>;

// An actor's messenger, reached by others under names of libtool's. A name that nobody has yet is waited for, as ZeroMQ
// connects again until somebody is there.
class NamedMessenger final : public net::Messenger {
 public:
  NamedMessenger(Actor& self, Names& names, std::shared_ptr<Inbox> inbox, bool for_mail, const Spoil& spoil)
      : self_(self),
        inner_(self.messenger()),
        names_(names),
        inbox_(std::move(inbox)),
        for_mail_(for_mail),
        spoil_(spoil) {}

  Result<net::PeerId> connect(const proto::Endpoints& to, net::Route route) override {
    if (!for_mail_) return inner_.connect(to, route);
    const bool is_unix = route == net::Route::kUnix;
    const bool is_tcp = route == net::Route::kTcp;
    const std::string& wanted = is_unix ? to.unix_path() : is_tcp ? to.tcp() : to.ipc();
    while (!names_.contains(wanted)) {
      if (is_unix) return fail(Code::kUnavailable, "nobody listens there");
      if (!self_.pause(std::chrono::milliseconds(1))) return fail(Code::kCancelled, "this actor was killed");
    }
    proto::Endpoints real;
    *(is_unix  ? real.mutable_unix_path()
      : is_tcp ? real.mutable_tcp()
               : real.mutable_ipc()) = "sim:" + names_.at(wanted);
    return inner_.connect(real, route);
  }
  Result<net::PeerId> adopt(Handle connection) override { return inner_.adopt(std::move(connection)); }
  void disconnect(net::PeerId peer) override { inner_.disconnect(peer); }
  Status send(net::PeerId peer, net::Packet packet) override {
    if (spoil_) spoil_(packet);
    if (packet.envelope.op_case() == proto::Envelope::OP_NOT_SET) return {};
    return inner_.send(peer, std::move(packet));
  }
  Result<std::optional<net::Delivery>> receive(Time deadline) override {
    auto& own = for_mail_ ? inbox_->mail : inbox_->rest;
    while (own.empty()) {
      PIF_TRY_VALUE(auto delivery, inner_.receive(deadline));
      if (!delivery) return std::nullopt;
      (delivery->packet.envelope.has_worker_mail() ? inbox_->mail : inbox_->rest).push_back(std::move(*delivery));
    }
    net::Delivery first = std::move(own.front());
    own.pop_front();
    return first;
  }
  const net::Identity& identity(net::PeerId peer) const override { return inner_.identity(peer); }
  void wake() override { inner_.wake(); }
  Clock& clock() override { return inner_.clock(); }

 private:
  Actor& self_;
  net::Messenger& inner_;
  Names& names_;
  std::shared_ptr<Inbox> inbox_;
  bool for_mail_;
  Spoil spoil_;
};

inline constexpr const char* kToolProgram = "/bin/tool";

// What a worker does that also waits, or looks at the world.
using WorkerBody = std::function<Status(tool::Worker&, Actor& self)>;

// Makes `work` what the workers of kToolProgram do. names: outlives the world. has_threads: their tasks run on threads
// of their own, which the world does not know; nothing else does meanwhile, for the worker waits for them.
inline void register_tool(Cluster& cluster, Names& names, WorkerBody work, Spoil spoil = {}, bool has_threads = false) {
  cluster.programs().mains[kToolProgram] = [&names, work = std::move(work), spoil = std::move(spoil), has_threads](
                                               Actor& self, const lfs::Spawner::Order&, Handle connection) {
    ClientSide side(self);
    const ClientWorld client = side.world();
    const auto inbox = std::make_shared<Inbox>();
    NamedMessenger to_lfs(self, names, inbox, false, spoil);
    tool::WorkerWorld world{to_lfs, client.storage, client.entropy, std::move(connection), {}};
    world.has_threads = has_threads;
    world.listen = [&](const tool::MailPlace& place) -> Result<tool::Mailbox> {
      names[place.at.ipc()] = names[place.at.unix_path()] = self.name();
      tool::Mailbox box{std::make_unique<NamedMessenger>(self, names, inbox, true, spoil), place.at};
      if (!place.at.tcp().empty()) {
        box.at.set_tcp("port of " + self.name());
        names[box.at.tcp()] = self.name();
      }
      return box;
    };
    return tool::Worker::run(std::move(world), [&](tool::Worker& worker) { return work(worker, self); }) ? 0 : 3;
  };
}

inline tool::ControllerOptions sim_controller() {
  tool::ControllerOptions options;
  options.program = kToolProgram;
  return options;
}

inline Result<Client> sim_client(ClientSide& side, unsigned lfss) {
  PIF_TRY_VALUE(Client client, Client::connect_in(side.world(), Cluster::kServer));
  PIF_TRY(client.status(lfss));  // until they are all up
  return client;
}

}  // namespace pif::sim
