#include "pif/cluster/cluster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <sodium.h>

#include "description/description.h"
#include "description/hosts.h"
#include "files/files.h"
#include "keys/keys.h"
#include "pif/base/assert.h"
#include "pif/base/checksum.h"
#include "pif/base/limits.h"
#include "pif/base/path.h"

namespace pif::cluster {
namespace {

constexpr std::size_t kSocketPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
constexpr mode_t kOpenFolderMode = 0755;  // other users of this machine may look and connect
constexpr mode_t kDescriptionMode = 0644;
constexpr mode_t kDiskFolderMode = 0700;
constexpr std::size_t kEndpointBytesMax = 4096;

// One folder, one name: how long the path is decides where the sockets are.
Result<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (!resolved) return fail_errno(errno, "cannot find the folder " + path);
  return std::string(resolved.get());
}

// Messages bear the names of folders, and one that is not UTF-8 is not understood.
Status check_name(const std::string& folder) {
  if (is_utf8(folder)) return {};
  return fail(Code::kInvalid,
              fmt::format("the name of the folder {} is not UTF-8: choose another one", to_utf8(folder)));
}

// Device and inode do not tell a folder from one that was removed before it was made: with the time when they do.
std::uint64_t number_of(const std::string& folder) {
  struct statx about {};
  if (::statx(AT_FDCWD, folder.c_str(), 0, STATX_INO | STATX_BTIME, &about) != 0) return 0;
  const std::string all = fmt::format("{}:{} {} {}.{}", about.stx_dev_major, about.stx_dev_minor, about.stx_ino,
                                      about.stx_btime.tv_sec, about.stx_btime.tv_nsec);
  return hash_bytes(std::as_bytes(std::span(all)));
}

Result<std::string> random_id() {
  if (::sodium_init() < 0) return fail(Code::kInternal, "libsodium could not start: no random numbers");
  std::uint64_t number = 0;
  randombytes_buf(&number, sizeof(number));
  return fmt::format("{:016x}", number);
}

std::string hex_of(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// A folder that has data of a file system but no description has lost it; new keys would make the data unusable.
Status check_free(const std::string& folder) {
  if (::access(description_path(folder).c_str(), F_OK) == 0)
    return fail(Code::kExists, folder + " holds a file system already");
  for (const char* part : {"server", "lfs0"}) {
    std::error_code failed;
    const std::string path = folder + "/" + part;
    if (std::filesystem::exists(path, failed) && !std::filesystem::is_empty(path, failed))
      return fail(Code::kExists,
                  fmt::format("{} has {} of a file system, but no pif.toml: restore that, or choose another folder",
                              folder, part));
  }
  return {};
}

// Whoever owns the description must own the sockets' folder: in /tmp anybody could have made one of that name.
Status check_run_folder(const Cluster& cluster) {
  struct stat run {
  }, description{};
  const std::string path = cluster.run_folder();
  if (::lstat(path.c_str(), &run) != 0) return {};  // nothing runs
  if (::stat(description_path(cluster.folder).c_str(), &description) != 0)
    return fail_errno(errno, "cannot look at " + description_path(cluster.folder));
  if (!S_ISDIR(run.st_mode) || run.st_uid != description.st_uid || (run.st_mode & 022) != 0)
    return fail(Code::kPermission, fmt::format("{} is not a folder that the owner of {} alone can write: remove it",
                                               path, cluster.folder));
  return {};
}

// Other hosts start daemons in the folder that the description names: it must be this one.
Status check_own_folder(const Cluster& cluster) {
  const HostEntry* own = cluster.find_host(cluster.own_host);
  if (own == nullptr || own->folder == cluster.folder) return {};
  struct stat named {
  }, real{};
  if (::stat(own->folder.c_str(), &named) == 0 && ::stat(cluster.folder.c_str(), &real) == 0 &&
      named.st_dev == real.st_dev && named.st_ino == real.st_ino)
    return {};
  return fail(Code::kInvalid, fmt::format("{} says that the folder of host {} is {}, and this is {}: use that one",
                                          description_path(cluster.folder), own->name, own->folder, cluster.folder));
}

// What pif.toml says of the daemon, which runs on this host.
Status listen_for_hosts(const Cluster& cluster, const std::string& daemon, net::ListenOptions& options) {
  const auto lfs = std::find_if(cluster.lfss.begin(), cluster.lfss.end(),
                                [&](const LfsEntry& entry) { return entry.name == daemon; });
  const bool is_server = daemon == "server";
  if (is_server ? !cluster.serves_here() : lfs == cluster.lfss.end() || !cluster.is_here(*lfs))
    return fail(Code::kInvalid, fmt::format("{} says that {} runs on another host than {}, which this is",
                                            description_path(cluster.folder), daemon, cluster.own_host));
  const HostEntry* own = cluster.find_host(cluster.own_host);
  PIF_ASSERT(own != nullptr, cluster.hosts.size());
  const std::uint16_t port = is_server ? cluster.servers.front().port : lfs->port;
  PIF_TRY_VALUE(const std::string bind,
                resolve_own(own->bind.empty() ? own->address : own->bind, cluster.hosts.size() == 1));
  options.tcp = tcp_endpoint(bind, port);
  options.announce = tcp_endpoint(own->address, port);
  PIF_TRY_VALUE(options.curve, load_curve(cluster, "host"));
  options.key_folder = client_key_folder(cluster.folder);
  options.host_folder = host_key_folder(cluster.folder);
  return {};
}

std::string tcp_file(const Cluster& cluster, const std::string& daemon) {
  return cluster.run_folder() + "/" + daemon + ".tcp";
}

// Second line of that file: whose port it is. A copy of the folder has the file, too.
std::string folder_line(const Cluster& cluster) { return fmt::format("{:016x}\n", cluster.folder_number); }

// Makes the folder of a new file system, and gives its real path.
Result<std::string> prepare_folder(const std::string& folder) {
  PIF_TRY(check_name(folder));  // before it is made
  PIF_TRY(make_folder(folder, kOpenFolderMode));
  PIF_TRY_VALUE(std::string real, real_path(folder));
  PIF_TRY(check_name(real));
  PIF_TRY(check_free(real));
  return real;
}

// `cluster`: but for folder, uuids and stage.
Result<Cluster> write_new(const std::string& folder, Cluster cluster) {
  cluster.folder = folder;
  PIF_TRY(name_roots(cluster));
  cluster.stage = Stage::kNew;
  const std::string text = format_description(cluster);
  // Roots are as load_cluster() gives them.
  PIF_TRY_VALUE(cluster, parse_description(folder, text, cluster.own_host));
  cluster.folder_number = number_of(folder);
  PIF_TRY(check_own_folder(cluster));
  PIF_TRY(make_keys(folder, cluster.own_host));
  if (cluster.has_hosts()) PIF_TRY(write_own_host(folder, cluster.own_host));
  // The description is written last and never over another: of two who create at once, one succeeds.
  if (Status written = write_file(description_path(folder), text, kDescriptionMode, Existing::kKeep); !written)
    return written.error().code == Code::kExists ? fail(Code::kExists, folder + " holds a file system already")
                                                 : fail(std::move(written.error()));
  return cluster;
}

Status make_disk_folders(const std::vector<std::string>& disks, const std::string& id) {
  for (const std::string& disk : disks) PIF_TRY(make_disk_folder(disk, id));
  return {};
}

// Those that are empty: of a file system that could not be made.
void remove_disk_folders(const std::vector<std::string>& disks, const std::string& id) {
  for (const std::string& disk : disks) ::rmdir(disk_folder(disk, id).c_str());
}

}  // namespace

std::string Cluster::run_folder() const {
  const std::string inside = folder + "/run";
  const std::size_t longest = inside.size() + 1 + kDaemonNameMax + std::string_view(".sock").size();
  if (longest <= kSocketPathBytesMax) return inside;
  // A copy has the same id. So have two hosts that are only folders or namespaces of one machine.
  return fmt::format("/tmp/pif-{}-{:016x}", id, folder_number);
}

// The boot alone would not do: a machine may be cut into containers, which share nothing but the kernel.
std::uint64_t Cluster::machine() const {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat run {};
  if (!std::getline(file, boot) || ::stat(run_folder().c_str(), &run) != 0) return 0;
  const std::string all = fmt::format("{} {} {}", boot, run.st_dev, run.st_ino);
  return hash_bytes(std::as_bytes(std::span(all)));
}

std::optional<std::uint64_t> Cluster::own_machine() const {
  return has_hosts() ? std::optional(machine()) : std::nullopt;
}

std::string Cluster::unix_path(const std::string& daemon) const { return run_folder() + "/" + daemon + ".sock"; }

std::string Cluster::ipc_endpoint(const std::string& daemon) const {
  return "ipc://" + run_folder() + "/" + daemon + ".ipc";
}

proto::Endpoints Cluster::server_endpoints() const {
  proto::Endpoints endpoints;
  if (serves_here()) {
    endpoints.set_unix_path(unix_path("server"));
    endpoints.set_ipc(ipc_endpoint("server"));
  }
  if (has_hosts()) {
    const ServerEntry& server = servers.front();
    const auto key = load_host_key(*this, server.host);
    if (!key) return endpoints;
    if (serves_here()) endpoints.set_machine(machine());
    endpoints.set_tcp(tcp_endpoint(find_host(server.host)->address, server.port));
    endpoints.set_curve_key(*key);
    return endpoints;
  }
  if (tcp == TcpMode::kNone) return endpoints;
  const auto text = read_file(tcp_file(*this, "server"), kEndpointBytesMax);
  if (!text) return endpoints;
  const std::string line = text->substr(0, text->find('\n'));
  if (*text != line + "\n" + folder_line(*this)) return endpoints;  // a copy of another folder's file
  const auto space = line.find(' ');
  endpoints.set_tcp(line.substr(0, space));
  if (space != std::string::npos) endpoints.set_curve_key(line.substr(space + 1));
  return endpoints;
}

Status publish_tcp(const Cluster& cluster, const std::string& daemon, const proto::Endpoints& listening) {
  if (listening.tcp().empty() || cluster.has_hosts()) return {};
  std::string line = listening.tcp();
  if (!listening.curve_key().empty()) line += " " + listening.curve_key();
  return write_file(tcp_file(cluster, daemon), line + "\n" + folder_line(cluster), kDescriptionMode,
                    Existing::kReplace);
}

void clear_run_folder(const Cluster& cluster) {
  const std::string path = cluster.run_folder();
  if (check_run_folder(cluster)) ::unlink(tcp_file(cluster, "server").c_str());
  if (path.starts_with(cluster.folder + "/") || !check_run_folder(cluster)) return;
  std::vector<std::string> daemons = {"server"};
  for (const LfsEntry& lfs : cluster.lfss) daemons.push_back(lfs.name);
  for (const std::string& daemon : daemons) {
    for (const char* const end : {".sock", ".ipc", ".tcp"}) ::unlink((path + "/" + daemon + end).c_str());
  }
  ::rmdir(path.c_str());
}

std::vector<std::string> Cluster::private_folders() const {
  std::vector<std::string> folders = {folder + "/keys", run_folder(), server_folder()};
  for (const LfsEntry& lfs : lfss)
    if (is_here(lfs)) folders.push_back(lfs.root);
  return folders;
}

Result<net::ListenOptions> Cluster::listen_options(const std::string& daemon) const {
  PIF_TRY(make_folder(run_folder(), kOpenFolderMode));
  PIF_TRY(check_run_folder(*this));
  net::ListenOptions options;
  options.unix_path = unix_path(daemon);
  options.ipc = ipc_endpoint(daemon);
  if (tcp == TcpMode::kNone) return options;
  if (has_hosts()) {
    PIF_TRY(listen_for_hosts(*this, daemon, options));
    return options;
  }
  options.tcp = "tcp://127.0.0.1:0";
  options.insecure_loopback = tcp == TcpMode::kInsecureLoopback;
  if (!options.insecure_loopback) {
    PIF_TRY_VALUE(options.curve, load_curve(*this, "server"));
    options.key_folder = client_key_folder(folder);
  }
  return options;
}

std::string disk_folder(const std::string& disk, const std::string& id) {
  return (disk == "/" ? "" : disk) + "/pif-" + id;
}

Status make_disk_folder(const std::string& disk, const std::string& id) {
  const std::string path = disk_folder(disk, id);
  if (::mkdir(path.c_str(), kDiskFolderMode) != 0 && errno != EEXIST)
    return fail_errno(errno, "cannot make the folder " + path);
  return sync_folder(disk);
}

Result<Cluster> create_cluster(const std::string& folder, std::uint32_t count, std::uint32_t bevy, TcpMode tcp,
                               const std::vector<std::string>& disks) {
  if (count == 0 || count > kWidthMax)
    return fail(Code::kInvalid, fmt::format("a file system has 1 to {} LFSs, not {}", kWidthMax, count));
  PIF_TRY(check_bevy(count, bevy));
  PIF_TRY_VALUE(const std::string real, prepare_folder(folder));
  Cluster cluster;
  PIF_TRY_VALUE(cluster.id, random_id());
  cluster.bevy = bevy;
  cluster.tcp = tcp;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string where = disks.empty() ? real : disk_folder(disks[i % disks.size()], cluster.id);
    cluster.lfss.push_back({i + 1, fmt::format("lfs{}", i), fmt::format("{}/lfs{}", where, i), {}});
  }
  const std::string id = cluster.id;
  Status made = make_disk_folders(disks, id);
  auto written = made ? write_new(real, std::move(cluster)) : fail(std::move(made.error()));
  if (!written) remove_disk_folders(disks, id);
  return written;
}

