// pif.toml of a file system of several hosts: what is read back, which host this is, and how each mistake is named.
#include <string>

#include <catch2/catch.hpp>

#include "folders.h"
#include "host_plan.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

// The folder of host h1. Host h2 has one elsewhere, which need not be there.
class HostFolder : public TemporaryFolder {
 public:
  HostFolder() { put(*this / "host", "h1\n"); }

  // As released; this text must stay readable.
  std::string description() const {
    return "format = 3\n"
           "id = \"00c0ffee00c0ffee\"\n"
           "bevy = 0\n"
           "tcp = \"curve\"\n"
           "directory = \"8f0e9d1c2b3a49586776859493a2b1c0\"\n"
           "stage = \"ready\"\n"
           "edition = 7\n"
           "worker-ports = \"7500-7999\"\n"
           "[[host]]\n"  // line 9
           "name = \"h1\"\n"
           "address = \"10.77.0.1\"\n"
           "bind = \"0.0.0.0\"\n"
           "folder = \"" +
           path() +
           "\"\n"
           "[[host]]\n"  // line 14
           "name = \"h2\"\n"
           "address = \"fd00::2\"\n"
           "folder = \"/data/pif\"\n"
           "[[server]]\n"  // line 18
           "id = 1\n"
           "host = \"h1\"\n"
           "port = 7400\n"
           "[[lfs]]\n"  // line 22
           "id = 1\n"
           "name = \"lfs0\"\n"
           "root = \"lfs0\"\n"
           "uuid = \"00000000000000000000000000000001\"\n"
           "host = \"h1\"\n"
           "port = 7401\n"
           "[[lfs]]\n"  // line 29
           "id = 2\n"
           "name = \"lfs1\"\n"
           "root = \"lfs0\"\n"
           "uuid = \"00000000000000000000000000000002\"\n"
           "host = \"h2\"\n"
           "port = 7401\n";
  }
  Result<Cluster> load(const std::string& text) const {
    put(*this / "pif.toml", text);
    return load_cluster(path());
  }
  std::string refusal(const std::string& what, const std::string& by) const {
    const auto loaded = load(replaced(description(), what, by));
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == Code::kInvalid);
    return loaded.error().text;
  }
};

TEST_CASE("a description of format 3 is read, and every host's roots are in that host's folder") {
  const HostFolder folder;
  const auto cluster = folder.load(folder.description());
  REQUIRE(cluster);
  CHECK(cluster->has_hosts());
  CHECK(cluster->edition == 7);
  CHECK(cluster->worker_ports == "7500-7999");
  CHECK(cluster->own_host == "h1");
  REQUIRE(cluster->hosts.size() == 2);
  CHECK(cluster->find_host("h1")->bind == "0.0.0.0");
  CHECK(cluster->find_host("h2")->address == "fd00::2");
  CHECK(cluster->find_host("h3") == nullptr);
  REQUIRE(cluster->servers.size() == 1);
  CHECK(cluster->servers[0].port == 7400);
  CHECK(cluster->serves_here());
  REQUIRE(cluster->lfss.size() == 2);
  CHECK(cluster->is_here(cluster->lfss[0]));
  CHECK_FALSE(cluster->is_here(cluster->lfss[1]));
  CHECK(cluster->lfss[0].root == folder / "lfs0");
  CHECK(cluster->lfss[1].root == "/data/pif/lfs0");
  CHECK(cluster->lfss[1].port == 7401);
}

TEST_CASE("with settings a description of several hosts has format 4, and reads back the same") {
  const HostFolder folder;
  const std::string before = folder.description();
  auto cluster = folder.load(before);
  REQUIRE(cluster);
  cluster->grants = false;
  REQUIRE(save_cluster(*cluster));
  const std::string text = contents(folder / "pif.toml");
  CHECK_THAT(text, Catch::Contains("format = 4\n"));
  const auto read = folder.load(text);
  REQUIRE(read);
  CHECK_FALSE(read->grants);
  CHECK(read->worker_memory_bounded);
  CHECK(read->edition == cluster->edition);
  CHECK(read->lfss.size() == cluster->lfss.size());
}

