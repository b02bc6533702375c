// A file system's description on this machine: the folder that `pif up DIR` makes, and how its parts are found.
//
//   DIR/pif.toml        cluster id, server, LFSs (docs/FORMAT.md "Cluster folder")
//   DIR/host            of a file system of several hosts: which of pif.toml's this is, one line
//   DIR/keys/           cluster.key (32 random bytes, MAC key), server.curve, client.curve ("public Z85\nsecret
//                       Z85\n"), clients/NAME.pub (net::ListenOptions::key_folder); folders 0700, files 0400.
//                       On several hosts: host.curve instead of server.curve, different on each; hosts/NAME.pub
//   DIR/run/            sockets (in /tmp/pif-ID-NUMBER instead if their paths would be too long for a Unix socket)
//   DIR/server/         the PIF Server's directory, log and lock
//   DIR/lfs0/ ...       one LFS root each
//
// Files change in one step, so that readers see them as they were or as they are now. Errors that name no code here are
// the file system's (base/result.h: code_from_errno). Thread-safety: a Cluster is a value; functions may be called from
// any thread, but start_logging().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pif/base/capability.h"
#include "pif/base/result.h"
#include "pif/net/messenger.h"
#include "pif/net/real_messenger.h"

namespace pif::cluster {

struct LfsEntry {
  std::uint32_t id = 0;  // NodeId, from 1
  std::string name;      // "lfs0"
  std::string root;      // absolute, on its host
  std::string uuid;      // of the root; 32 hex digits
  // In a file system of several hosts:
  std::string host{};      // a HostEntry's name
  std::uint16_t port = 0;  // where it listens for other hosts
};

// One host of a file system of several.
struct HostEntry {
  std::string name;     // a-z, 0-9, - and _; never a path
  std::string address;  // what other hosts connect to: a name, or an IPv4 or IPv6 address (without brackets)
  std::string bind;     // where its daemons listen; empty: address
  std::string folder;   // absolute: this file system's folder there
};

// Where a PIF Server runs, in a file system of several hosts.
struct ServerEntry {
  std::uint32_t id = 0;
  std::string host;
  std::uint16_t port = 0;
};

// Whether the folders that a description names have been made. Only then is one that is not there an error, and not a
// new one.
enum class Stage : std::uint8_t {
  kBefore,    // written by an earlier release (format 1): roots have no uuids yet
  kNew,       // a folder that is not there, or is empty, is made
  kAdopting,  // roots of an earlier release are taken over
  kReady,
};

enum class TcpMode : std::uint8_t { kNone, kCurve, kInsecureLoopback };

struct Cluster {
  std::string folder;               // absolute DIR
  std::uint64_t folder_number = 0;  // tells DIR from its copies, and stays when it is renamed; 0: not known
  std::string id;                   // 16 hex digits
  std::uint32_t bevy = 0;           // default bevy size of new files; 0: none
  TcpMode tcp = TcpMode::kNone;
  Stage stage = Stage::kReady;
  std::string directory;  // uuid of the server's directory
  std::vector<LfsEntry> lfss;
  // Settings of a file system's owner (format 4, if any is not as here); kSettings has names and values.
  bool grants = true;                 // workers may open folders that their user names
  bool worker_memory_bounded = true;  // not: for tools with sanitizers
  // In a file system of several hosts (format 3):
  std::uint64_t edition = 0;         // of pif.toml; where two hosts differ, the higher one is right
  std::string worker_ports;          // where workers listen for workers of other hosts: "7500-7999", or "any"
  std::vector<HostEntry> hosts;      // empty: everything is on this machine (format 2)
  std::vector<ServerEntry> servers;  // one
  std::string own_host;              // which of the hosts this is; empty if there are none