Result<Cluster> create_cluster(const std::string& folder, Cluster plan) {
  if (!plan.has_hosts() || plan.own_host.empty())
    return fail(Code::kInvalid, "a file system of several hosts needs hosts, and this must be one of them");
  PIF_TRY(check_bevy(plan.lfss.size(), plan.bevy));
  plan.edition = std::max<std::uint64_t>(plan.edition, 1);
  PIF_TRY_VALUE(plan.id, random_id());
  PIF_TRY_VALUE(const std::string real, prepare_folder(folder));
  return write_new(real, std::move(plan));
}

Result<Cluster> load_cluster(const std::string& folder) {
  PIF_TRY_VALUE(const std::string real, real_path(folder));
  PIF_TRY(check_name(real));
  auto text = read_file(description_path(real), kDescriptionBytesMax);
  if (!text && text.error().code == Code::kNotFound)
    return fail(Code::kNotFound, fmt::format("{} has no pif.toml: it is not the folder of a file system", real));
  if (!text) return fail(std::move(text.error()));
  PIF_TRY_VALUE(const std::string own_host, read_own_host(real));
  PIF_TRY_VALUE(Cluster cluster, parse_description(real, *text, own_host));
  cluster.folder_number = number_of(real);
  PIF_TRY(check_own_folder(cluster));
  PIF_TRY(check_run_folder(cluster));
  return cluster;
}

