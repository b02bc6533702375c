// Opening a root, and checking one that nobody serves.
#include "node.h"

using namespace pif;
using namespace pif::lfs::test;

namespace {

std::string path_of(const Node& node, std::uint64_t file, const char* suffix) {
  return component::stem(node.root(), FileId(file)) + suffix;
}
std::unique_ptr<component::File> open(Node& node, const std::string& path,
                                      component::OpenMode mode = component::OpenMode::kWrite) {
  return component::make_memory_storage(node.disk)->open(path, mode).value();
}
// The one damage that the checker finds.
std::string only_damage(Node& node, bool sums = true) {
  const auto report = node.check(sums);
  REQUIRE_OK(report);
  REQUIRE(report->damages.size() == 1);
  return report->damages[0];
}

// A root with files 7 (fixed) and 8 (variable), whose daemon has been killed.
void with_root(const std::function<void(Node&)>& body) {
  with_node([&](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(20050, 1)));
    TestFile other;
    other.id = 8;
    other.format = Format::variable();
    REQUIRE_OK(peer.put_variable(other, {pattern(3000, 1), "", pattern(9000, 2)}));
    node.kill();
    body(node);
  });
}

Code open_with(const std::function<void(Node&)>& damage) {
  sim::World world(1);
  Node node(world);
  node.start();
  world.spawn_main("client", [&](sim::Actor& self) {
    self.pause(std::chrono::seconds(1));
    node.kill();
    damage(node);
    node.start();
    self.pause(std::chrono::seconds(1));
  });
  world.run();
  return node.open_error ? node.open_error->code : Code::kOk;
}

void write_identity(Node& node, const std::string& text) {
  auto file = open(node, node.root() + "/lfs.toml");
  REQUIRE_OK(file->resize(0));
  REQUIRE_OK(file->write(0, std::as_bytes(std::span(text))));
}

}  // namespace

TEST_CASE("a whole root has no damages, and its components are counted") {
  with_root([](Node& node) {
    const auto report = node.check().value();
    CHECK(report.damages.empty());
    CHECK(report.components == 2);
    CHECK(report.bytes == 20050 + 12000);
  });
}

TEST_CASE("a missing file is found and named") {
  with_root([](Node& node) {
    REQUIRE_OK(component::make_memory_storage(node.disk)->remove(path_of(node, 8, ".idx")));
    CHECK(only_damage(node, false).find(path_of(node, 8, ".idx")) != std::string::npos);
  });
}

TEST_CASE("truncated files are found and named, with how much is left") {
  for (const char* suffix : {".dat", ".sum", ".idx"}) {
    with_root([&](Node& node) {
      auto file = open(node, path_of(node, 8, suffix));
      const auto size = file->size().value();
      REQUIRE_OK(file->resize(size - 1));
      const auto damage = only_damage(node, false);
      CHECK(damage.find(path_of(node, 8, suffix)) != std::string::npos);
      CHECK(damage.find(std::to_string(size - 1)) != std::string::npos);
      CHECK(only_damage(node, true) == damage);  // what is not there is not read
    });
  }
}

TEST_CASE("a flipped bit anywhere in data or index is found by reading, in its chunk and nowhere else") {
  for (const char* suffix : {".dat", ".idx"}) {
    with_root([&](Node& node) {
      const auto size = open(node, path_of(node, 8, suffix))->size().value();
      for (std::uint64_t byte = 0; byte < size; byte += size / 7 + 1) {
        node.disk->flip_bit(path_of(node, 8, suffix), byte, static_cast<unsigned>(byte % 8));
        CHECK(node.check(false).value().damages.empty());
        const auto damages = node.check(true).value().damages;
        REQUIRE_FALSE(damages.empty());
        for (const auto& damage : damages) CHECK(damage.find("file 8") != std::string::npos);
        node.disk->flip_bit(path_of(node, 8, suffix), byte, static_cast<unsigned>(byte % 8));
      }
      CHECK(node.check().value().damages.empty());
    });
  }
}

TEST_CASE("a file that no entry of the catalogue owns is found, is no damage, and is removed at the next start") {
  with_root([](Node& node) {
    const auto orphan = path_of(node, 0x1234508, ".dat");
    open(node, orphan, component::OpenMode::kCreate);
    const auto report = node.check().value();
    CHECK(report.damages.empty());
    REQUIRE(report.leftovers.size() == 1);
    CHECK(report.leftovers[0].find(orphan) != std::string::npos);
  });
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    node.kill();
    open(node, path_of(node, 0x99907, ".sum"), component::OpenMode::kCreate);
    node.start();
    CHECK(peer.read(7, 0, 5).value() == pattern(500, 1));
    CHECK(node.check().value().damages.empty());
  });
}

TEST_CASE("an LFS that is killed while a component is being written leaves no damage") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.write(TestFile{}, 0, 5, pattern(500, 1)));
    node.kill();
    const auto report = node.check().value();
    CHECK(report.damages.empty());
    CHECK(report.leftovers.size() == 2);  // .dat and .sum
  });
}

TEST_CASE("overwrites that a dead daemon logged are no damage: the checker replays them") {
  with_node([](Peer& peer, Node& node) {
    auto bytes = pattern(20050, 1);
    REQUIRE_OK(peer.put(TestFile{}, bytes));
    REQUIRE_OK(peer.overwrite(7, 200, 1, pattern(50, 9)));
    bytes.replace(20000, 50, pattern(50, 9));
    node.crash();
    CHECK(node.check().value().damages.empty());
    CHECK(node.check().value().damages.empty());
    node.start();
    CHECK(peer.read(7, 0, 300).value() == bytes);
  });
}

TEST_CASE("the root of another file system or node, and a newer format, are refused by what they are") {
  CHECK(open_with([](Node&) {}) == Code::kOk);
  CHECK(open_with([](Node& n) { write_identity(n, "format = 2\ncluster = \"beef\"\nnode = 1\nname = \"lfs0\"\n"); }) ==
        Code::kInvalid);
  CHECK(open_with([](Node& n) {
          write_identity(n, "format = 2\ncluster = \"c0ffee\"\nnode = 2\nname = \"lfs1\"\n");
        }) == Code::kInvalid);
  CHECK(open_with([](Node& n) { write_identity(n, "format = 5\nsomething = new\n"); }) == Code::kVersion);
  CHECK(open_with([](Node& n) { write_identity(n, "format = 2\nrubbish\n"); }) == Code::kInvalid);
  CHECK(open_with([](Node& n) { write_identity(n, ""); }) == Code::kInvalid);
}

TEST_CASE("a root whose lfs.toml is gone is not taken for a new one") {
  with_node([](Peer& peer, Node& node) {
    REQUIRE_OK(peer.put(TestFile{}, pattern(500, 1)));
    node.kill();
    REQUIRE_OK(component::make_memory_storage(node.disk)->remove(node.root() + "/lfs.toml"));
    node.start();
    peer.self().pause(std::chrono::seconds(1));
    REQUIRE(node.open_error.has_value());
    CHECK(node.open_error->code == Code::kNotFound);
    CHECK_THAT(node.open_error->text, Catch::Contains("is the disk mounted?"));
    const auto storage = component::make_memory_storage(node.disk);
    const auto store = kv::open_memory(node.catalogue);
    CHECK(code_of(lfs::make_root(*storage, *store, node.root(), {"c0ffee", kNode, "lfs0", ""})) ==
          Code::kExists);  // nor made one
  });
}
