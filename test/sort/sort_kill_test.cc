// What becomes of a sort when one of its parts dies: the whole output or none of it, and the input as it was.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/sort.h"
#include "libtool/tool_fixtures.h"

namespace pif::sort {
namespace {

constexpr unsigned kLfss = 4;
constexpr unsigned kRecords = 3000;

std::string record(unsigned i) { return fmt::format("{:08}", i * 7919U % kRecords); }

class Killed final : public sim::KilledTool {
 public:
  // apart: workers share nothing.
  Killed(MergeKind merge, bool apart, std::uint64_t seed)
      : KilledTool(seed, kLfss, work), merge_(merge), apart_(apart) {}

 private:
  void put(Client& client) override {
    CreateOptions options;
    options.format = Format::fixed(8);
    options.width = kLfss;
    auto file = client.create("/in", options);
    REQUIRE(file);
    for (unsigned i = 0; i < kRecords; ++i) REQUIRE(file->write(std::as_bytes(std::span<const char>(record(i)))));
    REQUIRE(file->commit());
  }
  tool::ControllerOptions controller_options() const override {
    tool::ControllerOptions options = sim::sim_controller();
    options.apart = apart_;
    return options;
  }
  bool control_tool(tool::Controller& controller) override {
    SortOptions wanted;
    wanted.sources = {"/in"};
    wanted.target = "/out";
    wanted.merge = merge_;
    wanted.token_batch = 16;
    wanted.memory = 1;  // runs and sub-files in scratch files
    return control(controller, wanted).has_value();
  }
  std::vector<std::string> get(Client& client, const std::string& path) {
    auto file = client.open(path);
    REQUIRE(file);
    std::vector<std::string> records;
    std::vector<std::byte> bytes(8);
    for (unsigned i = 0; i < kRecords; ++i) {
      REQUIRE(file->read_at(i, bytes, 1));
      records.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return records;
  }
  void look(Client& client) override {
    auto input = get(client, "/in");
    for (unsigned i = 0; i < kRecords; ++i) REQUIRE(input[i] == record(i));
    const auto there = client.stat("/out");
    if (succeeded()) REQUIRE(there);
    if (!there) return;
    std::sort(input.begin(), input.end());
    REQUIRE(get(client, "/out") == input);
  }

  MergeKind merge_;
  bool apart_;
};

}  // namespace

TEST_CASE("whoever dies at whatever moment of a sort, there is a whole output or none, and the input is as it was") {
  std::uint64_t seed = 0;
  unsigned kills = 0;
  for (const MergeKind merge : {MergeKind::kSplit, MergeKind::kToken, MergeKind::kPipelined}) {
    for (const char* victim : {"/", "lfs", "controller"}) {
      for (std::uint64_t steps = 20; steps < 2000; steps = steps * 3 / 2) {
        for (const bool apart : {false, true}) {
          INFO("merge " << static_cast<int>(merge) << (apart ? " over the network, " : ", ") << victim << " at step "
                        << steps);
          kills += Killed(merge, apart, ++seed).run(victim, steps) ? 1 : 0;
        }
      }
    }
  }
  REQUIRE(kills > 50);
}

}  // namespace pif::sort
