// What becomes of a transpose when one of its parts dies: the whole output or none of it.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_transpose/transpose.h"
#include "libtool/tool_fixtures.h"
#include "matrix/bits.h"

namespace pif::transpose {
namespace {

constexpr unsigned kLfss = 4;
constexpr std::uint64_t kRows = 300, kColumns = 500;
constexpr matrix::Element kElement{1, matrix::BitOrder::kMsb};

class Killed final : public sim::KilledTool {
 public:
  Killed(Algorithm algorithm, std::uint64_t seed)
      : KilledTool(seed, kLfss, work), algorithm_(algorithm), random_(seed) {
    matrix_ = matrix::random_bytes(kRows * kElement.bytes_of(kColumns), random_);
  }

 private:
  void put(Client& client) override {
    CreateOptions options;
    options.format = Format::fixed(static_cast<std::uint32_t>(kElement.bytes_of(kColumns)));
    options.width = kLfss;
    auto file = client.create("/in", options);
    REQUIRE(file);
    REQUIRE(file->write(matrix_));
    REQUIRE(file->commit());
  }
  bool control_tool(tool::Controller& controller) override {
    TransposeOptions wanted;
    wanted.source = "/in";
    wanted.target = "/out";
    wanted.columns = kColumns;
    wanted.algorithm = algorithm_;
    wanted.memory = 100'000;  // several stripes, several passes
    return control(controller, wanted).has_value();
  }
  void look(Client& client) override {
    const auto there = client.stat("/out");
    if (succeeded()) REQUIRE(there);
    if (!there) return;
    auto file = client.open("/out");
    REQUIRE(file);
    matrix::Bytes got(kColumns * kElement.bytes_of(kRows));
    REQUIRE(file->pread(got, 0) == got.size());
    REQUIRE(got == matrix::transposed(matrix_, kRows, kColumns, kElement));
  }

  Algorithm algorithm_;
  std::mt19937_64 random_;
  matrix::Bytes matrix_;
};

}  // namespace

TEST_CASE("whoever dies at whatever moment of a transpose, there is a whole output or none") {
  std::uint64_t seed = 0;
  unsigned kills = 0;
  for (const auto& [algorithm, name] : kAlgorithms) {
    for (const char* victim : {"/", "lfs", "controller"}) {
      for (std::uint64_t steps = 20; steps < 2000; steps = steps * 3 / 2) {
        INFO(name << ", " << victim << " at step " << steps);
        kills += Killed(algorithm, ++seed).run(victim, steps) ? 1 : 0;
      }
    }
  }
  REQUIRE(kills > 30);
}

}  // namespace pif::transpose
