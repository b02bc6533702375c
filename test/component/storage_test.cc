#include "pif/component/storage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "component/fixture.h"

namespace pif::component::test {
namespace {

// A storage and a folder in it, of either kind.
struct Place {
  explicit Place(bool is_real) : real(is_real) {
    if (real) {
      temp = std::make_unique<TempFolder>();
      folder = temp->path();
    } else {
      must(storage->make_folder(folder));
    }
  }
  std::unique_ptr<Storage> again() const { return real ? make_real_storage() : make_memory_storage(disk); }
  std::string at(const std::string& name) const { return folder + "/" + name; }
  std::unique_ptr<File> make(const std::string& name, const Bytes& bytes) const {
    auto file = must(storage->open(at(name), OpenMode::kCreate));
    must(file->write(0, bytes));
    return file;
  }
  Bytes contents(const std::string& name) const {
    auto file = must(storage->open(at(name), OpenMode::kRead));
    Bytes bytes(must(file->size()));
    CHECK(must(file->read(0, bytes)) == bytes.size());
    return bytes;
  }

  const bool real;
  std::shared_ptr<MemoryDisk> disk = MemoryDisk::make();
  std::unique_ptr<TempFolder> temp;
  std::string folder = "/disk";
  std::unique_ptr<Storage> storage = again();
};

#define BOTH_STORAGES                         \
  const bool is_real = GENERATE(false, true); \
  CAPTURE(is_real);                           \
  const Place place(is_real);                 \
  Storage& storage = *place.storage;          \
  (void)storage

}  // namespace

TEST_CASE("storage: what is written in pieces is read in other pieces") {
  BOTH_STORAGES;
  auto file = must(storage.open(place.at("a"), OpenMode::kCreate));
  const Bytes bytes = pattern(100'000, 1);
  std::vector<ConstPiece> out;
  for (std::size_t i = 0; i < bytes.size(); i += 10) out.push_back({bytes.data() + i, 10});  // more than one call takes
  out.insert(out.begin() + 3, ConstPiece{});
  must(file->write(7, out));
  Bytes back(bytes.size() + 7);
  std::vector<Piece> in;
  for (std::size_t i = 0; i < back.size(); i += 33)
    in.push_back({back.data() + i, std::min<std::size_t>(33, back.size() - i)});
  in.push_back({});
  CHECK(must(file->read(0, in)) == back.size());
  CHECK(Bytes(back.begin(), back.begin() + 7) == Bytes(7));
  CHECK(Bytes(back.begin() + 7, back.end()) == bytes);
}

TEST_CASE("storage: a read is short at the end of the file only") {
  BOTH_STORAGES;
  auto file = place.make("a", pattern(100, 1));
  Bytes into(60);
  CHECK(must(file->read(0, into)) == 60);
  CHECK(must(file->read(70, into)) == 30);
  CHECK(must(file->read(100, into)) == 0);
  CHECK(must(file->read(1000, into)) == 0);
  CHECK(must(file->size()) == 100);
}

TEST_CASE("storage: what is read without waiting is what is there, or less of it") {
  BOTH_STORAGES;
  const Bytes bytes = pattern(100'000, 3);
  const auto file = place.make("a", bytes);
  Bytes out(50'000);
  const std::size_t n = must(file->read_cached(30'000, out));
  CHECK(n <= out.size());
  CHECK(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n), bytes.begin() + 30'000));
  CHECK(must(file->read_cached(100'000, out)) == 0);
  if (place.real) return;
  CHECK(n == out.size());  // all is in memory
  place.disk->set_fault(
      [](std::string_view call, std::string_view) { return call == "read_cached" ? Code::kIo : Code::kOk; });
  CHECK(must(file->read_cached(30'000, out)) == 0);
  CHECK(must(file->read(30'000, out)) == out.size());
}

TEST_CASE("storage: a file grows with zeros and shrinks") {
  BOTH_STORAGES;
  const Bytes bytes = pattern(100, 1);
  auto file = place.make("a", bytes);
  must(file->resize(40));
  must(file->resize(60));
  CHECK(place.contents("a").size() == 60);
  CHECK(place.contents("a")[39] == bytes[39]);
  CHECK(place.contents("a")[40] == std::byte{0});
}

TEST_CASE("storage: room that is reserved changes neither size nor bytes, and goes where the file is cut off") {
  BOTH_STORAGES;
  const Bytes bytes = pattern(5000, 1);
  auto file = place.make("a", bytes);
  const Status status = file->reserve(1 << 20);
  if (!status) {
    CHECK(status.error().code == Code::kUnsupported);
    return;
  }
  CHECK(must(file->size()) == 5000);
  CHECK(place.contents("a") == bytes);
  CHECK(must(storage.stored_bytes(place.at("a"))).value() >= 1 << 20);
  must(file->reserve(100));  // it has that
  CHECK(must(storage.stored_bytes(place.at("a"))).value() >= 1 << 20);
  must(file->write(600'000, pattern(10, 2)));
  CHECK(must(file->size()) == 600'010);
  CHECK(must(file->next_data(5000)) >= (place.real ? 5000u : 596'000u));
  Bytes gap(1000, std::byte{7});
  CHECK(must(file->read(300'000, gap)) == 1000);
  CHECK(gap == Bytes(1000));
  must(file->resize(600'000));
  CHECK(must(storage.stored_bytes(place.at("a"))).value() < 700'000);
  auto reader = must(storage.open(place.at("a"), OpenMode::kRead));
  CHECK(reader->reserve(10).error().code == Code::kReadOnly);
}

TEST_CASE("storage: room that is reserved stays when the disk gets full") {
  auto disk = MemoryDisk::make();
  auto storage = make_memory_storage(disk);
  auto file = must(storage->open("/a", OpenMode::kCreate));
  auto other = must(storage->open("/b", OpenMode::kCreate));
  disk->set_capacity(10'000);
  CHECK(file->reserve(20'000).error().code == Code::kNoSpace);
  must(file->reserve(6000));
  CHECK(disk->used() == 6000);
  CHECK(other->write(0, pattern(5000, 1)).error().code == Code::kNoSpace);
  must(other->write(0, pattern(4000, 1)));
  must(file->write(1000, pattern(5000, 2)));
  CHECK(file->write(6000, pattern(1, 2)).error().code == Code::kNoSpace);
  must(storage->remove("/a"));
  CHECK(disk->used() == 4000);
}

TEST_CASE("storage: what is changed behind everybody's back takes the room that it takes") {
  auto disk = MemoryDisk::make();
  auto storage = make_memory_storage(disk);
  must(must(storage->open("/a", OpenMode::kCreate))->write(0, pattern(1000, 1)));
  disk->edit("/a", [](Bytes& bytes) { bytes.resize(3000); });
  CHECK(disk->used() == 3000);
  must(storage->remove("/a"));
  CHECK(disk->used() == 0);
}

TEST_CASE("storage: what is punched out reads as zeros, and the size stays") {
  BOTH_STORAGES;
  Bytes bytes = pattern(20000, 1);
  auto file = place.make("a", bytes);
  const Status status = file->punch(4000, 9000);
  if (!status) CHECK(status.error().code == Code::kUnsupported);
  if (status) std::fill_n(bytes.begin() + 4000, 9000, std::byte{0});
  CHECK(place.contents("a") == bytes);
  if (!status) return;
  must(file->punch(19000, 5000));
  must(file->punch(30000, 5000));
  must(file->punch(100, 0));
  std::fill(bytes.begin() + 19000, bytes.end(), std::byte{0});
  CHECK(place.contents("a") == bytes);
}

TEST_CASE("storage: data that is not in a hole is found") {
  BOTH_STORAGES;
  auto file = place.make("a", pattern(100, 1));
  must(file->write(3000000, pattern(100, 2)));
  must(file->resize(5000000));
  CHECK(must(file->next_data(50)) == 50);
  const std::uint64_t next = must(file->next_data(500000));
  CHECK((next >= 500000 && next <= 3000000));
  CHECK(must(file->next_data(3000050)) == 3000050);
  const std::uint64_t none = must(file->next_data(4000000));
  CHECK((none >= 4000000 && none <= 5000000));
  CHECK(must(file->next_data(5000000)) == 5000000);
}

TEST_CASE("storage: a file open for reading cannot be written") {
  BOTH_STORAGES;
  place.make("a", pattern(10, 1));
  auto file = must(storage.open(place.at("a"), OpenMode::kRead));
  CHECK(code_of(file->write(0, pattern(1, 1))) == Code::kReadOnly);
  CHECK(code_of(file->resize(0)) == Code::kReadOnly);
  CHECK(code_of(file->punch(0, 1)) == Code::kReadOnly);
}

TEST_CASE("storage: opening what is missing or a folder fails and names the path") {
  BOTH_STORAGES;
  const auto missing = storage.open(place.at("no"), OpenMode::kWrite);
  CHECK(code_of(missing) == Code::kNotFound);
  CHECK(missing.error().text.find(place.at("no")) != std::string::npos);
  must(storage.make_folder(place.at("folder")));
  CHECK(code_of(storage.open(place.at("folder"), OpenMode::kRead)) == Code::kIsDirectory);
  place.make("a", {});
  CHECK(code_of(storage.open(place.at("a/b"), OpenMode::kCreate)) == Code::kNotDirectory);
}

TEST_CASE("storage: names are made, listed in order, renamed over others and removed") {
  BOTH_STORAGES;
  place.make("b", pattern(1, 1));
  place.make("a", pattern(2, 2));
  must(storage.make_folder(place.at("c/d")));
  must(storage.make_folder(place.at("c/d")));
  CHECK(must(storage.list(place.folder)) == std::vector<std::string>{"a", "b", "c"});
  must(storage.rename(place.at("a"), place.at("b")));
  CHECK(must(storage.list(place.folder)) == std::vector<std::string>{"b", "c"});
  CHECK(place.contents("b") == pattern(2, 2));
  must(storage.remove(place.at("b")));
  must(storage.remove(place.at("b")));
  must(storage.remove_tree(place.at("c")));
  must(storage.remove_tree(place.at("c")));
  must(storage.sync_folder(place.folder));
  CHECK(must(storage.list(place.folder)).empty());
  CHECK(code_of(storage.list(place.at("no"))) == Code::kNotFound);
  CHECK(code_of(storage.rename(place.at("no"), place.at("x"))) == Code::kNotFound);
}

TEST_CASE("storage: a folder cannot be made where a file is") {
  BOTH_STORAGES;
  place.make("a", {});
  CHECK(code_of(storage.make_folder(place.at("a"))) == Code::kNotDirectory);
  CHECK(code_of(storage.make_folder(place.at("a/b"))) == Code::kNotDirectory);
}

TEST_CASE("storage: a removed file lives on for those who have it open") {
  BOTH_STORAGES;
  auto file = place.make("a", pattern(10, 1));
  must(storage.remove(place.at("a")));
  Bytes into(10);
  CHECK(must(file->read(0, into)) == 10);
  must(file->write(10, pattern(5, 1)));
  CHECK(must(file->size()) == 15);
}

TEST_CASE("storage: a shared handle becomes the same file with the same access") {
  BOTH_STORAGES;
  auto writable = place.make("a", pattern(10, 1));
  auto other = must(storage.adopt(must(writable->share())));
  must(other->write(0, pattern(10, 2)));
  CHECK(place.contents("a") == pattern(10, 2));
  auto readable = must(storage.open(place.at("a"), OpenMode::kRead));
  auto borrowed = must(storage.adopt(must(readable->share())));
  CHECK(code_of(borrowed->write(0, pattern(1, 1))) == Code::kReadOnly);
  CHECK(code_of(storage.adopt(Handle{})) == Code::kInvalid);
}

TEST_CASE("storage: has_writers sees a second open file, a shared one, and neither afterwards") {
  BOTH_STORAGES;
  auto writable = place.make("a", pattern(10, 1));
  auto file = must(storage.open(place.at("a"), OpenMode::kRead));
  auto second_reader = must(storage.open(place.at("a"), OpenMode::kRead));
  CHECK(must(file->has_writers()));
  auto shared = must(storage.adopt(must(writable->share())));
  writable.reset();
  CHECK(must(file->has_writers()));
  shared.reset();
  CHECK_FALSE(must(file->has_writers()));
  CHECK_FALSE(must(file->has_writers()));
  must(storage.open(place.at("a"), OpenMode::kWrite));
  CHECK_FALSE(must(file->has_writers()));
}

TEST_CASE("storage: a file open for writing cannot ask for writers") {
  BOTH_STORAGES;
  CHECK(code_of(place.make("a", {})->has_writers()) == Code::kInvalid);
}

TEST_CASE("storage: the space has a total and something free") {
  BOTH_STORAGES;
  const Space space = must(storage.space(place.folder));
  CHECK(space.total > 0);
  CHECK(space.free <= space.total);
}

TEST_CASE("storage: what a file takes is known, and what is missing takes nothing") {
  BOTH_STORAGES;
  const auto file = place.make("a", pattern(100'000, 1));
  must(file->sync());
  const auto stored = must(storage.stored_bytes(place.at("a")));
  REQUIRE(stored);
  CHECK((*stored >= 100'000 && *stored < 400'000));
  CHECK(!must(storage.stored_bytes(place.at("none"))));
}

TEST_CASE("storage: a locked folder is refused to another until the first is gone") {
  BOTH_STORAGES;
  auto first = place.again();
  auto second = place.again();
  must(first->lock(place.folder));
  const Status refused = second->lock(place.folder);
  CHECK(code_of(refused) == Code::kBusy);
  CHECK(refused.error().text.find(place.folder) != std::string::npos);
  if (is_real) CHECK(refused.error().text.find(std::to_string(::getpid())) != std::string::npos);
  first.reset();
  must(second->lock(place.folder));
}

TEST_CASE("storage: a clone has the same bytes, or is unsupported") {
  BOTH_STORAGES;
  auto source = place.make("a", pattern(10'000, 1));
  auto target = place.make("b", pattern(20'000, 2));
  const Status status = target->clone_from(*source);
  if (status)
    CHECK(place.contents("b") == pattern(10'000, 1));
  else
    CHECK(code_of(status) == Code::kUnsupported);
  if (!is_real) CHECK(status.has_value());
}

TEST_CASE("real storage: files are 0600, folders 0700, and a symbolic link is not followed") {
  const Place place(true);
  place.make("a", {});
  must(place.storage->make_folder(place.at("x/y")));
  struct stat info {};
  REQUIRE(::stat(place.at("a").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  for (const char* name : {"x", "x/y"}) {
    REQUIRE(::stat(place.at(name).c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
  }
  REQUIRE(::symlink(place.at("a").c_str(), place.at("link").c_str()) == 0);
  CHECK_FALSE(place.storage->open(place.at("link"), OpenMode::kRead).has_value());
  REQUIRE(::mkfifo(place.at("fifo").c_str(), 0600) == 0);
  CHECK_FALSE(place.storage->open(place.at("fifo"), OpenMode::kRead).has_value());
}

TEST_CASE("real storage: a tree of any depth is removed with few descriptors, and what links in it lead to stays") {
  const Place place(true);
  place.make("outside", pattern(10, 1));
  must(place.storage->make_folder(place.at("tree/pif-deep-0/x")));
  place.make("tree/pif-deep-1", {});
  REQUIRE(::symlink(place.folder.c_str(), place.at("tree/link").c_str()) == 0);
  UniqueFd at(::open(place.at("tree").c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 3000; ++i) {  // deeper than a path can be long, and than descriptors may be open
    REQUIRE(::mkdirat(at.get(), "deeper", 0700) == 0);
    REQUIRE(::symlinkat("..", at.get(), "up") == 0);
    at = UniqueFd(::openat(at.get(), "deeper", O_RDONLY | O_DIRECTORY));
  }
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{150, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const Status removed = place.storage->remove_tree(place.at("tree"));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  must(removed);
  CHECK(must(place.storage->list(place.folder)) == std::vector<std::string>{"outside"});
}

TEST_CASE("real storage: only regular files are adopted") {
  const Place place(true);
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const UniqueFd other(ends[1]);
  CHECK(code_of(place.storage->adopt(Handle{UniqueFd(ends[0]), nullptr})) == Code::kInvalid);
  const int folder = ::open(place.folder.c_str(), O_RDONLY | O_DIRECTORY);
  CHECK(code_of(place.storage->adopt(Handle{UniqueFd(folder), nullptr})) == Code::kIsDirectory);
}

TEST_CASE("real storage: a shared writable mapping counts as a writer after its descriptor is closed") {
  const Place place(true);
  auto writable = place.make("a", pattern(4096, 1));
  Handle handle = must(writable->share());
  void* map = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, handle.fd.get(), 0);
  REQUIRE(map != MAP_FAILED);
  handle.fd.reset();
  writable.reset();
  auto file = must(place.storage->open(place.at("a"), OpenMode::kRead));
  CHECK(must(file->has_writers()));
  ::munmap(map, 4096);
  CHECK_FALSE(must(file->has_writers()));
}

TEST_CASE("memory storage: a crash forgets bytes, sizes and names that were not synced") {
  const Place place(false);
  auto kept = place.make("kept", pattern(100, 1));
  must(kept->sync());
  must(place.storage->sync_folder(place.folder));
  must(place.storage->sync_folder("/"));
  must(kept->write(50, pattern(100, 2)));
  auto unsynced = place.make("unsynced", pattern(100, 3));
  must(unsynced->sync());
  place.disk->crash();

  auto storage = make_memory_storage(place.disk);
  CHECK(must(storage->list(place.folder)) == std::vector<std::string>{"kept"});
  auto file = must(storage->open(place.at("kept"), OpenMode::kRead));
  Bytes bytes(200);
  CHECK(must(file->read(0, bytes)) == 100);
  bytes.resize(100);
  CHECK(bytes == pattern(100, 1));
}

TEST_CASE("storage: a sync of all is one, or says that it cannot be had") {
  BOTH_STORAGES;
  const auto file = place.make("a", pattern(100, 1));
  const auto synced = storage.sync_all(place.folder);
  CHECK((synced || synced.error().code == Code::kUnsupported));
  CHECK(file->check_written());
  CHECK_FALSE(storage.sync_all(place.at("missing")));
}

TEST_CASE(
    "memory storage: a sync of all makes bytes and names durable, but for a file that could not be written, which says "
    "so") {
  Place place(false);
  must(place.storage->make_folder(place.at("b")));
  const auto good = place.make("b/good", pattern(100, 1));
  const auto bad = place.make("bad", pattern(100, 2));
  place.disk->set_fault([](std::string_view call, std::string_view path) {
    return call == "sync" && path.ends_with("/bad") ? Code::kIo : Code::kOk;
  });
  CHECK(place.storage->sync_all(place.folder).error().code == Code::kIo);
  place.disk->set_fault({});
  CHECK(good->check_written());
  CHECK(bad->check_written().error().code == Code::kIo);
  CHECK(bad->sync().error().code == Code::kIo);
  place.disk->crash();
  place.storage = place.again();
  CHECK(place.contents("b/good") == pattern(100, 1));
  CHECK(place.contents("bad") != pattern(100, 2));
}

TEST_CASE("memory storage: a crash brings back what was removed, renamed or cut without a sync") {
  const Place place(false);
  for (const char* name : {"removed", "renamed", "cut"}) must(place.make(name, pattern(10, 1))->sync());
  must(place.storage->sync_folder(place.folder));
  must(place.storage->sync_folder("/"));
  must(place.storage->remove(place.at("removed")));
  must(place.storage->rename(place.at("renamed"), place.at("new")));
  must(must(place.storage->open(place.at("cut"), OpenMode::kWrite))->resize(3));
  place.disk->crash();
  auto storage = make_memory_storage(place.disk);
  CHECK(must(storage->list(place.folder)) == std::vector<std::string>{"cut", "removed", "renamed"});
  CHECK(must(must(storage->open(place.at("cut"), OpenMode::kRead))->size()) == 10);
}

TEST_CASE("memory storage: after a crash everything of the old world fails") {
  const Place place(false);
  auto file = place.make("a", pattern(10, 1));
  auto handle = must(file->share());
  place.disk->crash();
  Bytes into(1);
  CHECK(code_of(file->read(0, into)) == Code::kIo);
  CHECK(code_of(file->write(0, into)) == Code::kIo);
  CHECK(code_of(file->sync()) == Code::kIo);
  CHECK(code_of(file->size()) == Code::kIo);
  CHECK(code_of(place.storage->list("/")) == Code::kIo);
  auto storage = make_memory_storage(place.disk);
  CHECK(code_of(must(storage->adopt(std::move(handle)))->read(0, into)) == Code::kIo);
}

TEST_CASE("memory storage: a full disk refuses growth, keeps the old bytes, and frees what is removed") {
  const Place place(false);
  place.disk->set_capacity(1000);
  auto file = place.make("a", pattern(900, 1));
  CHECK(code_of(file->write(850, pattern(200, 2))) == Code::kNoSpace);
  must(file->write(0, pattern(900, 3)));
  CHECK(must(place.storage->space("/")).free == 100);
  must(place.storage->remove(place.at("a")));
  CHECK(must(place.storage->space("/")).free == 1000);
  place.make("b", pattern(1000, 1));
}

TEST_CASE("memory storage: faults are injected per call and path, and bits flip") {
  const Place place(false);
  auto file = place.make("a", pattern(10, 1));
  place.disk->set_fault([&](std::string_view call, std::string_view path) {
    return call == "sync" && path == place.at("a") ? Code::kIo : Code::kOk;
  });
  CHECK(code_of(file->sync()) == Code::kIo);
  place.disk->set_fault(
      [](std::string_view call, std::string_view) { return call == "read" ? Code::kEndOfFile : Code::kOk; });
  Bytes into(10);
  CHECK(must(file->read(0, into)) == 5);
  place.disk->set_fault(nullptr);
  must(file->sync());
  place.disk->flip_bit(place.at("a"), 3, 5);
  Bytes expected = pattern(10, 1);
  expected[3] ^= std::byte{32};
  CHECK(place.contents("a") == expected);
}

}  // namespace pif::component::test
