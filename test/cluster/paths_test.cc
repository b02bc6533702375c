// Where sockets are, and how the server is reached.
#include <sys/un.h>

#include <catch2/catch.hpp>

#include "folders.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

constexpr std::size_t kSocketPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

Cluster cluster_in(const std::string& folder) {
  Cluster cluster;
  cluster.folder = folder;
  cluster.id = "00c0ffee00c0ffee";
  return cluster;
}

TEST_CASE("sockets are in the folder's run") {
  const Cluster cluster = cluster_in("/data/fs");
  CHECK(cluster.unix_path("lfs0") == "/data/fs/run/lfs0.sock");
  CHECK(cluster.ipc_endpoint("server") == "ipc:///data/fs/run/server.ipc");
  CHECK(cluster.server_folder() == "/data/fs/server");
}

TEST_CASE("sockets move to /tmp before their path is too long for a Unix socket, with any daemon's name") {
  bool moved = false;
  for (std::size_t length = 1; length < 300; ++length) {
    const Cluster cluster = cluster_in("/" + std::string(length, 'd'));
    REQUIRE(cluster.unix_path("fifteen-letters").size() <= kSocketPathBytesMax);
    const bool in_tmp = cluster.run_folder() == "/tmp/pif-00c0ffee00c0ffee-0000000000000000";
    REQUIRE((in_tmp || cluster.run_folder() == cluster.folder + "/run"));
    REQUIRE((in_tmp || !moved));
    moved = in_tmp;
  }
  CHECK(moved);
  CHECK(cluster_in("/" + std::string(80, 'd')).run_folder().substr(0, 4) == "/ddd");
}

TEST_CASE("a folder has the same sockets by whatever path it is reached") {
  const TemporaryFolder temporary;
  REQUIRE(create_cluster(temporary / "fs", 1, 0, TcpMode::kNone));
  std::filesystem::create_directory_symlink(temporary / "fs", temporary / std::string(120, 'l'));
  const auto direct = load_cluster(temporary / "fs");
  const auto linked = load_cluster(temporary / std::string(120, 'l') + "/.");
  REQUIRE(direct);
  REQUIRE(linked);
  CHECK(linked->unix_path("server") == direct->unix_path("server"));
}

TEST_CASE("a copy has other sockets in /tmp than what it is a copy of, and a renamed folder the same") {
  const TemporaryFolder temporary;
  const std::string folder = temporary / std::string(120, 'f');
  const auto made = create_cluster(folder, 1, 0, TcpMode::kNone);
  REQUIRE(made);
  CHECK(made->run_folder().starts_with("/tmp/pif-" + made->id + "-"));
  std::filesystem::copy(folder, temporary / std::string(120, 'c'), std::filesystem::copy_options::recursive);
  const auto copy = load_cluster(temporary / std::string(120, 'c'));
  REQUIRE(copy);
  CHECK(copy->id == made->id);
  CHECK(copy->run_folder() != made->run_folder());
  std::filesystem::rename(folder, temporary / std::string(120, 'r'));
  const auto renamed = load_cluster(temporary / std::string(120, 'r'));
  REQUIRE(renamed);
  CHECK(renamed->run_folder() == made->run_folder());
}

TEST_CASE("a folder that takes the place of a removed one is another one") {
  const TemporaryFolder temporary;
  const auto first = create_cluster(temporary / "fs", 1, 0, TcpMode::kNone);
  REQUIRE(first);
  std::filesystem::remove_all(temporary / "fs");
  const auto second = create_cluster(temporary / "fs", 1, 0, TcpMode::kNone);
  REQUIRE(second);
  CHECK(second->folder_number != first->folder_number);
}

