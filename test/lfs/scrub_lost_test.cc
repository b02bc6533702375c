// What an LFS has lost of files with parity: files of a component, entries of its catalogue, whole components. After a
// scrub all rows are there, and each can be rebuilt without its LFS.
#include "lost_server.h"
#include "pif/kv/value.h"
#include "pif/wire/file_states.h"
#include "scrubbing.h"

namespace pif::lfs::test {
namespace {

constexpr std::uint32_t kShort = 500;
const std::vector<std::string> kEndings = {".dat", ".sum", ".idx", ".isum", ".par", ".psum", ".pap"};

enum class Harm { kRemoved, kRemovedWhileOpen, kEmptied, kCut, kChanged };
constexpr std::array kHarms = {Harm::kRemoved, Harm::kRemovedWhileOpen, Harm::kEmptied, Harm::kCut, Harm::kChanged};

std::optional<std::uint64_t> size_of(Node& node, const std::string& path) {
  std::optional<std::uint64_t> out;
  const auto all = node.disk->files(node.root() + "/data");
  if (std::find(all.begin(), all.end(), path) == all.end()) return out;
  node.disk->edit(path, [&](std::vector<std::byte>& bytes) { out = bytes.size(); });
  return out;
}

void do_harm(Node& node, const std::string& path, Harm harm) {
  const auto storage = component::make_memory_storage(node.disk);
  switch (harm) {
    case Harm::kRemoved:
      node.kill();
      REQUIRE_OK(storage->remove(path));
      return node.start();
    case Harm::kRemovedWhileOpen: REQUIRE_OK(storage->remove(path)); return;
    case Harm::kEmptied: return node.disk->edit(path, [](std::vector<std::byte>& bytes) { bytes.clear(); });
    case Harm::kCut:
      return node.disk->edit(path, [](std::vector<std::byte>& bytes) { bytes.resize(bytes.size() / 2); });
    case Harm::kChanged:
      return node.disk->edit(path, [](std::vector<std::byte>& bytes) {
        if (!bytes.empty()) bytes[bytes.size() / 2] ^= std::byte{8};
      });
  }
}

// One file of one LFS; whether it was there.
bool harm_and_scrub(Bevies& b, Scrubbing& s, LfsIndex lfs, const std::string& ending, Harm harm) {
  Node& node = *b.nodes[lfs];
  const std::string path = s.stem(lfs) + ending;
  const auto size = size_of(node, path);
  if (!size || (*size == 0 && (harm == Harm::kEmptied || harm == Harm::kCut || harm == Harm::kChanged))) return false;
  INFO(node.name() << " " << ending << " of " << *size << " bytes, harm " << static_cast<int>(harm));
  do_harm(node, path, harm);
  const Totals first = s.pass();
  INFO(first.texts);
  const bool is_of_parity = ending == ".par" || ending == ".psum";
  const bool is_needed = ending != ".pap" && (*size > 0 || !is_of_parity);  // copies may all be in pages by now
  CHECK((first.found > 0 || !is_needed || harm == Harm::kChanged));
  CHECK(first.repaired == first.found);
  const Totals second = s.pass();
  INFO(second.texts);
  CHECK(second.found == 0);
  node.crash();
  node.start();
  s.require_whole();
  return true;
}

void erase_entry(Node& node, std::uint64_t file) {
  const auto store = kv::open_memory(node.catalogue);
  auto change = store->write();
  REQUIRE_OK(change);
  REQUIRE_OK(catalogue::erase(**change, FileId(file)));
  REQUIRE_OK((*change)->commit());
}

std::size_t count_below(Node& node, const std::string& folder) {
  return node.disk->files(node.root() + "/" + folder).size();
}

// LFSs and a PIF Server that lists the file.
void with_server(const Format& format, const std::function<void(Bevies&, Scrubbing&, LostServer&)>& body) {
  sim::World world(1);
  Bevies bevies(world, format, "sim:server");
  LostServer server;
  server.fake.unknown = wire::kFileCommitted;
  server.fake.lease_ms = 6000;
  server.view.set_index(1);
  world.spawn("server", [&](sim::Actor& self) { server.run(self, bevies.nodes[0]->key); }, {0, {0}});
  world.spawn_main("client", [&](sim::Actor& self) {
    bevies.connect(self);
    Scrubbing scrubbing(bevies, self);
    body(bevies, scrubbing, server);
    bevies.peers.clear();
  });
  world.run();
}

void put_listed(Bevies& b, LostServer& server, std::size_t count) {
  REQUIRE_OK(b.put(make_for(b.file.format, count, 1)));
  server.add_file(b.at(0), b.length(), b.file.id);
}

}  // namespace

TEST_CASE("every file of a component that is lost or hurt is made good, of rows and of parity") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  const auto count = GENERATE(std::size_t{1}, std::size_t{200});
  const auto harm = GENERATE(from_range(kHarms.begin(), kHarms.end()));
  with_bevies(format, [&](Bevies& b, sim::Actor& self) {
    REQUIRE_OK(b.put(make_for(format, count, 1)));
    if (count > 1) REQUIRE_OK(b.append(make_for(format, 3, 2)));
    Scrubbing s(b, self);
    std::size_t tried = 0;
    const Cell row = b.layout.locate(0);
    for (const LfsIndex lfs : {row.lfs, b.layout.parity_of(row).lfs})  // of one record: its row, and its parity alone
      for (const std::string& ending : kEndings) tried += harm_and_scrub(b, s, lfs, ending, harm) ? 1 : 0;
    CHECK(tried >= (count > 1 ? 3u : 2u));
  });
}

