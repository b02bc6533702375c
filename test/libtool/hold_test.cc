// A tool's input stays as it is while the tool's workers have it, whatever the PIF Server has forgotten.
#include <catch2/catch.hpp>

#include "libtool/sim_tools.h"

namespace pif {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void put(Client& client) {
  CreateOptions options;
  options.format = Format::fixed(100);
  options.nodes = {1, 2};
  auto file = client.create("/a", options);
  REQUIRE(file);
  REQUIRE(file->write(std::vector<std::byte>(1000)));
  REQUIRE(file->commit());
}

TEST_CASE("who may write to a file, but lost the lease on it, writes nothing while workers read it") {
  sim::World world(1);
  sim::Cluster cluster(world, 2);
  sim::Names names;
  bool may_start = false;
  unsigned reading = 0;
  sim::register_tool(cluster, names, [&](tool::Worker& worker, sim::Actor& self) -> Status {
    PIF_TRY(worker.input(0));
    ++reading;
    self.pause(seconds(1));
    return {};
  });
  world.spawn_main(
      "writer",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        put(*client);
        auto file = client->open("/a", Client::Mode::kWrite);
        REQUIRE(file);
        const std::vector<std::byte> record(100, std::byte{7});
        REQUIRE(file->write_at(3, record));
        cluster.restart_server();  // leases are in its memory only
        may_start = true;
        while (reading < 2) self.pause(milliseconds(1));
        const auto refused = file->write_at(4, record);
        REQUIRE(!refused);
        CHECK(refused.error().code == Code::kBusy);
        CHECK(refused.error().text.find("held against writing") != std::string::npos);
        self.pause(seconds(2));
        CHECK(file->write_at(5, record));
      },
      sim::Who{0, {0}});
  world.spawn_main(
      "tool",
      [&](sim::Actor& self) {
        while (!may_start) self.pause(milliseconds(1));
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        tool::Controller controller(*client, sim::sim_controller());
        REQUIRE(controller.open("/a"));
        CHECK(controller.run({}));
      },
      sim::Who{0, {0}});
  world.run();
}

}  // namespace
}  // namespace pif