TEST_CASE("what another folder's server has published says nothing in its copy") {
  const TemporaryFolder temporary;
  const auto made = create_cluster(temporary / "fs", 1, 0, TcpMode::kCurve);
  REQUIRE(made);
  REQUIRE(made->listen_options("server"));
  proto::Endpoints listening;
  listening.set_tcp("tcp://127.0.0.1:4711");
  REQUIRE(publish_tcp(*made, "server", listening));
  std::filesystem::copy(temporary / "fs", temporary / "copy", std::filesystem::copy_options::recursive);
  const auto copy = load_cluster(temporary / "copy");
  REQUIRE(copy);
  CHECK(copy->server_endpoints().tcp().empty());
  CHECK(made->server_endpoints().tcp() == "tcp://127.0.0.1:4711");
}

TEST_CASE("a daemon listens on its Unix socket and ipc, in a run folder that others may enter") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kNone);
  REQUIRE(cluster);
  const auto options = cluster->listen_options("lfs0");
  REQUIRE(options);
  CHECK(options->unix_path == temporary / "fs/run/lfs0.sock");
  CHECK(options->ipc == "ipc://" + (temporary / "fs/run/lfs0.ipc"));
  CHECK(options->tcp.empty());
  CHECK(options->key_folder.empty());
  CHECK(mode_of(temporary / "fs/run") == 0755);
}

TEST_CASE("tcp is encrypted, with the keys of those who may connect, or plain where that was asked for") {
  const TemporaryFolder temporary;
  auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kCurve);
  REQUIRE(cluster);
  const auto curve = cluster->listen_options("server");
  REQUIRE(curve);
  CHECK(curve->tcp == "tcp://127.0.0.1:0");
  CHECK_FALSE(curve->insecure_loopback);
  CHECK(curve->curve.secret_key == load_curve(*cluster, "server").value().secret_key);
  CHECK(curve->key_folder == temporary / "fs/keys/clients");
  cluster->tcp = TcpMode::kInsecureLoopback;
  const auto plain = cluster->listen_options("server");
  REQUIRE(plain);
  CHECK(plain->insecure_loopback);
  CHECK(plain->curve.secret_key.empty());
}

TEST_CASE("a daemon without keys does not listen on tcp") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kCurve);
  REQUIRE(cluster);
  std::filesystem::remove(temporary / "fs/keys/server.curve");
  CHECK(cluster->listen_options("server").error().code == Code::kNotFound);
}

TEST_CASE("clients learn the server's tcp endpoint and key once it is published") {
  const TemporaryFolder temporary;
  auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kCurve);
  REQUIRE(cluster);
  REQUIRE(cluster->listen_options("server"));
  CHECK(cluster->server_endpoints().tcp().empty());
  proto::Endpoints listening;
  listening.set_tcp("tcp://127.0.0.1:4711");
  listening.set_curve_key(std::string(40, 'k'));
  REQUIRE(publish_tcp(*cluster, "server", listening));
  CHECK(cluster->server_endpoints().tcp() == "tcp://127.0.0.1:4711");
  CHECK(cluster->server_endpoints().curve_key() == std::string(40, 'k'));
  CHECK(cluster->server_endpoints().unix_path() == temporary / "fs/run/server.sock");
  listening.clear_curve_key();
  REQUIRE(publish_tcp(*cluster, "server", listening));
  CHECK(cluster->server_endpoints().tcp() == "tcp://127.0.0.1:4711");
  CHECK(cluster->server_endpoints().curve_key().empty());
  cluster->tcp = TcpMode::kNone;
  CHECK(cluster->server_endpoints().tcp().empty());
}

TEST_CASE("a run folder that others can write, or that is none, is refused") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", 1, 0, TcpMode::kNone);
  REQUIRE(cluster);
  REQUIRE(cluster->listen_options("server"));
  REQUIRE(::chmod((temporary / "fs/run").c_str(), 0777) == 0);
  CHECK(cluster->listen_options("server").error().code == Code::kPermission);
  CHECK(load_cluster(temporary / "fs").error().code == Code::kPermission);
  std::filesystem::remove(temporary / "fs/run");
  std::filesystem::create_directory_symlink(temporary.path(), temporary / "fs/run");
  CHECK(load_cluster(temporary / "fs").error().code == Code::kPermission);
}

}  // namespace
}  // namespace pif::cluster
