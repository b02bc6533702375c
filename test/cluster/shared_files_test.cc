// What all hosts have alike: how it gets to the others, and what is refused.
#include <algorithm>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

#include "folders.h"
#include "host_plan.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

// Two hosts of one file system, each with its folder.
class TwoHosts {
 public:
  TwoHosts() {
    Cluster plan = plan_of(h1_.path() + "/fs");
    plan.hosts[1].folder = h2_.path() + "/fs";
    first = create_cluster(h1_ / "fs", plan).value();
    pair = make_host_keys(first, "h2").value();
    second = receive_host(h2_ / "fs", files_for_host(first, "h2", pair).value()).value();
  }
  // The next edition, on h1.
  std::vector<SharedFile> next_edition() {
    ++first.edition;
    REQUIRE(save_cluster(first));
    return read_shared_files(first).value();
  }
  Result<Cluster> take(const std::vector<SharedFile>& files) const { return take_shared_files(h2_ / "fs", files); }
  std::string on_h1(const std::string& name) const { return h1_ / ("fs/" + name); }
  std::string on_h2(const std::string& name) const { return h2_ / ("fs/" + name); }

  Cluster first, second;
  net::CurveKeys pair;

 private:
  TemporaryFolder h1_, h2_;
};

TEST_CASE("a host that is received has the same description and public keys, and secrets of its own") {
  const TwoHosts hosts;
  CHECK(hosts.second.own_host == "h2");
  CHECK(hosts.second.id == hosts.first.id);
  for (const char* same : {"pif.toml", "keys/cluster.key", "keys/hosts/h1.pub", "keys/hosts/h2.pub",
                           "keys/clients/client.pub", "keys/clients/host-h2.pub"})
    CHECK(contents(hosts.on_h1(same)) == contents(hosts.on_h2(same)));
  CHECK(contents(hosts.on_h2("host")) == "h2\n");
  CHECK(load_curve(hosts.second, "host").value().secret_key == hosts.pair.secret_key);
  CHECK(load_curve(hosts.first, "host").value().secret_key != hosts.pair.secret_key);
  CHECK(mode_of(hosts.on_h2("keys")) == 0711);
  CHECK(mode_of(hosts.on_h2("keys/cluster.key")) == 0400);
  CHECK(mode_of(hosts.on_h2("keys/host.curve")) == 0400);
  CHECK(mode_of(hosts.on_h2("keys/clients")) == 0700);
  CHECK(mode_of(hosts.on_h2("keys/hosts/h1.pub")) == 0444);
  CHECK(hosts.second.listen_options("lfs1"));
}

// A message from who has these keys reaches an LFS of h1, and who he is to it.
std::optional<net::Identity> identity_at_h1(const TwoHosts& hosts, const net::CurveKeys& keys) {
  const auto daemon = start_listening(hosts.first, "lfs0").value();
  net::MessengerOptions options;
  options.client_keys = keys;
  const auto client = net::make_real_messenger(options).value();
  const auto peer = client->connect(net::listening(*daemon), net::Route::kTcp).value();
  net::Packet packet;
  packet.envelope.set_id(1);
  packet.envelope.mutable_hello();
  REQUIRE(client->send(peer, std::move(packet)));
  const auto delivery = daemon->receive(daemon->clock().now() + std::chrono::seconds(3)).value();
  if (!delivery) return std::nullopt;
  return daemon->identity(delivery->peer);
}

TEST_CASE("the owner has another pair on each host, which is admitted until it is removed with the host's") {
  const TwoHosts hosts;
  const auto owner = load_client_keys(hosts.second).value();
  CHECK(owner.public_key != load_client_keys(hosts.first).value().public_key);
  const auto admitted = identity_at_h1(hosts, owner);
  REQUIRE(admitted);
  CHECK(admitted->has_uid);
  CHECK(admitted->uid == ::geteuid());
  const auto daemons = identity_at_h1(hosts, hosts.pair);
  REQUIRE(daemons);
  CHECK_FALSE(daemons->has_uid);
  std::filesystem::remove(hosts.on_h1("keys/clients/host-h2.pub"));
  CHECK_FALSE(identity_at_h1(hosts, owner));
}

TEST_CASE("to be received again completes what is missing, and another host or file system is refused") {
  TwoHosts hosts;
  std::filesystem::remove(hosts.on_h2("pif.toml"));
  std::filesystem::remove(hosts.on_h2("keys/hosts/h1.pub"));
  const std::string folder = hosts.second.folder;
  const auto files = files_for_host(hosts.first, "h2", hosts.pair).value();
  CHECK(receive_host(folder, files).value().own_host == "h2");
  CHECK(std::filesystem::exists(hosts.on_h2("keys/hosts/h1.pub")));

  auto other_host = files;
  other_host.host = "h1";
  other_host.host_pair = format_keys(load_curve(hosts.first, "host").value());
  CHECK(receive_host(folder, other_host).error().code == Code::kExists);
  auto other_key = files;
  other_key.cluster_key[0] ^= 1;
  CHECK(receive_host(folder, other_key).error().code == Code::kExists);
  auto other_pair = files;
  other_pair.host_pair = format_keys(net::make_curve_keys().value());
  CHECK(receive_host(folder, other_pair).error().code == Code::kInvalid);
  auto nobody = files;
  nobody.host = "h9";
  CHECK_FALSE(receive_host(folder, nobody));
}

