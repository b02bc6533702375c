// One suite over both stores, and what only the real one can show.
#include "pif/kv/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rapidcheck.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "pif/base/assert.h"
#include "pif/kv/lmdb_store.h"
#include "pif/kv/memory_store.h"
#include "pif/kv/value.h"

namespace pif::kv {
namespace {

constexpr Table kA = 0;
constexpr Table kB = 1;
constexpr Table kTop = 2;
const std::vector<std::string> kTables = {"a", "b", ""};

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pif-kv-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string data() const { return path_ + "/data.mdb"; }

 private:
  std::string path_;
};

// A store that can be closed and opened again, of either kind.
class World {
 public:
  explicit World(bool real) : real_(real) { reopen(); }
  void reopen() {
    store_.reset();
    if (real_) {
      auto opened = open_lmdb(folder_.path(), kTables);
      REQUIRE(opened);
      store_ = std::move(*opened);
    } else {
      store_ = open_memory(state_);
    }
  }
  std::unique_ptr<Transaction> read() { return std::move(store_->read()).value(); }
  std::unique_ptr<Transaction> write() { return std::move(store_->write()).value(); }
  Store& store() { return *store_; }
  void put(Table table, std::string_view key, std::string_view value) {
    auto txn = write();
    REQUIRE(txn->put(table, key, value));
    REQUIRE(txn->commit());
  }
  std::optional<std::string> get(Table table, std::string_view key) {
    auto txn = read();
    auto value = txn->get(table, key);
    REQUIRE(value);
    return *value ? std::optional<std::string>(**value) : std::nullopt;
  }

