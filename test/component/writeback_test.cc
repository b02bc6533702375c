#include <catch2/catch.hpp>

#include "../../component/src/stream/stream_writer.h"

namespace pif::component {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

TEST_CASE("writeback: stretches that are written in turn are each asked for in long pieces, and nothing twice") {
  Writeback writeback;
  std::vector<Range> asked;
  for (std::uint64_t at = 0; at < 64 * kMiB; at += kMiB) {
    for (const std::uint64_t stretch : {0, 1, 2}) {
      const std::uint64_t begin = stretch * 100 * kMiB + at;
      if (const auto ready = writeback.add({begin, begin + kMiB})) asked.push_back(*ready);
    }
  }
  CHECK(asked.size() == 24);
  std::sort(asked.begin(), asked.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < asked.size(); ++i) {
    CHECK(asked[i].size() == 8 * kMiB);
    CHECK(asked[i].begin == i / 8 * 100 * kMiB + i % 8 * 8 * kMiB);
  }
}

TEST_CASE("writeback: long writes here and there are asked for at once, and not remembered without a bound") {
  Writeback writeback;  // asserts how many stretches it remembers
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Range written{i * 100 * kMiB, i * 100 * kMiB + 8 * kMiB};
    CHECK(writeback.add(written) == std::optional(written));
  }
}

TEST_CASE("writeback: short writes here and there are left to whoever syncs") {
  Writeback writeback;
  for (std::uint64_t i = 0; i < 10'000; ++i) CHECK(!writeback.add({i * kMiB, i * kMiB + 100}));
}

}  // namespace
}  // namespace pif::component