TEST_CASE("a newer edition replaces the description, and the keys as a whole") {
  TwoHosts hosts;
  put(hosts.on_h2("keys/clients/bob.pub"), "of an older edition\n");
  put(hosts.on_h1("keys/clients/alice.pub"), "of a newer edition\n");
  std::filesystem::remove(hosts.on_h1("keys/clients/client.pub"));
  const auto files = hosts.next_edition();
  const auto taken = hosts.take(files);
  REQUIRE(taken);
  CHECK(taken->edition == 2);
  CHECK(contents(hosts.on_h2("pif.toml")) == contents(hosts.on_h1("pif.toml")));
  CHECK(contents(hosts.on_h2("keys/clients/alice.pub")) == "of a newer edition\n");
  CHECK(entries(hosts.on_h2("keys/clients")) == 2);
  CHECK(entries(hosts.on_h2("keys/hosts")) == 2);
  CHECK(load_curve(hosts.second, "host").value().secret_key == hosts.pair.secret_key);
}

TEST_CASE("an edition that is not newer changes nothing") {
  TwoHosts hosts;
  auto files = read_shared_files(hosts.first).value();
  files.push_back({"keys/clients/eve.pub", "x\n"});
  CHECK(hosts.take(files).value().edition == 1);
  CHECK_FALSE(std::filesystem::exists(hosts.on_h2("keys/clients/eve.pub")));
}

TEST_CASE("nothing but the files that all have alike is ever written") {
  TwoHosts hosts;
  const auto good = hosts.next_edition();
  const std::string before = contents(hosts.on_h2("pif.toml"));
  for (const std::string name :
       {"keys/cluster.key", "keys/host.curve", "host", "keys/hosts/../cluster.key", "keys/hosts/../../x.pub",
        "keys/clients/a/b.pub", "keys/clients/.pub", "keys/clients/.hidden.pub", "keys/hosts/H.pub", "keys/hosts/h1",
        "/etc/x.pub", "", "keys/clients/a\n.pub", "keys/clients/-a.pub", "./pif.toml", "keys/hosts/h1.pub"}) {
    INFO(name);
    auto files = good;
    files.push_back({name, "x\n"});  // the last one comes twice
    CHECK(hosts.take(files).error().code == Code::kInvalid);
  }
  auto large = good;
  large.push_back({"keys/clients/large.pub", std::string(5000, 'x')});
  CHECK(hosts.take(large).error().code == Code::kInvalid);
  CHECK(hosts.take({good.begin() + 1, good.end()}).error().code == Code::kInvalid);  // without pif.toml
  CHECK(hosts.take({}).error().code == Code::kInvalid);
  CHECK(contents(hosts.on_h2("pif.toml")) == before);
  CHECK(entries(hosts.on_h2("keys/clients")) == 2);
}

TEST_CASE("a description that is none, of another file system, or without this host is not taken") {
  TwoHosts hosts;
  const auto good = hosts.next_edition();
  const std::string before = contents(hosts.on_h2("pif.toml"));
  const auto with = [&](const std::string& what, const std::string& by) {
    auto files = good;
    files[0].content = replaced(files[0].content, what, by);
    const auto taken = hosts.take(files);
    REQUIRE_FALSE(taken);
    return taken.error().text;
  };
  CHECK_THAT(with("edition = 2", "edition = \"2\""), Catch::Contains("edition"));
  CHECK_THAT(with(hosts.first.id, std::string(16, '0')), Catch::Contains("of file system 0000000000000000"));
  CHECK_THAT(with("name = \"h2\"", "name = \"h3\""), Catch::Contains("this host is h2"));
  CHECK(contents(hosts.on_h2("pif.toml")) == before);
}

TEST_CASE("who watches the description sees each new one once, and goes on with the last good one") {
  TwoHosts hosts;
  Watched watched(hosts.second);
  CHECK_FALSE(watched.changed());
  REQUIRE(hosts.take(hosts.next_edition()));
  CHECK(watched.changed());
  CHECK(watched.current().edition == 2);
  CHECK_FALSE(watched.changed());
  std::filesystem::remove(hosts.on_h2("pif.toml"));
  CHECK_FALSE(watched.changed());
  put(hosts.on_h2("pif.toml"), "nonsense");
  CHECK_FALSE(watched.changed());
  CHECK(watched.current().edition == 2);
}

}  // namespace
}  // namespace pif::cluster
