// pif.toml and lfs.toml: any text is read or refused, and what was read comes back from what is written.
#include <algorithm>
#include <tuple>

#include "../../cluster/src/description/description.h"
#include "../../lfs/src/store/root.h"
#include "fuzz.h"
#include "pif/component/memory_storage.h"

namespace {

using namespace pif;
using fuzz::must;

constexpr const char* kFolder = "/fs";
constexpr const char* kOwnHost = "h1";

bool same(const cluster::Cluster& a, const cluster::Cluster& b) {
  if (a.id != b.id || a.bevy != b.bevy || a.tcp != b.tcp || a.edition != b.edition) return false;
  if (a.worker_ports != b.worker_ports || a.own_host != b.own_host) return false;
  const auto lfs = [](const cluster::LfsEntry& e) { return std::tie(e.id, e.name, e.root, e.host, e.port); };
  const auto host = [](const cluster::HostEntry& e) { return std::tie(e.name, e.address, e.bind, e.folder); };
  const auto server = [](const cluster::ServerEntry& e) { return std::tie(e.id, e.host, e.port); };
  const auto equal = [](const auto& left, const auto& right, const auto& keys) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [&](const auto& l, const auto& r) { return keys(l) == keys(r); });
  };
  return equal(a.lfss, b.lfss, lfs) && equal(a.hosts, b.hosts, host) && equal(a.servers, b.servers, server);
}

void check_cluster(std::string_view text) {
  auto read = cluster::parse_description(kFolder, text, kOwnHost);
  if (!read) return;
  if (read->stage == cluster::Stage::kBefore) must(cluster::name_roots(*read).has_value(), "roots get uuids");
  const auto again = cluster::parse_description(kFolder, cluster::format_description(*read), kOwnHost);
  must(again && same(*read, *again), "a description that was read is the same when written and read again");
}

// One disk for all executions: making it anew would cost more than reading.
component::Storage& disk() {
  static const auto storage = component::make_memory_storage(component::MemoryDisk::make());
  return *storage;
}

void check_root(std::string_view text) {
  must(disk().make_folder("/lfs").has_value(), "a folder can be made in memory");
  auto file = disk().open("/lfs/lfs.toml", component::OpenMode::kCreate);
  must(file && (*file)->resize(0) && (*file)->write(0, std::as_bytes(std::span(text))), "memory can be written");
  const auto read = lfs::read_identity(disk(), "/lfs");
  must(!read || (!read->cluster.empty() && read->node != 0), "an identity that was read names cluster and node");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const bool of_lfs = (in.byte() & 1) != 0;
  of_lfs ? check_root(in.rest()) : check_cluster(in.rest());
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  cluster::Cluster cluster;
  cluster.folder = kFolder;
  cluster.id = "c0ffee0123456789";
  for (std::uint32_t i = 0; i < 4; ++i)
    cluster.lfss.push_back({i + 1, "lfs" + std::to_string(i), std::string(kFolder) + "/lfs" + std::to_string(i), {}});
  must(cluster::name_roots(cluster).has_value(), "roots get uuids");
  const std::string plain = cluster::format_description(cluster);
  cluster.bevy = 2;
  cluster.tcp = cluster::TcpMode::kCurve;
  cluster.lfss[1].root = "/disk/with \"quotes\" and \\ and \x01";
  const std::string other = cluster::format_description(cluster);
  cluster.bevy = 0;
  cluster.edition = 7;
  cluster.worker_ports = "7500-7999";
  cluster.hosts = {{kOwnHost, "10.77.0.1", "0.0.0.0", kFolder}, {"h2", "fd00::2", "", "/data/pif"}};
  cluster.servers = {{1, "h2", 7400}};
  for (auto& lfs : cluster.lfss) {
    lfs.host = lfs.id % 2 == 0 ? "h2" : kOwnHost;
    lfs.port = static_cast<std::uint16_t>(7400 + lfs.id);
  }
  const std::string hosts = cluster::format_description(cluster);
  must(cluster::parse_description(kFolder, hosts, kOwnHost).has_value(), "hosts are described well");
  const std::string root = "# x\nformat = 1\ncluster = \"c0ffee0123456789\"\nnode = 1\nname = \"lfs0\"\n";
  const auto of = [](unsigned kind, std::string_view text) { return Output().byte(kind).bytes(text).str(); };
  return {{"four", of(0, plain)},
          {"bevies-curve", of(0, other)},
          {"hosts", of(0, hosts)},
          {"newer", of(0, "format = 2\nid = \"0\"\n")},
          {"inline", of(0, "format=1\nid='c0ffee0123456789'\nbevy=0\ntcp='none'\nlfs=[{id=1,name='a',root='/r'}]")},
          {"dates", of(0, "format=1\nid=1979-05-27T07:32:00Z\nbevy=0x1_0\ntcp=\"\"\"x\"\"\"\n[[lfs]]\nid=[1,[2]]\n")},
          {"root", of(1, root)},
          {"root-newer", of(1, "format = 9\nwhat = 5\n")},
          {"root-broken", of(1, "format = 1\ncluster = \"\nnode = -1\n")}};
}
