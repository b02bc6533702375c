// A controller that reaches its LFSs over ZeroMQ, where an answer may be lost with its connection.
#include <functional>
#include <set>

#include <catch2/catch.hpp>

#include "libtool/sim_tools.h"
#include "pif/net/calls.h"
#include "pif/tool/team.h"

namespace pif {
namespace {

using std::chrono::seconds;

constexpr unsigned kLfss = 2;

// Whether an answer is lost: those to requests about workers, counted from 0.
using Loses = std::function<bool(unsigned answer)>;

class LossyMessenger final : public net::Messenger {
 public:
  LossyMessenger(net::Messenger& inner, Loses loses) : inner_(inner), loses_(std::move(loses)) {}

  Result<net::PeerId> connect(const proto::Endpoints& to, net::Route route) override {
    return inner_.connect(to, route);
  }
  Result<net::PeerId> adopt(Handle connection) override { return inner_.adopt(std::move(connection)); }
  void disconnect(net::PeerId peer) override { inner_.disconnect(peer); }
  Status send(net::PeerId peer, net::Packet packet) override {
    const proto::Envelope& asked = packet.envelope;
    if (asked.has_job_wait() || asked.has_spawn() || asked.has_job_meet()) asked_.insert(asked.id());
    return inner_.send(peer, std::move(packet));
  }
  Result<std::optional<net::Delivery>> receive(Time deadline) override {
    while (true) {
      PIF_TRY_VALUE(auto delivery, inner_.receive(deadline));
      const bool is_answer = delivery && delivery->kind == net::Delivery::Kind::kPacket &&
                             net::is_reply(delivery->packet.envelope) &&
                             asked_.erase(delivery->packet.envelope.id()) > 0;
      if (!is_answer || !loses_(answers_++)) return delivery;
    }
  }
  const net::Identity& identity(net::PeerId peer) const override { return inner_.identity(peer); }
  void wake() override { inner_.wake(); }
  Clock& clock() override { return inner_.clock(); }

 private:
  net::Messenger& inner_;
  Loses loses_;
  std::set<std::uint64_t> asked_;
  unsigned answers_ = 0;
};

// A job whose workers meet, on two LFSs.
void run_losing(const Loses& loses, const std::function<void(tool::Controller&)>& body) {
  sim::World world(1);
  sim::Cluster cluster(world, kLfss);
  sim::Names names;
  sim::register_tool(cluster, names, [](tool::Worker& worker, sim::Actor& self) -> Status {
    PIF_TRY(tool::Team::join(worker));
    self.pause(seconds(2));
    worker.set_result(worker.node());
    return {};
  });
  world.spawn_main(
      "tool",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        LossyMessenger messenger(side.world().messenger, loses);
        ConnectOptions options;
        options.route = "ipc";
        auto client =
            Client::connect_in({messenger, side.world().storage, side.world().entropy}, sim::Cluster::kServer, options);
        REQUIRE(client);
        REQUIRE(client->status(kLfss));
        tool::ControllerOptions apart = sim::sim_controller();
        apart.apart = true;
        tool::Controller controller(*client, std::move(apart));
        body(controller);
      },
      sim::Who{0, {0}});
  world.run();
}

TEST_CASE("whichever answer about workers is lost, it is asked for again, and the job ends well") {
  bool has_lost = true;
  for (unsigned lost = 0; has_lost; ++lost) {
    has_lost = false;
    run_losing([&](unsigned answer) { return answer == lost && (has_lost = true); },
               [&](tool::Controller& controller) {
                 const auto done = controller.run({});
                 INFO("answer " << lost << ": " << (done ? std::string() : done.error().to_string()));
                 REQUIRE(done);
                 CHECK(*done == std::vector<std::string>{"lfs0", "lfs1"});
               });
    REQUIRE(lost < 100);
  }
}

TEST_CASE("an LFS of which two answers are lost one after the other is lost to the job") {
  run_losing([](unsigned answer) { return answer >= 8; },
             [](tool::Controller& controller) {
               const auto done = controller.run({});
               REQUIRE(!done);
               CHECK(done.error().code == Code::kTimeout);
               CHECK(done.error().text.find("where a worker of this job ran: ") != std::string::npos);
             });
}

}  // namespace
}  // namespace pif