TEST_CASE("who only looks says which file is missing, and makes none") {
  with_bevies(Format::fixed(kShort), [&](Bevies& b, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(1, kShort, 1)));
    Scrubbing s(b, self);
    const LfsIndex keeper = b.layout.parity_of(b.layout.locate(0)).lfs;
    const std::string path = s.stem(keeper) + ".sum";
    do_harm(*b.nodes[keeper], path, Harm::kRemoved);
    const Totals seen = s.pass(true);
    CHECK(seen.found == 1);
    CHECK(seen.repaired == 0);
    CHECK(seen.texts.find(".sum is missing") != std::string::npos);
    CHECK(!size_of(*b.nodes[keeper], path));
  });
}

TEST_CASE("more copies than are looked for at once are made anew in one pass") {
  with_bevies(Format::fixed(1), [&](Bevies& b, sim::Actor& self) {
    REQUIRE_OK(b.put(make_records(7000, 1, 1)));  // less than a page of each member
    Scrubbing s(b, self);
    do_harm(*b.nodes[3], s.stem(3) + ".pap", Harm::kRemoved);
    const Totals first = s.pass();
    CHECK(first.found > 1000);
    CHECK(first.repaired == first.found);
    const Totals second = s.pass();
    CHECK(second.found == 0);
  });
}

TEST_CASE("a component whose entry is lost keeps its files, and is made anew") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  const auto lfs = GENERATE(LfsIndex{0}, LfsIndex{1}, LfsIndex{3}, LfsIndex{5});
  const auto with_files = GENERATE(true, false);  // else they are lost, too: the LFS was put back, and taken as it was
  with_server(format, [&](Bevies& b, Scrubbing& s, LostServer& server) {
    put_listed(b, server, 50);
    REQUIRE_OK(b.append(make_for(format, 5, 2)));
    Node& node = *b.nodes[lfs];
    const auto before = b.state(lfs);
    node.kill();
    erase_entry(node, b.file.id);
    const std::size_t files = count_below(node, "data");
    if (!with_files) REQUIRE_OK(component::make_memory_storage(node.disk)->remove_tree(node.root() + "/data"));
    node.start();
    CHECK(code_of(b.peers[lfs]->read(b.file.id, 0, 1)) == Code::kNotFound);
    CHECK(count_below(node, "data") == 0);
    CHECK(count_below(node, "aside") == (with_files ? files : 0));
    const Totals first = s.pass();
    INFO(first.texts);
    CHECK(first.found == 1);
    CHECK(first.repaired == 1);
    CHECK(b.state(lfs).rows() == before.rows());
    CHECK(b.state(lfs).bytes() == before.bytes());
    s.require_whole();
    REQUIRE_OK(b.append(make_for(format, 5, 3)));
    node.crash();
    node.start();
    s.require_whole();
  });
}