TEST_CASE("all hosts save the same bytes") {
  const HostFolder folder;
  const HostFolder other;
  const std::string text = replaced(folder.description(), "/data/pif", other.path());
  REQUIRE(save_cluster(folder.load(text).value()));
  put(other / "host", "h2\n");
  const auto cluster = other.load(text);
  REQUIRE(cluster);
  CHECK_FALSE(cluster->serves_here());
  CHECK(cluster->lfss[1].root == other / "lfs0");
  REQUIRE(save_cluster(*cluster));
  CHECK(contents(other / "pif.toml") == contents(folder / "pif.toml"));
}

TEST_CASE("a description with hosts that is saved is read back the same") {
  const HostFolder folder;
  const auto cluster = folder.load(folder.description()).value();
  REQUIRE(save_cluster(cluster));
  const auto back = load_cluster(folder.path());
  REQUIRE(back);
  CHECK(back->edition == 7);
  CHECK(back->worker_ports == "7500-7999");
  REQUIRE(back->hosts.size() == 2);
  CHECK(back->hosts[0].bind == "0.0.0.0");
  CHECK(back->hosts[1].bind.empty());
  CHECK(back->hosts[1].folder == "/data/pif");
  CHECK(back->servers[0].host == "h1");
  CHECK(back->lfss[1].host == "h2");
  CHECK(back->lfss[1].root == "/data/pif/lfs0");
}

TEST_CASE("a file system without hosts is described as before") {
  const TemporaryFolder temporary;
  REQUIRE(create_cluster(temporary / "fs", 1, 0, TcpMode::kNone));
  put(temporary / "fs/host", "h1\n");  // says nothing to it
  const auto cluster = load_cluster(temporary / "fs").value();
  CHECK_FALSE(cluster.has_hosts());
  CHECK(cluster.own_host.empty());
  CHECK(cluster.serves_here());
  CHECK(cluster.is_here(cluster.lfss[0]));
  CHECK(contents(temporary / "fs/pif.toml").find("format = 2\n") != std::string::npos);
}

TEST_CASE("a file system of several hosts is made as planned") {
  const TemporaryFolder temporary;
  Cluster plan = plan_of(temporary / "fs");
  const auto made = create_cluster(temporary / "fs", plan);
  REQUIRE(made);
  CHECK(made->stage == Stage::kNew);
  CHECK(made->edition == 1);
  CHECK(made->lfss[1].uuid.size() == 32);
  CHECK(made->lfss[1].root == "/data/pif/lfs1");
  CHECK(contents(temporary / "fs/host") == "h1\n");
  CHECK(load_cluster(temporary / "fs").value().lfss[0].root == temporary / "fs/lfs0");
  CHECK(create_cluster(temporary / "fs", plan).error().code == Code::kExists);

  plan.own_host = "h3";
  CHECK(create_cluster(temporary / "other", plan).error().code == Code::kInvalid);
  CHECK_FALSE(std::filesystem::exists(temporary / "other/pif.toml"));
}

TEST_CASE("daemons listen where the description says, with their host's keys, and admit other hosts") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", plan_of(temporary / "fs"));
  REQUIRE(cluster);
  const auto server = cluster->listen_options("server");
  const auto lfs = cluster->listen_options("lfs0");
  REQUIRE(server);
  REQUIRE(lfs);
  CHECK(server->tcp == "tcp://" + own_address() + ":7400");
  CHECK(server->announce == server->tcp);
  CHECK(lfs->tcp == "tcp://" + own_address() + ":7401");
  CHECK(lfs->curve.public_key == load_host_key(*cluster, "h1").value());
  CHECK(lfs->curve.secret_key == load_curve(*cluster, "host").value().secret_key);
  CHECK(lfs->key_folder == temporary / "fs/keys/clients");
  CHECK(lfs->host_folder == temporary / "fs/keys/hosts");
  CHECK_THAT(cluster->listen_options("lfs1").error().text, Catch::Contains("lfs1 runs on another host than h1"));
}