 private:
  bool real_;
  TempFolder folder_;
  std::shared_ptr<MemoryState> state_ = make_memory_state(3);
  std::unique_ptr<Store> store_;
};

std::string listing(Transaction& txn, Table table, std::string_view from, std::size_t limit = 100) {
  std::string all;
  std::size_t count = 0;
  const Status scanned = txn.scan(table, from, [&](std::string_view key, std::string_view value) {
    all += fmt::format("{}={} ", key, value);
    return ++count < limit;
  });
  REQUIRE(scanned);
  return all;
}

TEST_CASE("what was committed is there after reopening, and in its own table only") {
  World world(GENERATE(false, true));
  world.put(kA, "key", "value");
  world.reopen();
  CHECK(world.get(kA, "key") == "value");
  CHECK(world.get(kB, "key") == std::nullopt);
}

TEST_CASE("a row of the table without a name and the other tables leave one another alone") {
  World world(GENERATE(false, true));
  for (int i = 0; i < 3; ++i) {
    auto txn = world.write();
    REQUIRE(txn->put(kTop, "index", std::to_string(i)));
    REQUIRE(txn->put(kA, fmt::format("key{}", i), "value"));
    REQUIRE(txn->commit());
    world.reopen();
  }
  CHECK(world.get(kTop, "index") == "2");
  auto txn = world.read();
  CHECK(listing(*txn, kA, "") == "key0=value key1=value key2=value ");
  CHECK(*txn->count(kB) == 0);
}

TEST_CASE("a transaction that is not committed leaves nothing") {
  World world(GENERATE(false, true));
  world.put(kA, "old", "1");
  {
    auto txn = world.write();
    REQUIRE(txn->put(kA, "new", "2"));
    REQUIRE(txn->erase(kA, "old"));
  }
  CHECK(world.get(kA, "new") == std::nullopt);
  CHECK(world.get(kA, "old") == "1");
}

TEST_CASE("a write transaction reads, scans and counts its own changes") {
  World world(GENERATE(false, true));
  world.put(kA, "a", "1");
  world.put(kA, "c", "3");
  auto txn = world.write();
  REQUIRE(txn->put(kA, "b", "2"));
  REQUIRE(txn->put(kA, "c", "33"));
  REQUIRE(txn->erase(kA, "a"));
  CHECK(**txn->get(kA, "b") == "2");
  CHECK_FALSE((*txn->get(kA, "a")).has_value());
  CHECK(listing(*txn, kA, "") == "b=2 c=33 ");
  CHECK(*txn->count(kA) == 2);
}

TEST_CASE("a scan starts at the first key that is not less, in byte order, and stops when told") {
  World world(GENERATE(false, true));
  for (const char* key : {"b", "bb", "a", "\xff", "c"}) world.put(kA, key, "");
  auto txn = world.read();
  CHECK(listing(*txn, kA, "aa") == "b= bb= c= \xff= ");
  CHECK(listing(*txn, kA, "b", 2) == "b= bb= ");
  CHECK(listing(*txn, kA, "\xff\xff").empty());
}

TEST_CASE("scans may nest within one read transaction") {
  World world(GENERATE(false, true));
  world.put(kA, "a", "1");
  world.put(kA, "b", "2");
  for (int round = 0; round < 2; ++round) {
    auto txn = world.read();
    std::string all;
    REQUIRE(txn->scan(kA, "", [&](std::string_view key, std::string_view) {
      all += fmt::format("[{}:{}]", key, listing(*txn, kA, key));
      return true;
    }));
    CHECK(all == "[a:a=1 b=2 ][b:b=2 ]");
  }
}

[[noreturn]] void throw_it(const BrokenAssertion& broken) { throw std::logic_error(broken.to_string()); }

TEST_CASE("to put or erase while a scan visits is an assertion, and changes nothing") {
  World world(GENERATE(false, true));
  world.put(kA, "a", "1");
  const AssertionHandler before = set_assertion_handler(&throw_it);
  const auto visited = [&](const auto& change) {
    auto txn = world.write();
    const auto visit = [&](std::string_view, std::string_view) { return change(*txn).has_value(); };
    CHECK_THROWS_AS((void)txn->scan(kA, "", visit), std::logic_error);
  };
  visited([](Transaction& txn) { return txn.put(kA, "b", "2"); });
  visited([](Transaction& txn) { return txn.erase(kA, "a"); });
  set_assertion_handler(before);
  CHECK(world.get(kA, "a") == "1");
  CHECK(world.get(kA, "b") == std::nullopt);
}

TEST_CASE("erasing a key that is not there is no error") {
  World world(GENERATE(false, true));
  auto txn = world.write();
  CHECK(txn->erase(kA, "nothing"));
  CHECK(txn->commit());
}

TEST_CASE("a second transaction, a write in a read, and a use after commit are refused") {
  World world(GENERATE(false, true));
  auto txn = world.read();
  CHECK(world.store().write().error().code == Code::kInternal);
  CHECK(world.store().read().error().code == Code::kInternal);
  CHECK(txn->put(kA, "k", "v").error().code == Code::kInternal);
  txn.reset();
  auto writer = world.write();
  REQUIRE(writer->commit());
  CHECK(writer->get(kA, "k").error().code == Code::kInternal);
  CHECK(writer->commit().error().code == Code::kInternal);
  CHECK(world.store().read());
}

TEST_CASE("keys over the limit are refused and leave the store usable") {
  World world(GENERATE(false, true));
  {
    auto txn = world.write();
    CHECK(txn->put(kA, std::string(kKeyBytesMax + 1, 'k'), "v").error().code == Code::kTooLarge);
  }
  world.put(kA, std::string(kKeyBytesMax, 'k'), "v");
  CHECK(world.get(kA, std::string(kKeyBytesMax, 'k')) == "v");
}

TEST_CASE("any sequence of transactions leaves both stores as a std::map") {
  const bool real = GENERATE(false, true);
  REQUIRE(rc::check("model", [real] {
    struct Step {
      std::uint8_t key;
      std::uint8_t action;  // mostly puts; erases, commits, aborts
      std::uint16_t size;
    };
    const auto steps = *rc::gen::container<std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint16_t>>>(
        rc::gen::tuple(rc::gen::inRange<std::uint8_t>(0, 24), rc::gen::inRange<std::uint8_t>(0, 8),
                       rc::gen::inRange<std::uint16_t>(0, 5000)));
    World world(real);
    std::map<std::string, std::string> committed, current;
    auto txn = world.write();
    for (const auto& [key, action, size] : steps) {
      const std::string name = fmt::format("k{:02}", key);
      if (action == 0) {
        RC_ASSERT(txn->commit().has_value());
        committed = current;
        txn = world.write();
      } else if (action == 1) {
        txn.reset();
        current = committed;
        txn = world.write();
      } else if (action == 2) {
        RC_ASSERT(txn->erase(kA, name).has_value());
        current.erase(name);
      } else {
        current[name] = std::string(size, static_cast<char>('a' + key));
        RC_ASSERT(txn->put(kA, name, current[name]).has_value());
      }
    }
    std::map<std::string, std::string> seen;
    RC_ASSERT(txn->scan(kA, "",
                        [&](std::string_view k, std::string_view v) {
                          seen.emplace(k, v);
                          return true;
                        })
                  .has_value());
    RC_ASSERT(seen == current);
    RC_ASSERT(*txn->count(kA) == current.size());
  }));
}

// ---- LMDB only ----

Result<std::unique_ptr<Store>> open_small(const TempFolder& folder) {
  return open_lmdb(folder.path(), kTables, {.map_bytes = 256u << 10, .headroom_bytes = 128u << 10});
}

TEST_CASE("a store grows past many times its first size, and reopens with the small size given") {
  TempFolder folder;
  const std::string value(1000, 'v');
  {
    auto store = std::move(open_small(folder)).value();
    for (std::uint32_t i = 0; i < 8000; i += 50) {
      auto txn = std::move(store->write()).value();
      for (std::uint32_t k = i; k < i + 50; ++k) REQUIRE(txn->put(kA, key_u32(k), value));
      REQUIRE(txn->commit());
      REQUIRE(store->read());  // the cached reader survives the growth
    }
  }
  REQUIRE(std::filesystem::file_size(folder.data()) > 16 * (256u << 10));
  auto store = std::move(open_small(folder)).value();
  auto txn = std::move(store->read()).value();
  CHECK(*txn->count(kA) == 8000);
  CHECK((**txn->get(kA, key_u32(7999))).size() == value.size());
}

void fill(const TempFolder& folder) {
  auto store = std::move(open_small(folder)).value();
  for (std::uint32_t round = 0; round < 20; ++round) {
    auto txn = std::move(store->write()).value();
    for (std::uint32_t k = 0; k < 50; ++k) REQUIRE(txn->put(kA, key_u32(round * 50 + k), std::string(500, 'v')));
    REQUIRE(txn->commit());
  }
}

TEST_CASE("a truncated data file is an error that says so, at every length, and is left as it was") {
  TempFolder folder;
  fill(folder);
  const auto whole = std::filesystem::file_size(folder.data());
  std::filesystem::copy_file(folder.data(), folder.path() + "/copy");
  for (const std::uintmax_t length : {std::uintmax_t{0}, std::uintmax_t{1}, std::uintmax_t{5000}, std::uintmax_t{8192},
                                      whole / 4096 / 2 * 4096, whole / 2 + 77}) {
    std::filesystem::copy_file(folder.path() + "/copy", folder.data(),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder.data(), length);
    auto opened = open_small(folder);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == Code::kCorrupt);
    CHECK(opened.error().text.find(folder.path()) != std::string::npos);
    CHECK(std::filesystem::file_size(folder.data()) == length);
  }
}

