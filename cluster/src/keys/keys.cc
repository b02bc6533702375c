#include "keys/keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <sodium.h>

#include "files/files.h"
#include "files/user_folders.h"
#include "pif/cluster/cluster.h"
#include "pif/net/z85.h"

namespace pif::cluster {
namespace {

constexpr mode_t kKeyMode = 0400;
constexpr mode_t kPublicKeyMode = 0444;
constexpr mode_t kKeyFolderMode = 0700;
// Of several hosts: users of other hosts than the server's must learn its public key.
constexpr mode_t kHostsKeyFolderMode = 0711;
constexpr mode_t kPublicKeyFolderMode = 0755;
constexpr std::size_t kCurveKeyBytes = 40;  // Z85
constexpr std::size_t kPublicKeyBytesMax = 4096;
constexpr const char* kOwnerClient = "client";  // the key pair that the file system's owner connects with

Status make_key(const std::string& path) {
  ClusterKey key;
  randombytes_buf(key.bytes.data(), key.bytes.size());
  const std::string_view bytes(reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size());
  const Status done = write_file(path, bytes, kKeyMode, Existing::kKeep);
  sodium_memzero(key.bytes.data(), key.bytes.size());
  return done;
}

std::string format_curve(const net::CurveKeys& keys) {
  return fmt::format("public {}\nsecret {}\n", keys.public_key, keys.secret_key);
}

Result<net::CurveKeys> parse_curve(const std::string& path, const std::string& text) {
  net::CurveKeys keys;
  if (text.size() == 2 * (7 + kCurveKeyBytes + 1)) {
    keys.public_key = text.substr(7, kCurveKeyBytes);
    keys.secret_key = text.substr(7 + kCurveKeyBytes + 1 + 7, kCurveKeyBytes);
  }
  if (keys.public_key.empty() || format_curve(keys) != text)
    return fail(Code::kCorrupt, path + " is not a CURVE key file: make the keys anew with `pif init`, or restore it");
  return keys;
}

// "Z85KEY UID GID" of a host's daemons. They run as the same user everywhere.
std::string host_line(const net::CurveKeys& keys) {
  return fmt::format("{} {} {}\n", keys.public_key, ::geteuid(), ::getegid());
}

// "Z85KEY UID GID[,GID...]" of this process's user, as net::ListenOptions::key_folder has it.
Result<std::string> client_line(const net::CurveKeys& keys) {
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> groups(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (count < 0 || ::getgroups(count, groups.data()) < 0) return fail_errno(errno, "cannot read this process's groups");
  std::string line = fmt::format("{} {} {}", keys.public_key, ::geteuid(), ::getegid());
  for (const gid_t group : groups)
    if (group != ::getegid()) line += fmt::format(",{}", group);
  return line + "\n";
}

// The pair of the daemons: of the one machine, or of a host, whose public half the other hosts must have.
Status fill_daemon_keys(const std::string& keys, const std::string& own_host) {
  PIF_TRY_VALUE(const net::CurveKeys pair, net::make_curve_keys());
  if (own_host.empty()) return write_file(keys + "/server.curve", format_curve(pair), kKeyMode, Existing::kKeep);
  PIF_TRY(write_file(keys + "/host.curve", format_curve(pair), kKeyMode, Existing::kKeep));
  PIF_TRY(make_folder(keys + "/hosts", kPublicKeyFolderMode));
  PIF_TRY(write_file(fmt::format("{}/hosts/{}.pub", keys, own_host), host_line(pair), kPublicKeyMode, Existing::kKeep));
  if (::chmod(keys.c_str(), kHostsKeyFolderMode) != 0) return fail_errno(errno, "cannot open " + keys);
  return {};
}

Status fill_keys(const std::string& keys, const std::string& own_host) {
  PIF_TRY(make_folder(keys + "/clients", kKeyFolderMode));
  PIF_TRY(make_key(keys + "/cluster.key"));
  PIF_TRY(fill_daemon_keys(keys, own_host));
  PIF_TRY_VALUE(const net::CurveKeys client, net::make_curve_keys());
  PIF_TRY(write_file(fmt::format("{}/{}.curve", keys, kOwnerClient), format_curve(client), kKeyMode, Existing::kKeep));
  PIF_TRY_VALUE(const std::string line, client_line(client));
  return write_file(fmt::format("{}/clients/{}.pub", keys, kOwnerClient), line, kKeyMode, Existing::kKeep);
}

Result<net::CurveKeys> load_pair(const std::string& path) {
  PIF_TRY_VALUE(const std::string text, read_file(path, 4096));
  PIF_TRY(check_private(path));
  return parse_curve(path, text);
}

}  // namespace

// A key that others can read protects nothing.
Status check_private(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail_errno(errno, "cannot look at " + path);
  if ((status.st_mode & 077) != 0)
    return fail(Code::kPermission,
                fmt::format("{} can be read by others than its owner: chmod it to 0400, and make new keys if "
                            "somebody may have read it",
                            path));
  return {};
}

Status make_keys(const std::string& folder, const std::string& own_host) {
  const std::string keys = key_folder(folder);
  if (::access(keys.c_str(), F_OK) == 0) return {};
  if (::sodium_init() < 0) return fail(Code::kInternal, "libsodium could not start: no random numbers");
  std::string temporary = keys + ".XXXXXX";
  if (::mkdtemp(temporary.data()) == nullptr) return fail_errno(errno, "cannot make a folder for keys in " + folder);
  Status done = fill_keys(temporary, own_host);
  if (done) done = sync_folder(temporary);
  if (done && std::rename(temporary.c_str(), keys.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    done = fail_errno(errno, "cannot make " + keys);
  std::error_code ignored;
  std::filesystem::remove_all(temporary, ignored);
  return done ? sync_folder(folder) : done;
}

Result<ClusterKey> load_key(const Cluster& cluster) {
  PIF_TRY_VALUE(const KeyFile keys, load_key_file(cluster));
  return keys.signing;
}

Result<net::CurveKeys> load_curve(const Cluster& cluster, const std::string& name) {
  return load_pair(key_folder(cluster.folder) + "/" + name + ".curve");
}

std::string user_key_path(const Cluster& cluster) {
  const std::string own = user_folder("XDG_CONFIG_HOME", ".config");
  return own.empty() ? own : fmt::format("{}/keys/{}.curve", own, cluster.id);
}

Result<net::CurveKeys> load_client_keys(const Cluster& cluster) {
  const std::string own = user_key_path(cluster);
  if (!own.empty() && ::access(own.c_str(), F_OK) == 0) return load_pair(own);
  auto keys = load_curve(cluster, kOwnerClient);
  if (keys || (keys.error().code != Code::kPermission && keys.error().code != Code::kNotFound)) return keys;
  return fail(Code::kPermission,
              fmt::format("you have no key of this file system, which tcp needs: ask its owner for one (pif user add), "
                          "and put it into {}",
                          own.empty() ? "your home" : own));
}

Status check_server_key(const Cluster& cluster) {
  if (cluster.serves_here()) return {};
  PIF_TRY(load_host_key(cluster, cluster.servers.front().host));
  return {};
}

Result<std::string> load_host_key(const Cluster& cluster, const std::string& host) {
  const std::string path = host_key_path(cluster.folder, host);
  const auto what_to_do = [&](const std::string& why) {
    return fail(Code::kPermission,
                fmt::format("{}: it has the key that {} shows, and is on every host (pif up brings it)", why, host));
  };
  auto text = read_file(path, kPublicKeyBytesMax);
  if (!text) return what_to_do(text.error().text);
  if (text->size() <= kCurveKeyBytes || (*text)[kCurveKeyBytes] != ' ') return what_to_do(path + " has no key in it");
  return text->substr(0, kCurveKeyBytes);
}

Result<net::CurveKeys> make_host_keys(const Cluster& cluster, const std::string& host) {
  PIF_TRY(check_host_name(host));
  PIF_TRY_VALUE(net::CurveKeys pair, net::make_curve_keys());
  PIF_TRY_VALUE(const net::CurveKeys owner, owner_pair_of(pair));
  PIF_TRY_VALUE(const std::string line, client_line(owner));
  PIF_TRY(write_file(owner_key_path(cluster.folder, host), line, kKeyMode, Existing::kReplace));
  PIF_TRY(write_file(host_key_path(cluster.folder, host), host_line(pair), kPublicKeyMode, Existing::kReplace));
  return pair;
}

Result<net::CurveKeys> owner_pair_of(const net::CurveKeys& host) {
  static constexpr std::string_view kPurpose = "pif: the owner on this host";
  static_assert(kPurpose.size() >= crypto_generichash_KEYBYTES_MIN);
  std::array<std::uint8_t, crypto_scalarmult_SCALARBYTES> from{}, secret{};
  std::array<std::uint8_t, crypto_scalarmult_BYTES> shown{};
  if (const Status read = net::z85_decode(host.secret_key, from); !read)
    return fail(read.error().code, "a host's pair is no CURVE pair: " + read.error().text);
  crypto_generichash(secret.data(), secret.size(), from.data(), from.size(),
                     reinterpret_cast<const std::uint8_t*>(kPurpose.data()), kPurpose.size());
  if (crypto_scalarmult_base(shown.data(), secret.data()) != 0)
    return fail(Code::kInternal, "libsodium cannot make a public key");
  PIF_TRY_VALUE(std::string shown_text, net::z85_encode(shown));
  PIF_TRY_VALUE(std::string secret_text, net::z85_encode(secret));
  net::CurveKeys pair{std::move(shown_text), std::move(secret_text)};
  sodium_memzero(from.data(), from.size());
  sodium_memzero(secret.data(), secret.size());
  return pair;
}

std::string format_keys(const net::CurveKeys& keys) { return format_curve(keys); }

}  // namespace pif::cluster