TEST_CASE("hosts that are folders of one machine do not share sockets, however long their paths are") {
  Cluster cluster = plan_of("/" + std::string(200, 'x'));
  cluster.folder = cluster.hosts[0].folder;
  cluster.id = "00c0ffee00c0ffee";
  cluster.folder_number = 0x11;
  CHECK(cluster.run_folder() == "/tmp/pif-00c0ffee00c0ffee-0000000000000011");
  CHECK(cluster.unix_path(std::string(15, 'd')).size() < 108);
}

TEST_CASE("an address to listen on that is a name is looked up") {
  const TemporaryFolder temporary;
  Cluster plan = plan_of(temporary / "fs");
  plan.hosts[0].bind = "localhost";
  auto cluster = create_cluster(temporary / "fs", plan);
  REQUIRE(cluster);
  CHECK_THAT(cluster->listen_options("lfs0").error().text,
             Catch::Contains("localhost") && Catch::Contains("other hosts cannot reach") && Catch::Contains("bind"));
  cluster->hosts[0].bind = "no-such-host.invalid";
  CHECK_THAT(cluster->listen_options("lfs0").error().text, Catch::Contains("not known here"));
  cluster->hosts[0].bind = "::1";
  CHECK(cluster->listen_options("lfs0").value().tcp == "tcp://[::1]:7401");
  cluster->hosts[0].bind = "localhost";
  cluster->hosts.pop_back();  // nobody else need reach it
  CHECK_THAT(cluster->listen_options("lfs0").value().tcp, Catch::EndsWith("]:7401") || Catch::EndsWith(".1:7401"));
}

TEST_CASE("a port in use is named with host and file") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", plan_of(temporary / "fs")).value();
  const auto first = start_listening(cluster, "lfs0");
  REQUIRE(first);
  CHECK(net::listening(**first).tcp() == "tcp://" + own_address() + ":7401");
  Cluster other = cluster;
  other.servers[0].port = 7401;
  const auto second = start_listening(other, "server");
  CHECK(second.error().code == Code::kBusy);
  CHECK_THAT(second.error().text, Catch::Contains("host h1") && Catch::Contains(temporary / "fs/pif.toml") &&
                                      Catch::Contains("tcp://" + own_address() + ":7401"));
}

TEST_CASE("every host reaches the server by tcp, with the key of its host, and only its own host by socket") {
  const TemporaryFolder temporary;
  auto cluster = create_cluster(temporary / "fs", plan_of(temporary / "fs")).value();
  CHECK(cluster.server_endpoints().unix_path() == temporary / "fs/run/server.sock");
  cluster.own_host = "h2";
  const auto far = cluster.server_endpoints();
  CHECK(far.unix_path().empty());
  CHECK(far.ipc().empty());
  CHECK(far.tcp() == "tcp://" + own_address() + ":7400");
  CHECK(far.curve_key() == load_host_key(cluster, "h1").value());
  cluster.servers[0].host = "h2";
  cluster.own_host = "h1";
  REQUIRE(make_host_keys(cluster, "h2"));
  CHECK(cluster.server_endpoints().tcp() == "tcp://[fd00::3]:7400");
  std::filesystem::remove(temporary / "fs/keys/hosts/h2.pub");
  CHECK(cluster.server_endpoints().tcp().empty());
  CHECK_THAT(check_server_key(cluster).error().text, Catch::Contains("keys/hosts/h2.pub"));
}

TEST_CASE("a user's own pair comes before the owner's, and who has none is told where to get one") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", plan_of(temporary / "fs")).value();
  const Environment config("XDG_CONFIG_HOME", temporary / "config");
  const std::string own = temporary / ("config/pif/keys/" + cluster.id + ".curve");
  CHECK(user_key_path(cluster) == own);
  CHECK(load_client_keys(cluster).value().public_key == load_curve(cluster, "client").value().public_key);
  const auto pair = net::make_curve_keys().value();
  put(own, format_keys(pair));
  CHECK(load_client_keys(cluster).error().code == Code::kPermission);  // others can read it
  REQUIRE(::chmod(own.c_str(), 0400) == 0);
  CHECK(load_client_keys(cluster).value().public_key == pair.public_key);
  std::filesystem::remove(own);
  std::filesystem::remove(temporary / "fs/keys/client.curve");
  CHECK(load_client_keys(cluster).error().code == Code::kPermission);
  CHECK_THAT(load_client_keys(cluster).error().text, Catch::Contains("pif user add") && Catch::Contains(own));
}