  bool has_hosts() const { return !hosts.empty(); }         // whether this is a file system of several hosts
  const HostEntry* find_host(std::string_view name) const;  // nullptr: there is none; valid while `hosts` is unchanged
  // Whether this host runs it.
  bool is_here(const LfsEntry& lfs) const { return hosts.empty() || lfs.host == own_host; }
  bool serves_here() const;  // whether this host runs the PIF Server
  // The folder of `host`; a host that there is not: empty.
  std::string folder_on(std::string_view host) const;

  // DIR/run, or the folder in /tmp where paths of sockets in DIR would be too long. It may not be there yet.
  std::string run_folder() const;
  // Equal for all daemons that share a run folder on one machine since it was booted; 0: it cannot be found out.
  std::uint64_t machine() const;
  // As net::MessengerOptions::machine has it: of several hosts machine(), else nothing, for all are here.
  std::optional<std::uint64_t> own_machine() const;
  // Where the server's directory is; an LFS's root is in its LfsEntry.
  std::string server_folder() const { return folder + "/server"; }
  // Sockets of a daemon ("server", "lfs0"), in run_folder(): a path, and "ipc://" with one.
  std::string unix_path(const std::string& daemon) const;
  std::string ipc_endpoint(const std::string& daemon) const;
  // The server's endpoints as this machine reaches them; its tcp endpoint is in run/server.tcp once it listens
  // (publish_tcp). With several hosts: as pif.toml says, with the key of the server's host; without one no tcp.
  proto::Endpoints server_endpoints() const;
  // Folders of this host that no worker's grant may reach: keys, sockets, the server's directory, LFSs' roots.
  std::vector<std::string> private_folders() const;
  // How a daemon listens, and with which keys. Makes the run folder if it is not there; kPermission if somebody else
  // did.
  Result<net::ListenOptions> listen_options(const std::string& daemon) const;
};

// A key of pif.toml that may be set at any time, and what it can say; it says the first where it is not there.
struct Setting {
  std::string_view key, normal, other;
  bool Cluster::*is_normal;
};
inline constexpr std::array<Setting, 2> kSettings{{
    {"grants", "any", "none", &Cluster::grants},
    {"worker-memory", "half", "none", &Cluster::worker_memory_bounded},
}};

// Makes DIR (and folders above it) with keys and pif.toml for `count` LFSs, which are kNew. kExists if DIR holds a file
// system already; kInvalid for a count below 1 or a bevy that does not fit it. disks: absolute folders that are there;
// the LFSs go round over them, and disk_folder() of each is made. Empty: roots are in DIR.
[[nodiscard]] Result<Cluster> create_cluster(const std::string& folder, std::uint32_t count, std::uint32_t bevy,
                                             TcpMode tcp, const std::vector<std::string>& disks = {});
// DISK/pif-ID: where the file system's roots on a disk are. It is made once, so it tells a disk that is mounted from
// the folder where it is not.
std::string disk_folder(const std::string& disk, const std::string& id);
// Makes it (mode 0700), unless it is there, and its name durable. The disk's folder must be there.
[[nodiscard]] Status make_disk_folder(const std::string& disk, const std::string& id);
// The same for a file system of several hosts: makes DIR on this host, `plan.own_host`. The folder, id, uuids and stage
// of `plan` are filled in here; an edition of 0 becomes 1. Besides the above kInvalid for a plan that load_cluster()
// would refuse.
[[nodiscard]] Result<Cluster> create_cluster(const std::string& folder, Cluster plan);
// kNotFound if there is no pif.toml, kVersion for a newer format, kInvalid naming line and key for anything else, such
// as FOLDER/host if that does not say which host of pif.toml this is.
[[nodiscard]] Result<Cluster> load_cluster(const std::string& folder);
// Replaces DIR/pif.toml in one step, durable. kInvalid for a description that load_cluster() would refuse: the old one
// stays.
[[nodiscard]] Status save_cluster(const Cluster& cluster);
// kAdopting, and every root gets a uuid; for a description of kBefore.
[[nodiscard]] Status name_roots(Cluster& cluster);
// 32 hex digits. kInternal: the machine gives no random numbers.
[[nodiscard]] Result<std::string> random_uuid();
// kInvalid, with what to do, unless it is kReady.
[[nodiscard]] Status check_ready(const Cluster& cluster);

// kInvalid, with what is wrong, unless it may be a host's name or a host's address.
[[nodiscard]] Status check_host_name(std::string_view name);
[[nodiscard]] Status check_address(std::string_view address);
// Writes DIR/host, durable. kInvalid: no name of a host.
[[nodiscard]] Status write_own_host(const std::string& folder, std::string_view name);

// The daemon ("server", "lfs0") listens as this host's, and speaks with the host's keys. Refused connections are
// logged. kBusy, kInvalid, kPermission and the like name the host, what cannot be had, and what to do.
[[nodiscard]] Result<std::unique_ptr<net::Messenger>> start_listening(const Cluster& cluster,
                                                                      const std::string& daemon);

// Writes RUN/<daemon>.tcp with what the daemon listens on (net::listening): "tcp://127.0.0.1:PORT [Z85 PUBLIC KEY]",
// and DIR's number. Read in a copy of DIR, the file says nothing.
// The server calls it once it listens; does nothing without tcp, or where pif.toml says it.
[[nodiscard]] Status publish_tcp(const Cluster& cluster, const std::string& daemon, const proto::Endpoints& listening);

// ---- what all hosts of a file system have alike ----
// One of DIR's files: "pif.toml", "keys/hosts/NAME.pub", "keys/clients/NAME.pub".
struct SharedFile {
  std::string name;
  std::string content;
};
// All of them. kTooLarge: more than goes into a message.
[[nodiscard]] Result<std::vector<SharedFile>> read_shared_files(const Cluster& cluster);
// Takes what the server's host has, if it is a newer edition than DIR/pif.toml: each file in one step, durable,
// pif.toml last; keys that are not among them are removed. The description that is there then. kInvalid, with nothing
// changed: other files, no description of this file system, or none that has this host.
[[nodiscard]] Result<Cluster> take_shared_files(const std::string& folder, std::span<const SharedFile> files);
// Makes DIR of another host of the file system, or completes it: shared files, who it is, keys. kExists: DIR is
// another file system's, or another host's.
struct HostFiles {
  std::string host;
  std::vector<SharedFile> shared;
  std::string cluster_key;             // bytes
  std::string host_pair, client_pair;  // as format_keys() has them; client_pair: the owner's; empty: none
};
[[nodiscard]] Result<Cluster> receive_host(const std::string& folder, const HostFiles& files);  // see above
// The same from the other side: what `host` of this file system needs, which has `pair`.
[[nodiscard]] Result<HostFiles> files_for_host(const Cluster& cluster, const std::string& host,
                                               const net::CurveKeys& pair);

// The description of a folder, for who runs long: looks again when the file has changed.
class Watched {
 public:
  explicit Watched(Cluster cluster);  // as it was loaded a moment ago
  // Whether pif.toml is another one now, and can be read; then current() is that. One that cannot be read is logged,
  // once. Looks at the file's time: cheap.
  bool changed();
  const Cluster& current() const { return cluster_; }

