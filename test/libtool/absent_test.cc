// A tool on files with parity while one of their LFSs is lost: workers of the lost one run beside another's.
#include <optional>
#include <set>

#include <catch2/catch.hpp>

#include "../../tools/pif_copy/copy.h"
#include "libtool/tool_fixtures.h"
#include "pif/client/session.h"
#include "pif/wire/values.h"

namespace pif {
namespace {

using namespace std::chrono_literals;
using sim::get;
using sim::must;
using sim::put;

constexpr unsigned kLfss = 5;
constexpr int kSecondsMax = 60;  // until a view changes

// LFS n of the file is lfsN: two bevies of two.
CreateOptions in_order() {
  CreateOptions options;
  options.format = Format::fixed(100);
  options.nodes = {1, 2, 3, 4};
  options.bevy = 2;
  return options;
}

struct Tools : sim::ToolFixture {
  explicit Tools(std::uint64_t seed = 1) : ToolFixture(seed, kLfss, copy::work) {}

  std::uint32_t view_state(Client& client, unsigned lfs) {
    const auto reply = must(client.session().call(proto::Nodes()));
    for (const proto::NodeInfo& node : reply.nodes())
      if (node.id() == lfs + 1) return node.view_state();
    return 0;
  }
  void lose(Client& client, sim::Actor& self, unsigned lfs) {
    cluster.kill_lfs(lfs);
    for (int i = 0; i < kSecondsMax; ++i) {
      proto::NodeLost lost;
      lost.set_node(lfs + 1);
      if (client.session().call(std::move(lost))) break;
      (void)self.pause(1s);
    }
    REQUIRE(view_state(client, lfs) == wire::kViewLost);
  }
  void bring_back(Client& client, sim::Actor& self, unsigned lfs) {
    cluster.restart_lfs(lfs);
    for (int i = 0; i < kSecondsMax && view_state(client, lfs) != wire::kViewMember; ++i) (void)self.pause(1s);
    REQUIRE(view_state(client, lfs) == wire::kViewMember);
  }
};

Result<tool::ExitCode> copy_to(Client& client, const std::string& target, std::vector<std::string> nodes = {},
                               std::optional<std::uint32_t> bevy = {}) {
  copy::CopyOptions wanted;
  wanted.source = "/a";
  wanted.target = target;
  wanted.nodes = std::move(nodes);
  wanted.bevy = bevy;
  tool::Controller controller(client, sim::sim_controller());
  return copy::control(controller, wanted);
}

// With a file /a of these bytes, of whose LFSs one is lost.
void with_each_lost(
    const std::function<void(Tools&, Client&, sim::Actor&, unsigned lost, const std::vector<std::byte>& bytes)>& body) {
  for (const unsigned lost : {0u, 1u, 3u}) {
    Tools tools(lost + 1);
    tools.run([&](Client& client, sim::Actor& self) {
      const auto bytes = sim::random_bytes(100 * 700 + 33, 5);
      put(client, "/a", in_order(), bytes);
      tools.lose(client, self, lost);
      body(tools, client, self, lost, bytes);
    });
  }
}

void check_copies(Client& client, const std::vector<std::byte>& bytes) {
  CHECK(get(client, "/same") == bytes);
  CHECK(get(client, "/other") == bytes);
}

}  // namespace

TEST_CASE("a tool reads what a lost LFS had") {
  with_each_lost([](Tools&, Client& client, sim::Actor&, unsigned lost, const auto& bytes) {
    std::vector<std::string> others;
    for (unsigned lfs = 0; lfs < kLfss; ++lfs)
      if (lfs != lost) others.push_back(std::to_string(lfs + 1));
    must(copy_to(client, "/b", others, 0));
    CHECK(get(client, "/b") == bytes);
  });
}

TEST_CASE("what a tool writes while an LFS is lost is there without it, and with it again") {
  with_each_lost([](Tools& tools, Client& client, sim::Actor& self, unsigned lost, const auto& bytes) {
    must(copy_to(client, "/same"));
    must(copy_to(client, "/other", {"4", "3", "2", "1"}));
    check_copies(client, bytes);
    tools.bring_back(client, self, lost);
    check_copies(client, bytes);
    tools.cluster.kill_lfs(lost == 0 ? 1 : lost - 1);
    check_copies(client, bytes);
  });
}

TEST_CASE("a tool that needs an LFS that is silent says that it can be declared lost") {
  Tools tools;
  tools.run([&](Client& client, sim::Actor&) {
    put(client, "/a", in_order(), sim::random_bytes(10'000, 5));
    tools.cluster.kill_lfs(2);
    const auto copied = copy_to(client, "/b");
    REQUIRE_FALSE(copied);
    CAPTURE(copied.error().to_string());
    CHECK(copied.error().node == "lfs2");
    CHECK(copied.error().text.find("pif node lost lfs2") != std::string::npos);
    CHECK_FALSE(client.stat("/b"));
  });
}

TEST_CASE("an LFS has several workers of a job when it stands in for others") {
  Tools tools;
  std::multiset<std::string> places;
  std::set<std::uint32_t> stood_for;
  sim::register_tool(tools.cluster, tools.names, [&](tool::Worker& worker, sim::Actor&) -> Status {
    places.insert(worker.node());
    stood_for.insert(worker.node_id(worker.rank()));
    PIF_TRY_VALUE(tool::Input* const input, worker.input(0));
    if (!input->is_here() || input->index() + 1 != worker.node_id(worker.rank()))
      return fail(Code::kInternal, "the component of another LFS");
    return {};
  });
  tools.run([&](Client& client, sim::Actor& self) {
    put(client, "/a", in_order(), sim::random_bytes(10'000, 5));
    tools.lose(client, self, 2);
    tool::Controller controller(client, sim::sim_controller());
    must(controller.open("/a"));
    must(controller.run({}));
  });
  CHECK(places == std::multiset<std::string>{"lfs0", "lfs1", "lfs3", "lfs3"});
  CHECK(stood_for == std::set<std::uint32_t>{1, 2, 3, 4});
}

}  // namespace pif