Result<std::string> random_uuid() {
  if (::sodium_init() < 0) return fail(Code::kInternal, "libsodium could not start: no random numbers");
  std::array<std::uint8_t, 16> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  return hex_of(bytes);
}

Status name_roots(Cluster& cluster) {
  PIF_TRY_VALUE(cluster.directory, random_uuid());
  for (LfsEntry& lfs : cluster.lfss) {
    PIF_TRY_VALUE(lfs.uuid, random_uuid());
  }
  cluster.stage = Stage::kAdopting;
  return {};
}

Status check_ready(const Cluster& cluster) {
  if (cluster.stage == Stage::kReady) return {};
  return fail(Code::kInvalid,
              fmt::format("the folders that {0}/pif.toml names have not all been {1}: run `pif up {0}`", cluster.folder,
                          cluster.stage == Stage::kNew ? "made" : "taken over from an earlier release"));
}

Status save_cluster(const Cluster& cluster) {
  PIF_TRY(check_bevy(cluster.lfss.size(), cluster.bevy));
  const std::string text = format_description(cluster);
  // What could not be read again must not replace what can.
  PIF_TRY(parse_description(cluster.folder, text, cluster.own_host));
  return write_file(description_path(cluster.folder), text, kDescriptionMode, Existing::kReplace);
}

}  // namespace pif::cluster