TEST_CASE("a component that is missing is told of, and stays so, if it is only looked for or cannot be made anew") {
  with_server(Format::fixed(kShort), [&](Bevies& b, Scrubbing& s, LostServer& server) {
    put_listed(b, server, 50);
    b.nodes[1]->kill();
    erase_entry(*b.nodes[1], b.file.id);
    b.nodes[1]->start();
    Totals seen = s.pass(true);
    CHECK(seen.found == 1);
    CHECK(seen.repaired == 0);
    CHECK(code_of(b.peers[1]->read(b.file.id, 0, 1)) == Code::kNotFound);
    // Its companion that keeps its parity has lost its part as well.
    b.nodes[3]->kill();
    erase_entry(*b.nodes[3], b.file.id);
    b.nodes[3]->start();
    seen = s.pass();
    CHECK(seen.found >= 2);
    CHECK(seen.repaired == 0);
    CHECK(count_below(*b.nodes[1], "aside") > 0);
  });
}

TEST_CASE("what has no part of a file lacks nothing") {
  with_server(Format::fixed(kShort), [&](Bevies& b, Scrubbing& s, LostServer& server) {
    put_listed(b, server, 1);
    const auto counts = [&] {
      std::vector<std::size_t> out;
      for (const auto& node : b.nodes) out.push_back(count_below(*node, "data"));
      return out;
    };
    const auto before = counts();
    CHECK(std::count(before.begin(), before.end(), 0) == Bevies::kWidth - 2);  // a row, and its parity
    CHECK(s.pass().found == 0);
    CHECK(counts() == before);
  });
}

TEST_CASE("a file that is removed between two lists is no damage") {
  with_server(Format::fixed(kShort), [&](Bevies& b, Scrubbing& s, LostServer& server) {
    REQUIRE_OK(b.put(make_records(50, kShort, 1)));
    server.add_file(b.at(0), b.length(), 99);  // of which nobody has anything
    server.removed_after = 1;
    s.ask(1);
    CHECK(s.await(1).found() == 0);
    CHECK(server.lists > 1);
  });
}

TEST_CASE("an LFS that was put back, and taken as it was, gets the rows that it lacks") {
  const auto format = GENERATE(Format::fixed(kShort), Format::variable());
  const auto lfs = GENERATE(LfsIndex{0}, LfsIndex{1}, LfsIndex{4});
  with_server(format, [&](Bevies& b, Scrubbing& s, LostServer& server) {
    put_listed(b, server, 50);
    Node& node = *b.nodes[lfs];
    node.kill();
    const auto disk = node.disk->copy();
    const auto entries = kv::copy_memory_state(*node.catalogue);
    node.start();
    REQUIRE_OK(b.append(make_for(format, 100, 2)));
    server.files.clear();
    server.add_file(b.at(0), b.length(), b.file.id);
    node.kill();
    node.disk = disk;
    node.catalogue = entries;
    node.start();
    const Totals first = s.pass();
    INFO(first.texts);
    CHECK(first.found > 0);
    CHECK(first.repaired == first.found);
    s.require_whole();
  });
}

TEST_CASE("without a list of the PIF Server's a scrub has not compared all") {
  with_server(Format::fixed(kShort), [&](Bevies& b, Scrubbing& s, LostServer& server) {
    put_listed(b, server, 50);
    server.silent = 1000;
    s.ask(1);
    CHECK(s.lacks(1).find("not wholly compared with what the PIF Server has") != std::string::npos);
    server.silent = 0;
    s.ask(1);
    CHECK(s.lacks(1).empty());
  });
}

}  // namespace pif::lfs::test