 private:
  Cluster cluster_;
  std::int64_t seen_ns_ = 0;
};

// For a file system that is down: removes the file that says where the server listens on tcp, for somebody else may
// listen there later. Removes the folder of its sockets, with what killed daemons have left there, if it is not in DIR
// and nothing else is in it.
void clear_run_folder(const Cluster& cluster);

[[nodiscard]] Result<ClusterKey> load_key(const Cluster& cluster);  // daemons only: 0400
// "server", "client"; of several hosts "host", "client".
[[nodiscard]] Result<net::CurveKeys> load_curve(const Cluster& cluster, const std::string& name);
// The pair that this user's programs connect with: user_key_path(), else the owner's "client". kPermission: he has
// none.
[[nodiscard]] Result<net::CurveKeys> load_client_keys(const Cluster& cluster);
// Where a user who is not the owner keeps his pair: ~/.config/pif/keys/ID.curve; empty without a home.
std::string user_key_path(const Cluster& cluster);
// kPermission, with what to do, if the server is on another host whose key is not here.
[[nodiscard]] Status check_server_key(const Cluster& cluster);
// The key that daemons of `host` show, in Z85. kPermission: it is not there, or cannot be read.
[[nodiscard]] Result<std::string> load_host_key(const Cluster& cluster, const std::string& host);
// A new pair for a host's daemons, and one for the owner there: keys/hosts/NAME.pub and keys/clients/host-NAME.pub are
// written here, or replaced, and shut the host out when they are gone. The secrets go there by files_for_host().
[[nodiscard]] Result<net::CurveKeys> make_host_keys(const Cluster& cluster, const std::string& host);
std::string format_keys(const net::CurveKeys& keys);

// The folder of the file system meant: `named` (--pif) if not empty, else $PIF, else pif.toml here or above (of the
// user himself or root: others' are passed over), else the user's default. kNotFound says all of that.
[[nodiscard]] Result<std::string> find_cluster(const std::string& named);
// The source of its name.
enum class FoundBy : std::uint8_t { kNamed, kEnvironment, kCurrentFolder, kDefault };
struct FoundCluster {
  std::string folder;
  FoundBy by = FoundBy::kNamed;
};
// find_cluster(), and what named it.
[[nodiscard]] Result<FoundCluster> look_up_cluster(const std::string& named);
// Makes `folder` the user's default if there is none, or if its file system is gone.
[[nodiscard]] Status offer_default(const std::string& folder);

// The folders of the file systems that the user has started or used on this machine, and his default: a file under
// $XDG_STATE_HOME or
// ~/.local/state remembers them. Some may be gone.
[[nodiscard]] Result<std::vector<std::string>> known_clusters();
// It is among them from now on; again, too. Nothing happens for a user without a home. kInvalid: a line break in its
// name.
[[nodiscard]] Status remember_cluster(const std::string& folder);
// Neither known nor the default any more.
[[nodiscard]] Status forget_cluster(const std::string& folder);
// The folder that the user's default names; empty if there is none.
std::string default_cluster();

// A daemon's exclusive lock on its folder. Calls `lock` again while it says kBusy, for less than a second: who looks
// whether a daemon runs (pif status) has the lock for a moment, and that is no reason not to start. Gives what `lock`
// said last. Blocks; for main functions only.
[[nodiscard]] Status lock_patiently(const std::function<Status()>& lock);

// ---- folders of daemons that are not in DIR ----
// A copy of DIR names the same ones. So each bears the name of the DIR whose daemon had it last: FOLDER/used-by.

// For the daemon that holds the lock of `folder`: writes DIR there, if it is not in DIR.
[[nodiscard]] Status note_user(const Cluster& cluster, const std::string& folder);
// The DIR that used it last; empty: nobody did, it is in its DIR, or an earlier release used it.
std::string last_user_of(const std::string& folder);
// The folder of another file system that is there, names `folder`, and had it last; empty: it is free for `cluster`.
std::string other_user_of(const Cluster& cluster, const std::string& folder);
// kExists, naming both, if there is one.
[[nodiscard]] Status check_unshared(const Cluster& cluster, const std::string& folder);
// Whether it is in DIR, whatever links lead there, or was used by DIR last.
bool is_own_folder(const Cluster& cluster, const std::string& folder);

// Log of a daemon: one line per event, to stderr (which `pif up` points at FOLDER/<daemon>.log). Returns nothing to
// keep; call once in main.
void start_logging(const std::string& daemon, bool verbose);

}  // namespace pif::cluster