TEST_CASE("a host has its own pair, and the public ones of others; only these can be read by all") {
  const TemporaryFolder temporary;
  const auto cluster = create_cluster(temporary / "fs", plan_of(temporary / "fs")).value();
  CHECK(mode_of(temporary / "fs/keys") == 0711);
  CHECK(mode_of(temporary / "fs/keys/clients") == 0700);
  CHECK(mode_of(temporary / "fs/keys/host.curve") == 0400);
  CHECK(mode_of(temporary / "fs/keys/cluster.key") == 0400);
  CHECK(mode_of(temporary / "fs/keys/hosts/h1.pub") == 0444);
  CHECK_FALSE(std::filesystem::exists(temporary / "fs/keys/server.curve"));
  const auto pair = make_host_keys(cluster, "h2");
  REQUIRE(pair);
  CHECK(load_host_key(cluster, "h2").value() == pair->public_key);
  CHECK(pair->public_key != load_host_key(cluster, "h1").value());
  CHECK(entries(temporary / "fs/keys/hosts") == 2);
  CHECK(make_host_keys(cluster, "../h3").error().code == Code::kInvalid);
}

TEST_CASE("which host this is must be said, by a name of the description") {
  const HostFolder folder;
  const std::string file = folder / "host";
  REQUIRE(std::filesystem::remove(file));
  CHECK(folder.load(folder.description()).error().text ==
        file + " is missing: it must be one line, the name that this host has in " + (folder / "pif.toml"));
  put(file, "h3\n");
  CHECK(folder.load(folder.description()).error().text ==
        file + " says that this host is h3, and " + (folder / "pif.toml") + " has no such [[host]]");
  for (const std::string text : {"", "\n", "h1\nh2\n", "h1\n\n", "H1\n", "../h1", "-h1\n", " h1\n"}) {
    put(file, text);
    CHECK_THAT(folder.load(folder.description()).error().text, Catch::StartsWith(file + " must be one line"));
  }
  put(file, std::string(300, 'h'));
  CHECK_THAT(folder.load(folder.description()).error().text, Catch::StartsWith(file + " must be one line"));
  REQUIRE(write_own_host(folder.path(), "h1"));
  CHECK(folder.load(folder.description()));
  CHECK(write_own_host(folder.path(), "a b").error().code == Code::kInvalid);
}

TEST_CASE("the folder must be the one that the description names for this host") {
  const HostFolder folder;
  CHECK(folder.refusal(folder.path(), "/elsewhere") ==
        folder / "pif.toml" + (" says that the folder of host h1 is /elsewhere, and this "
                               "is " +
                               folder.path() + ": use that one"));
  const TemporaryFolder links;
  std::filesystem::create_directory_symlink(folder.path(), links / "pif");
  CHECK(folder.load(replaced(folder.description(), folder.path(), links / "pif")));
}

