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

TEST_CASE("a tool's input is held although the server is killed and started again, until the tool is done") {
  sim::World world(2);
  sim::Cluster cluster(world, 2);
  sim::Names names;
  bool is_there = false, is_held = false, is_done = false;
  sim::register_tool(cluster, names, [&](tool::Worker&, sim::Actor& self) -> Status {  // leaves its input to the server
    self.pause(seconds(60));
    return {};
  });
  world.spawn_main(
      "writer",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        put(*client);
        is_there = true;
        while (!is_held) self.pause(milliseconds(1));
        cluster.restart_server();
        for (int i = 0; i < 50; ++i) {
          const auto refused = client->open("/a", Client::Mode::kWrite);
          REQUIRE(!refused);
          CHECK(refused.error().code == Code::kBusy);
          CHECK(refused.error().text.find("held against writing") != std::string::npos);
          self.pause(seconds(1));
        }
        while (!is_done) self.pause(milliseconds(1));
        CHECK(client->open("/a", Client::Mode::kWrite));
      },
      sim::Who{0, {0}});
  world.spawn_main(
      "tool",
      [&](sim::Actor& self) {
        while (!is_there) self.pause(milliseconds(1));
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        {
          tool::Controller controller(*client, sim::sim_controller());
          REQUIRE(controller.open("/a"));
          is_held = true;
          CHECK(controller.run({}));
        }
        is_done = true;
      },
      sim::Who{0, {0}});
  world.run();
}

// Longer than any lease or capability lives.
TEST_CASE("what a tool reads is held, and what it makes is kept, for as long as its workers take") {
  sim::World world(4);
  sim::Cluster cluster(world, 2);
  sim::Names names;
  bool is_held = false, is_done = false;
  sim::register_tool(cluster, names, [](tool::Worker& worker, sim::Actor& self) -> Status {
    self.pause(std::chrono::hours(1));
    PIF_TRY(worker.input(0));  // not before
    PIF_TRY(worker.output(0));
    return {};
  });
  world.spawn_main(
      "tool",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        put(*client);
        tool::Controller controller(*client, sim::sim_controller());
        REQUIRE(controller.open("/a"));
        CreateOptions options;
        options.format = Format::fixed(100);
        options.nodes = {1, 2};
        const auto output = controller.create("/b", options);
        REQUIRE(output);
        is_held = true;
        const auto done = controller.run({});
        INFO((done ? std::string() : done.error().to_string()));
        REQUIRE(done);
        controller.set_file_length(*output, {});
        const Status committed = controller.commit();
        INFO((committed ? std::string() : committed.error().to_string()));
        CHECK(committed);
        is_done = true;
      },
      sim::Who{0, {0}});
  world.spawn_main(
      "writer",
      [&](sim::Actor& self) {
        while (!is_held) self.pause(milliseconds(1));
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        while (!is_done) {
          const auto refused = client->open("/a", Client::Mode::kWrite);
          if (is_done) break;
          REQUIRE(!refused);
          CHECK(refused.error().code == Code::kBusy);
          self.pause(seconds(10));
        }
      },
      sim::Who{0, {0}});
  world.run();
}

TEST_CASE("a tool that was stopped for so long that its input was given free does not go on") {
  sim::World world(3);
  sim::Cluster cluster(world, 2);
  sim::Names names;
  bool is_held = false;
  sim::register_tool(cluster, names, [](tool::Worker&, sim::Actor&) -> Status { return {}; });
  world.spawn_main(
      "tool",
      [&](sim::Actor& self) {
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        put(*client);
        tool::Controller controller(*client, sim::sim_controller());
        REQUIRE(controller.open("/a"));
        is_held = true;
        self.pause(seconds(60));
        const auto refused = controller.run({});
        REQUIRE(!refused);
        CHECK(refused.error().code == Code::kStaleFile);
        CHECK(refused.error().text.find("nobody was kept from changing it") != std::string::npos);
      },
      sim::Who{0, {0}});
  world.spawn_main(
      "writer",
      [&](sim::Actor& self) {
        while (!is_held) self.pause(milliseconds(1));
        cluster.restart_server();
        self.pause(seconds(40));
        sim::ClientSide side(self);
        auto client = sim::sim_client(side, 2);
        REQUIRE(client);
        CHECK(client->open("/a", Client::Mode::kWrite));
      },
      sim::Who{0, {0}});
  world.run();
}

}  // namespace
}  // namespace pif