TEST_CASE("a file that lacks only free pages at its end opens") {
  TempFolder folder;
  fill(folder);
  {  // frees all but one page of rows
    auto store = std::move(open_small(folder)).value();
    auto txn = std::move(store->write()).value();
    for (std::uint32_t k = 4; k < 1000; ++k) REQUIRE(txn->erase(kA, key_u32(k)));
    REQUIRE(txn->commit());
    for (int round = 0; round < 4; ++round) {  // so that the last roots are low in the file
      auto again = std::move(store->write()).value();
      REQUIRE(again->put(kB, "k", std::to_string(round)));
      REQUIRE(again->commit());
    }
  }
  std::filesystem::resize_file(folder.data(), std::filesystem::file_size(folder.data()) - 4096);
  auto store = open_small(folder);
  REQUIRE(store);
  auto txn = std::move((*store)->read()).value();
  CHECK(*txn->count(kA) == 4);
}

TEST_CASE("a file that is no store is kCorrupt") {
  TempFolder folder;
  std::ofstream(folder.data()) << std::string(20000, 'x');
  CHECK(open_small(folder).error().code == Code::kCorrupt);
}

// The descriptor through which LMDB writes its meta pages: the one that syncs.
int meta_descriptor(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != path || gone) continue;
    const int fd = std::stoi(entry.path().filename().string());
    if ((::fcntl(fd, F_GETFL) & O_DSYNC) != 0) return fd;
  }
  return -1;
}

