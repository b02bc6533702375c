// What `pif up` makes of a folder, and what it refuses.
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "folders.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

TEST_CASE("a new file system is loaded as it was made") {
  const TemporaryFolder temporary;
  const auto made = create_cluster(temporary / "a/b", 3, 0, TcpMode::kInsecureLoopback);
  REQUIRE(made);
  const auto loaded = load_cluster(temporary / "a/b");
  REQUIRE(loaded);
  CHECK(loaded->folder == temporary / "a/b");
  CHECK(loaded->id == made->id);
  CHECK(loaded->id.size() == 16);
  CHECK(loaded->tcp == TcpMode::kInsecureLoopback);
  REQUIRE(loaded->lfss.size() == 3);
  CHECK(loaded->lfss[0].id == 1);
  CHECK(loaded->lfss[2].name == "lfs2");
  CHECK(loaded->lfss[2].root == temporary / "a/b/lfs2");
}

TEST_CASE("others may enter the folder, but its keys are the owner's alone") {
  const TemporaryFolder temporary;
  const mode_t before = ::umask(0077);
  REQUIRE(create_cluster(temporary / "fs", 1, 0, TcpMode::kNone));
  ::umask(before);
  CHECK(mode_of(temporary / "fs") == 0755);
  CHECK(mode_of(temporary / "fs/pif.toml") == 0644);
  CHECK(mode_of(temporary / "fs/keys") == 0700);
  CHECK(mode_of(temporary / "fs/keys/clients") == 0700);
  for (const char* key : {"cluster.key", "server.curve", "client.curve", "clients/client.pub"})
    CHECK(mode_of(temporary / "fs/keys/" + key) == 0400);
}

TEST_CASE("creating leaves only the description and the keys behind") {
  const TemporaryFolder temporary;
  REQUIRE(create_cluster(temporary / "fs", 1, 0, TcpMode::kNone));
  CHECK(entries(temporary / "fs") == 2);
  CHECK(entries(temporary / "fs/keys") == 4);
  CHECK(entries(temporary / "fs/keys/clients") == 1);
}

TEST_CASE("the cluster key comes back, and no two file systems share one") {
  const TemporaryFolder temporary;
  const auto a = create_cluster(temporary / "a", 1, 0, TcpMode::kNone);
  const auto b = create_cluster(temporary / "b", 1, 0, TcpMode::kNone);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a->id != b->id);
  CHECK(load_key(*a).value().bytes == load_key(*a).value().bytes);
  CHECK(load_key(*a).value().bytes != load_key(*b).value().bytes);
  CHECK(load_key(*a).value().bytes != ClusterKey{}.bytes);
}

TEST_CASE("the CURVE keys come back, and the owner's is among those that may connect") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kCurve);
  REQUIRE(cluster);
  const auto server = load_curve(*cluster, "server");
  const auto client = load_curve(*cluster, "client");
  REQUIRE(server);
  REQUIRE(client);
  CHECK(server->public_key.size() == 40);
  CHECK(server->secret_key.size() == 40);
  CHECK(server->public_key != client->public_key);
  const std::string line = contents(temporary / "fs/keys/clients/client.pub");
  CHECK(line.substr(0, 41) == client->public_key + " ");
  const std::string owner = std::to_string(::geteuid()) + " " + std::to_string(::getegid());
  CHECK(line.substr(41, owner.size()) == owner);
}

TEST_CASE("a key that others can read is refused") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kCurve);
  REQUIRE(cluster);
  REQUIRE(::chmod((temporary / "fs/keys/cluster.key").c_str(), 0440) == 0);
  REQUIRE(::chmod((temporary / "fs/keys/server.curve").c_str(), 0404) == 0);
  CHECK(load_key(*cluster).error().code == Code::kPermission);
  CHECK(load_curve(*cluster, "server").error().code == Code::kPermission);
}

TEST_CASE("a damaged or missing key is named") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kCurve);
  REQUIRE(cluster);
  const std::string key = temporary / "fs/keys/cluster.key";
  const std::string curve = temporary / "fs/keys/server.curve";
  std::filesystem::remove(key);
  CHECK(load_key(*cluster).error().text == "cannot open " + key + ": No such file or directory");
  for (const std::size_t bytes : {0u, 31u, 33u, 5000u}) {
    put(key, std::string(bytes, 'x'));
    REQUIRE(::chmod(key.c_str(), 0400) == 0);
    CHECK_FALSE(load_key(*cluster));
    std::filesystem::remove(key);
  }
  const std::string whole = contents(curve);
  for (const std::string& damaged : {std::string(), whole.substr(1), whole + "x", "secret" + whole.substr(6)}) {
    std::filesystem::remove(curve);
    put(curve, damaged);
    REQUIRE(::chmod(curve.c_str(), 0400) == 0);
    CHECK(load_curve(*cluster, "server").error().code == Code::kCorrupt);
  }
}

TEST_CASE("a folder that holds a file system is not made into another") {
  const TemporaryFolder temporary;
  REQUIRE(create_cluster(temporary.path(), 1, 0, TcpMode::kNone));
  const std::string before = contents(temporary / "pif.toml");
  const auto again = create_cluster(temporary.path(), 2, 0, TcpMode::kNone);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Code::kExists);
  CHECK(again.error().text == temporary.path() + " holds a file system already");
  CHECK(contents(temporary / "pif.toml") == before);
}

