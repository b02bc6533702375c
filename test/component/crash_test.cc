// What a memory disk may lose, keep and mix up when the power goes.
#include <set>

#include "component/fixture.h"

namespace pif::component::test {
namespace {

constexpr std::size_t kBlock = 64;

// A number from a seed.
MemoryDisk::Pick picks(std::uint64_t seed) {
  return [state = seed](std::uint64_t limit) mutable {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % limit;
  };
}

struct Crashing {
  Crashing() : disk(MemoryDisk::make()), storage(make_memory_storage(disk)) {
    must(storage->make_folder("/root"));
    must(storage->sync_folder("/"));
  }
  std::unique_ptr<File> make(const std::string& name, const Bytes& bytes) {
    auto file = must(storage->open("/root/" + name, OpenMode::kCreate));
    must(file->write(0, bytes));
    return file;
  }
  // What a process finds after the machine has crashed.
  void crash(std::uint64_t seed) {
    disk->crash(kBlock, picks(seed));
    storage = make_memory_storage(disk);
  }
  Bytes read(const std::string& name) {
    auto file = must(storage->open("/root/" + name, OpenMode::kRead));
    Bytes bytes(must(file->size()));
    must(file->read(0, bytes));
    return bytes;
  }

  std::shared_ptr<MemoryDisk> disk;
  std::unique_ptr<Storage> storage;
};

// As text, which compares and prints.
std::string as_text(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

Bytes blocks(std::initializer_list<int> values) {
  Bytes out;
  for (const int value : values) out.insert(out.end(), kBlock, static_cast<std::byte>(value));
  return out;
}

}  // namespace

TEST_CASE("memory disk: each unsynced block is lost or kept, in every combination") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Crashing place;
    auto file = place.make("a", blocks({1, 2, 3}));
    must(file->sync());
    must(place.storage->sync_folder("/root"));
    must(file->write(0, blocks({11, 12, 13})));
    place.crash(seed);
    seen.insert(as_text(place.read("a")));
  }
  std::set<std::string> all;
  for (const int first : {1, 11})
    for (const int second : {2, 12})
      for (const int third : {3, 13}) all.insert(as_text(blocks({first, second, third})));
  CHECK(seen == all);
}

TEST_CASE("memory disk: a file that grew is as long as before or as now, with zeros where blocks were lost") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Crashing place;
    auto file = place.make("a", blocks({1}));
    must(file->sync());
    must(place.storage->sync_folder("/root"));
    must(file->write(kBlock, blocks({2})));
    place.crash(seed);
    seen.insert(as_text(place.read("a")));
  }
  CHECK(seen == std::set<std::string>{as_text(blocks({1})), as_text(blocks({1, 0})), as_text(blocks({1, 2}))});
}

TEST_CASE("memory disk: unsynced changes of names are each undone or kept, a rename as a whole") {
  std::set<std::vector<std::string>> seen;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Crashing place;
    for (const char* name : {"gone", "old"}) must(place.make(name, blocks({1}))->sync());
    must(place.storage->sync_folder("/root"));
    must(place.storage->remove("/root/gone"));
    must(place.storage->rename("/root/old", "/root/renamed"));
    place.crash(seed);
    seen.insert(must(place.storage->list("/root")));
  }
  using Names = std::vector<std::string>;
  CHECK(seen == std::set<Names>{{"gone", "old"}, {"old"}, {"gone", "renamed"}, {"renamed"}});
}

TEST_CASE("memory disk: what is synced survives whatever is picked") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Crashing place;
    auto file = place.make("a", blocks({1, 2}));
    must(file->write(kBlock, blocks({3})));
    must(file->sync());
    must(place.storage->sync_folder("/root"));
    must(file->write(kBlock, blocks({4})));
    place.crash(seed);
    const auto found = place.read("a");
    CHECK((found == blocks({1, 3}) || found == blocks({1, 4})));
  }
}

TEST_CASE("memory disk: what a failed sync was to write is never written") {
  Crashing place;
  auto file = place.make("a", blocks({1}));
  must(file->sync());
  must(place.storage->sync_folder("/root"));
  must(file->write(0, blocks({2})));
  place.disk->set_fault([](std::string_view call, std::string_view) { return call == "sync" ? Code::kIo : Code::kOk; });
  CHECK(code_of(file->sync()) == Code::kIo);
  place.disk->set_fault({});
  must(file->sync());  // says that all is well
  CHECK(place.read("a") == blocks({2}));
  place.disk->crash();
  place.storage = make_memory_storage(place.disk);
  CHECK(place.read("a") == blocks({1}));
}

TEST_CASE("memory disk: an edit behind everybody's back outlives a crash") {
  Crashing place;
  must(place.make("a", blocks({1}))->sync());
  must(place.storage->sync_folder("/root"));
  place.disk->edit("/root/a", [](Bytes& bytes) { bytes[3] = std::byte{9}; });
  place.disk->crash();
  place.storage = make_memory_storage(place.disk);
  CHECK(place.read("a")[3] == std::byte{9});
  CHECK(place.disk->files("/root") == std::vector<std::string>{"/root/a"});
  CHECK(place.disk->used() == kBlock);
}

}  // namespace pif::component::test