TEST_CASE("a disk that fails under a store is a failed call, at once and later, and no damage") {
  TempFolder folder;
  auto store = std::move(open_small(folder)).value();
  const auto commit = [&] {
    auto txn = store->write();
    if (!txn) return txn.error().code;
    if (auto put = (*txn)->put(kA, "key", "value"); !put) return put.error().code;
    auto done = (*txn)->commit();
    return done ? Code::kOk : done.error().code;
  };
  REQUIRE(commit() == Code::kOk);
  const int full = ::open("/dev/full", O_RDWR | O_CLOEXEC);
  REQUIRE(::dup3(full, meta_descriptor(folder.data()), O_CLOEXEC) >= 0);
  ::close(full);
  CHECK(commit() == Code::kNoSpace);
  CHECK(commit() == Code::kIo);
  store.reset();
  auto again = open_small(folder);
  REQUIRE(again);
  CHECK(**(*(*again)->read())->get(kA, "key") == "value");
}

// A file system of its own, of so many bytes; only root may have one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path, const std::string& bytes)
      : path_(path), mounted_(::mount("none", path.c_str(), "tmpfs", 0, ("size=" + bytes).c_str()) == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  explicit operator bool() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_;
};

TEST_CASE("a full disk is called that, however much of the last write it took, and takes more when it has room again") {
  for (std::size_t part = 0; part < 3; ++part) {
    TempFolder folder;
    const SmallDisk disk(folder.path(), "4m");
    if (!disk) return;
    auto store = std::move(open_lmdb(folder.path() + "/store", kTables)).value();
    const auto commit = [&](int key) -> Status {
      PIF_TRY_VALUE(const auto txn, store->write());
      for (int i = 0; i < 16; ++i) PIF_TRY(txn->put(kA, fmt::format("{}-{}", key, i), std::string(3000, 'x')));
      return txn->commit();
    };
    const std::string ballast = folder.path() + "/ballast";
    std::ofstream(ballast) << std::string(1'000'000 + part * 4096, 'x');
    Status done;
    for (int key = 0; done; ++key) done = commit(key);
    CHECK(done.error().code == Code::kNoSpace);
    CHECK_THAT(done.error().text, Catch::Contains(folder.path() + "/store: its disk is full: remove something"));
    std::filesystem::remove(ballast);
    CHECK(commit(0).has_value());
  }
}

TEST_CASE("a folder that may not be written gives a permission error") {
  if (::geteuid() == 0) return;  // root may write everywhere
  TempFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0500) == 0);
  CHECK(open_small(folder).error().code == Code::kPermission);
  REQUIRE(::chmod(folder.path().c_str(), 0700) == 0);
}

TEST_CASE("an interrupted creation leaves nothing that a later one trips over") {
  TempFolder folder;
  std::filesystem::create_directory(folder.path() + "/making");
  std::ofstream(folder.path() + "/making/data.mdb") << "half";
  auto store = open_small(folder);
  REQUIRE(store);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/making"));
}

// ---- values ----

TEST_CASE("a sealed value opens, and no single flipped bit passes") {
  const std::string sealed = seal_value("payload");
  REQUIRE(sealed.size() == 8 + 7);
  CHECK(*open_value(sealed, "x") == "payload");
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::string bad = sealed;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    auto opened = open_value(bad, "row 7");
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == Code::kCorrupt);
    CHECK(opened.error().text.find("row 7") != std::string::npos);
  }
  CHECK(open_value("short", "x").error().code == Code::kCorrupt);
}

TEST_CASE("integer keys sort as numbers and come back") {
  REQUIRE(rc::check("keys", [](std::uint64_t a, std::uint64_t b) {
    RC_ASSERT((key_u64(a) < key_u64(b)) == (a < b));
    RC_ASSERT(u64_of_key(key_u64(a)) == a);
  }));
  CHECK(key_u32(0x01020304) == std::string("\x01\x02\x03\x04"));
}

}  // namespace
}  // namespace pif::kv