TEST_CASE("a folder with data but without its description is not made into another file system") {
  const TemporaryFolder temporary;
  put(temporary / "lfs0/lfs.toml", "x");
  const auto made = create_cluster(temporary.path(), 1, 0, TcpMode::kNone);
  CHECK(made.error().code == Code::kExists);
  CHECK(made.error().text.find("lfs0") != std::string::npos);
}

TEST_CASE("a create that was cut off before its description can be repeated, with the same keys") {
  const TemporaryFolder temporary;
  const auto first = create_cluster(temporary.path(), 1, 0, TcpMode::kNone);
  REQUIRE(first);
  const auto key = load_key(*first).value().bytes;
  std::filesystem::remove(temporary / "pif.toml");
  const auto second = create_cluster(temporary.path(), 1, 0, TcpMode::kNone);
  REQUIRE(second);
  CHECK(load_key(*second).value().bytes == key);
}

TEST_CASE("of many who create in one folder at once exactly one succeeds") {
  const TemporaryFolder temporary;
  std::vector<Result<Cluster>> results(8, fail(Code::kInternal, "not run"));
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] { result = create_cluster(temporary.path(), 2, 0, TcpMode::kNone); });
  for (auto& thread : threads) thread.join();
  unsigned succeeded = 0;
  for (const auto& result : results) {
    if (result) ++succeeded;
    if (result) CHECK(load_cluster(temporary.path()).value().id == result->id);
    if (!result) CHECK(result.error().code == Code::kExists);
  }
  CHECK(succeeded == 1);
  CHECK(entries(temporary.path()) == 2);
}

TEST_CASE("wrong numbers of LFSs and bevies that do not fit are refused before anything is made") {
  const TemporaryFolder temporary;
  const auto refusal = [&](std::uint32_t count, std::uint32_t bevy) {
    const auto made = create_cluster(temporary / "fs", count, bevy, TcpMode::kNone);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == Code::kInvalid);
    CHECK_FALSE(std::filesystem::exists(temporary / "fs"));
    return made.error().text;
  };
  CHECK(refusal(0, 0) == "a file system has 1 to 4096 LFSs, not 0");
  CHECK(refusal(4097, 0) == "a file system has 1 to 4096 LFSs, not 4097");
  CHECK(refusal(8, 1) == "a bevy needs at least 2 LFSs, not 1");
  CHECK(refusal(7, 4) == "bevies of 4 need at least 8 LFSs (one bevy and its companion), and there are 7");
  CHECK(refusal(4, 0x80000001u).find("4294967298") != std::string::npos);
  CHECK(create_cluster(temporary / "fs", 8, 4, TcpMode::kNone).value().bevy == 4);
}

TEST_CASE("a file where the folder should be is named") {
  const TemporaryFolder temporary;
  put(temporary / "fs", "x");
  CHECK(create_cluster(temporary / "fs", 1, 0, TcpMode::kNone).error().code == Code::kNotDirectory);
  CHECK_FALSE(create_cluster(temporary / "fs/below", 1, 0, TcpMode::kNone));
}

TEST_CASE("a folder whose name is not UTF-8 is refused before it is made, and one that is moved there is not loaded") {
  const TemporaryFolder temporary;
  const std::string odd = temporary / "odd\xff";
  const auto made = create_cluster(odd, 1, 0, TcpMode::kNone);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Code::kInvalid);
  CHECK(made.error().text.find("not UTF-8") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(odd));
  REQUIRE(create_cluster(temporary / "even", 1, 0, TcpMode::kNone));
  std::filesystem::rename(temporary / "even", odd);
  CHECK(load_cluster(odd).error().text.find("not UTF-8") != std::string::npos);
}

TEST_CASE("roots on several disks go round over them, in a folder of the file system's own") {
  const TemporaryFolder temporary;
  const std::vector<std::string> disks = {temporary / "disk1", temporary / "disk2"};
  for (const std::string& disk : disks) std::filesystem::create_directory(disk);
  const auto made = create_cluster(temporary / "fs", 4, 0, TcpMode::kNone, disks);
  REQUIRE(made);
  CHECK(made->lfss[0].root == disks[0] + "/pif-" + made->id + "/lfs0");
  CHECK(made->lfss[1].root == disks[1] + "/pif-" + made->id + "/lfs1");
  CHECK(made->lfss[2].root == disks[0] + "/pif-" + made->id + "/lfs2");
  CHECK(mode_of(disk_folder(disks[1], made->id)) == 0700);
  CHECK(load_cluster(temporary / "fs")->lfss[3].root == made->lfss[3].root);
}

TEST_CASE("nothing stays on the disks of a file system that cannot be made") {
  const TemporaryFolder temporary;
  std::filesystem::create_directory(temporary / "disk1");
  CHECK_FALSE(create_cluster(temporary / "fs", 2, 0, TcpMode::kNone, {temporary / "disk1", temporary / "none"}));
  CHECK(std::filesystem::is_empty(temporary / "disk1"));
  CHECK_FALSE(std::filesystem::exists(temporary / "fs/pif.toml"));
}

}  // namespace
}  // namespace pif::cluster
