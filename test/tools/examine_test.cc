#include <catch2/catch.hpp>

#include "../../tools/pif/repair/examine.h"
#include "pif/base/format.h"
#include "pif/wire/convert.h"

using namespace pif;
using namespace pif::cli;

namespace {

constexpr std::uint64_t kId = 42;
constexpr std::uint32_t kLength = 100;

// A file of `bytes` bytes over nodes 1, 2 and 3 in records of 100, and the components it should have.
struct World {
  FileRecord file;
  Held held;

  explicit World(std::uint64_t bytes, std::vector<std::uint32_t> bevies = {}, std::uint32_t width = 3) {
    const FileLength file_length = fixed_file_length(kLength, bytes);
    file.set_file(kId);
    file.set_path("/a");
    file.set_state(kFileCommitted);
    *file.mutable_format() = wire::proto_of(Format::fixed(kLength));
    *file.mutable_file_length() = wire::proto_of(file_length);
    for (std::uint32_t node = 1; node <= width; ++node) file.mutable_layout()->add_nodes(node);
    for (const std::uint32_t size : bevies) file.mutable_layout()->add_bevies(size);
    const auto layout = parity::Layout::make(width, bevies);
    for (LfsIndex i = 0; i < width; ++i) add_component(*layout, file_length, i);
  }

  void add_component(const parity::Layout& layout, const FileLength& file_length, LfsIndex index) {
    const std::uint64_t rows = layout.rows(index, file_length.records);
    if (rows == 0) return;
    auto& state = held[index + 1];
    state.mutable_shape()->set_file(kId);
    state.mutable_shape()->set_index(index);
    *state.mutable_shape()->mutable_format() = file.format();
    *state.mutable_shape()->mutable_layout() = file.layout();
    state.set_state(kComponentCommitted);
    state.set_rows(rows);
    const RecordNumber last = layout.record_at({index, rows - 1});
    state.set_bytes((rows - 1) * kLength + fixed_record_bytes(kLength, file_length, last));
    *state.mutable_published() = wire::proto_of(file_length);
  }

  std::vector<Finding> look() const { return examine(kId, &file, held); }
  // The kind of the only finding; "none" or "several".
  std::string verdict() const {
    const auto findings = look();
    if (findings.empty()) return "none";
    return findings.size() > 1 ? "several" : kind_name(findings[0].kind);
  }
};

}  // namespace

TEST_CASE("fsck finds nothing in files that are whole") {
  for (const std::uint64_t bytes : {0, 1, 100, 101, 300, 950}) CHECK(World(bytes).verdict() == "none");
  CHECK(World(4800, {2, 2}, 4).verdict() == "none");
}

TEST_CASE("fsck misses a component that has rows, not one that has none") {
  World world(950);
  world.held.erase(2);
  CHECK(world.verdict() == "missing");
  CHECK(world.look()[0].node == 2);
  World small(100);
  CHECK(small.held.size() == 1);
  CHECK(small.verdict() == "none");
}

TEST_CASE("fsck misses LFS 0 of a file that was appended to, for it has the length, even without rows") {
  World small(100, {2, 2}, 4);  // record 0 is on LFS 1
  small.file.mutable_layout()->set_form(1);
  for (auto& [node, state] : small.held) state.mutable_shape()->mutable_layout()->set_form(1);
  CHECK(small.held.size() == 1);
  CHECK(small.held.contains(2));
  CHECK(small.look()[0].node == 3);  // keeps parity of it
  auto& keeper = small.held[3];
  keeper = small.held[2];
  keeper.mutable_shape()->set_index(2);
  keeper.set_rows(0);
  keeper.set_bytes(0);
  keeper.set_gathered(true);
  CHECK(small.verdict() == "none");
  small.held[2].set_generation(1);
  CHECK(small.verdict() == "missing");
  CHECK(small.look()[0].node == 1);
  small.held[2].mutable_shape()->mutable_layout()->set_form(0);
  small.held[2].set_generation(0);
  CHECK(small.verdict() == "shape");
}

TEST_CASE("fsck counts rows and bytes exactly") {
  World few(950);
  few.held[2].set_rows(2);
  CHECK(few.verdict() == "length");
  World many(950);
  many.held[2].set_rows(4);
  CHECK(many.verdict() == "length");
  World bytes(950);
  bytes.held[1].set_bytes(bytes.held[1].bytes() + 1);
  CHECK(bytes.verdict() == "length");
}

TEST_CASE("rows of an append that never finished are no damage, lost ones are") {
  World more(950);
  more.held[2].set_rows(5);
  more.held[2].set_generation(1);
  CHECK(more.verdict() == "none");
  more.held[2].set_rows(2);
  CHECK(more.verdict() == "length");
}

TEST_CASE("the sequencer's length is the file's, and never behind the directory's") {
  World world(900);
  *world.file.mutable_file_length() = wire::proto_of(fixed_file_length(kLength, 600));
  CHECK(world.verdict() == "none");
  *world.held[1].mutable_published() = wire::proto_of(fixed_file_length(kLength, 300));
  *world.file.mutable_file_length() = wire::proto_of(fixed_file_length(kLength, 900));
  CHECK(world.verdict() == "length");
}

TEST_CASE("fsck tells a component of another shape or of a stranger") {
  World shape(950);
  shape.held[3].mutable_shape()->set_index(0);
  CHECK(shape.verdict() == "shape");
  World format(950);
  format.held[3].mutable_shape()->mutable_format()->set_record_length(7);
  CHECK(format.verdict() == "shape");
  World stranger(950);
  stranger.held[9] = stranger.held[3];
  CHECK(stranger.verdict() == "orphan");
}

TEST_CASE("a committed file has no component that is still written") {
  World world(950);
  world.held[2].set_state(kComponentOpen);
  CHECK(world.verdict() == "state");
  world.held[2].set_state(kComponentSealed);
  CHECK(world.verdict() == "none");
}

TEST_CASE("files being made or removed are nobody's damage") {
  for (const std::uint32_t state : {kFilePending, kFileDoomed}) {
    World world(950);
    world.file.set_state(state);
    world.held.erase(1);
    CHECK(world.verdict() == "none");
  }
}

TEST_CASE("components without a file are orphans once they were committed, leftovers before") {
  World world(100);
  auto findings = examine(kId, nullptr, world.held);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == Finding::Kind::kOrphan);
  CHECK(is_damage(findings[0]));
  world.held[1].set_state(kComponentSealed);
  findings = examine(kId, nullptr, world.held);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].kind == Finding::Kind::kLeftover);
  CHECK_FALSE(is_damage(findings[0]));
}