TEST_CASE("a mistake about hosts is named with its line and key") {
  const HostFolder folder;
  const auto with = [&](const std::string& what, const std::string& by) {
    const std::string start = folder / "pif.toml";
    const std::string text = folder.refusal(what, by);
    REQUIRE_THAT(text, Catch::StartsWith(start));
    return text.substr(start.size());
  };
  CHECK(with("\"curve\"", "\"none\"") == ", line 4: tcp must be \"curve\" in a file system of several hosts");
  CHECK(with("edition = 7", "edition = 0") == ", line 7: edition must be a whole number from 1 to 9223372036854775807");
  CHECK(with("worker-ports = \"7500-7999\"\n", "") == ", line 1: worker-ports is missing");
  for (const std::string range : {"7999-7500", "7500", "0-7", "1-65536", "a-b", "1-2-3", "-", "+1-2", " 1-2"})
    CHECK(with("7500-7999", range) ==
          ", line 8: worker-ports must be \"any\" or two ports with a dash between, such as \"7500-7999\"");
  CHECK(with("\"h1\"", "\"H1\"") == ", line 10: name must be 1 to 63 of a-z, 0-9, - and _, and not begin with -");
  CHECK(with("\"h2\"", "\"h1\"") == ", line 15: name h1 is given to another host too");
  CHECK(with("fd00::2", "10.77.0.1") == ", line 16: address 10.77.0.1 is that of host h1 too");
  CHECK(with("bind = \"0.0.0.0\"", "bind = \"[::]\"") ==
        ", line 12: bind must be a host name, an IPv4 address, or an IPv6 address without brackets");
  CHECK(with("\"/data/pif\"", "\"pif\"") == ", line 17: folder must be absolute: begin with /");
  CHECK(with("folder = \"/data/pif\"", "root = \"/data/pif\"") == ", line 17: root is not a key of this format");
  CHECK(with("host = \"h1\"\nport = 7400", "host = \"h9\"\nport = 7400") ==
        ", line 20: host \"h9\" is not the name of a [[host]]");
  CHECK(with("host = \"h2\"\nport", "host = \"h\\n9\"\nport") ==
        ", line 34: host \"h\\u000a9\" is not the name of a [[host]]");
  CHECK(with("host = \"h2\"\n", "") == ", line 29: host is missing");
  CHECK(with("port = 7400", "port = 7401") == ", line 28: port 7401 of host h1 is given to another daemon too");
  CHECK(with("port = 7400", "port = 65536") == ", line 21: port must be a whole number from 1 to 65535");
  CHECK(with("port = 7400", "port = 7500") == ", line 21: port 7500 is one of worker-ports, 7500-7999");
  CHECK(with("[[server]]\nid = 1\nhost = \"h1\"\nport = 7400\n", "") ==
        ", line 1: server is missing: one [[server]] is needed for each PIF Server");
  CHECK(with("[[lfs]]", "[[server]]\nid = 2\nhost = \"h2\"\nport = 7402\n[[lfs]]") ==
        ", line 18: server is given more than once: there is one PIF Server");
}

TEST_CASE("the same root on two hosts is two roots, on one host a mistake") {
  const HostFolder folder;
  const std::string second = "root = \"lfs0\"\nuuid = \"00000000000000000000000000000002\"\nhost = \"h2\"\nport = 7401";
  CHECK(folder.load(replaced(folder.description(), second, replaced(second, "\"lfs0\"", "\"/one/root\""))));
  const std::string same = replaced(replaced(second, "h2", "h1"), "7401", "7402");
  CHECK_THAT(folder.refusal(second, same), Catch::EndsWith("is given to another LFS too"));
}

TEST_CASE("addresses are names, IPv4 or IPv6, and nothing that a program could take for something else") {
  for (const std::string address : {"h1", "H1.example.org", "10.77.0.1", "::1", "fd00::2", "::ffff:10.0.0.1"})
    CHECK(check_address(address));
  for (const std::string address : {"", "-oProxyCommand=x", "[::1]", "a b", "a;b", "a\nb", "fe80::1%eth0", "*",
                                    "user@h1", "h1:7400", "é", std::string(300, 'a').c_str()})
    CHECK_FALSE(check_address(address));
}

TEST_CASE("one address in two spellings is one address") {
  const HostFolder folder;
  const std::string text = replaced(folder.description(), "10.77.0.1", "FD00:0::2");
  CHECK_THAT(folder.load(text).error().text, Catch::EndsWith("address fd00::2 is that of host h1 too"));
}

TEST_CASE("a description with hosts that is cut off anywhere is refused or has fewer LFSs") {
  const HostFolder folder;
  const std::string whole = folder.description();
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    const auto loaded = folder.load(whole.substr(0, length));
    if (loaded) REQUIRE(loaded->lfss.size() <= 2);
    if (!loaded) REQUIRE(loaded.error().code == Code::kInvalid);
  }
}

}  // namespace
}  // namespace pif::cluster
