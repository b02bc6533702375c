// Who stands in for LFSs that are absent, in one job.
#include "../../libtool/src/controller/stand_ins.h"

#include <catch2/catch.hpp>

#include "pif/wire/values.h"
#include "pif/wire/views.h"

namespace pif::tool {
namespace {

// A file on nodes 10, 11, ... of which some are lost.
client::FileParts file_on(std::uint32_t width, std::vector<std::uint32_t> bevies,
                          const std::vector<LfsIndex>& lost = {}) {
  client::FileParts parts;
  parts.path = "/a";
  parts.format = Format::fixed(100);
  parts.layout = *parity::Layout::make(width, bevies);
  parts.file_layout.set_form(bevies.empty() ? 0 : 1);
  for (const auto bevy : bevies) parts.file_layout.add_bevies(bevy);
  for (std::uint32_t i = 0; i < width; ++i) {
    proto::NodeInfo& node = parts.nodes.emplace_back();
    node.set_id(10 + i);
    node.set_name("lfs" + std::to_string(i));
    parts.file_layout.add_nodes(10 + i);
  }
  for (const LfsIndex lfs : lost) parts.nodes[lfs].set_view_state(wire::kViewLost);
  return parts;
}

FileLength records(std::uint64_t count) { return {count, count * 100}; }

std::uint32_t place_of(const client::FileParts& parts, LfsIndex lfs, std::uint64_t count = 1000) {
  const auto chosen = StandIns::choose({{&parts, records(count)}});
  REQUIRE(chosen);
  return chosen->place_of(parts.nodes[lfs]).id();
}

}  // namespace

TEST_CASE("where nobody is absent every worker is at its own LFS") {
  const auto parts = file_on(8, {4, 4});
  const auto chosen = StandIns::choose({{&parts, records(1000)}});
  REQUIRE(chosen);
  CHECK(chosen->is_empty());
  for (LfsIndex lfs = 0; lfs < 8; ++lfs) CHECK(chosen->place_of(parts.nodes[lfs]).id() == 10 + lfs);
}

TEST_CASE("the next present LFS of the same bevy stands in, around the bevy's end") {
  CHECK(place_of(file_on(8, {4, 4}, {1}), 1) == 12);
  CHECK(place_of(file_on(8, {4, 4}, {3}), 3) == 10);
  CHECK(place_of(file_on(8, {4, 4}, {7}), 7) == 14);
  CHECK(place_of(file_on(8, {4, 4}, {1, 2}), 1) == 13);
  CHECK(place_of(file_on(8, {4, 4}, {1, 2}), 2) == 13);
  CHECK(place_of(file_on(8, {4, 4}, {0, 1, 2, 3}), 1) == 14);
}

TEST_CASE("requests for an absent LFS go to who stands in; the layout stays") {
  const auto parts = file_on(8, {4, 4}, {1});
  const auto placed = StandIns::choose({{&parts, records(1000)}})->with_places(parts);
  CHECK(placed.nodes[1].id() == 12);
  CHECK(placed.nodes[2].id() == 12);
  CHECK_FALSE(placed.is_absent(1));
  CHECK(placed.file_layout.nodes(1) == 11);
}

TEST_CASE("of an input that has few records only an LFS that has a component of it stands in") {
  const auto parts = file_on(8, {4, 4}, {0});
  const std::uint32_t place = place_of(parts, 0, 1);
  const auto lfs = static_cast<LfsIndex>(place - 10);
  CHECK(lfs != 0);
  CHECK(parts.layout.rows(lfs, 1) + parts.layout.parity_rows(lfs, 1) > 0);
}

TEST_CASE("one LFS stands in for another whatever the file, also where its rows are others' neighbours") {
  const auto input = file_on(8, {4, 4}, {1});
  auto output = file_on(8, {2, 2, 2, 2}, {1});
  output.creating = true;
  const auto chosen = StandIns::choose({{&input, records(1000)}, {&output, {}}});
  REQUIRE(chosen);
  CHECK(chosen->place_of(output.nodes[1]).id() == 12);
  CHECK(chosen->with_places(output).nodes[1].id() == 12);
}

TEST_CASE("a file without parity needs its LFS: nobody stands in for it") {
  const auto plain = file_on(8, {}, {1});
  const auto safe = file_on(8, {4, 4}, {1});
  const auto alone = StandIns::choose({{&plain, records(1000)}});
  REQUIRE(alone);
  CHECK(alone->is_empty());  // who asks it finds out
  const auto both = StandIns::choose({{&safe, records(1000)}, {&plain, records(1000)}});
  REQUIRE_FALSE(both);
  CHECK(both.error().code == Code::kUnavailable);
  CHECK(both.error().node == "lfs1");
}

}  // namespace pif::tool
