#include "keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <sodium.h>

#include "files.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

constexpr mode_t kKeyMode = 0400;
constexpr mode_t kKeyFolderMode = 0700;
constexpr std::size_t kCurveKeyBytes = 40;      // Z85
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

Status fill_keys(const std::string& keys) {
  PIF_TRY(make_folder(keys + "/clients", kKeyFolderMode));
  PIF_TRY(make_key(keys + "/cluster.key"));
  PIF_TRY_VALUE(const net::CurveKeys server, net::make_curve_keys());
  PIF_TRY(write_file(keys + "/server.curve", format_curve(server), kKeyMode, Existing::kKeep));
  PIF_TRY_VALUE(const net::CurveKeys client, net::make_curve_keys());
  PIF_TRY(write_file(fmt::format("{}/{}.curve", keys, kOwnerClient), format_curve(client), kKeyMode, Existing::kKeep));
  PIF_TRY_VALUE(const std::string line, client_line(client));
  return write_file(fmt::format("{}/clients/{}.pub", keys, kOwnerClient), line, kKeyMode, Existing::kKeep);
}

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

}  // namespace

Status make_keys(const std::string& folder) {
  const std::string keys = key_folder(folder);
  if (::access(keys.c_str(), F_OK) == 0) return {};
  if (::sodium_init() < 0) return fail(Code::kInternal, "libsodium could not start: no random numbers");
  std::string temporary = keys + ".XXXXXX";
  if (::mkdtemp(temporary.data()) == nullptr) return fail_errno(errno, "cannot make a folder for keys in " + folder);
  Status done = fill_keys(temporary);
  if (done) done = sync_folder(temporary);
  if (done && std::rename(temporary.c_str(), keys.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    done = fail_errno(errno, "cannot make " + keys);
  std::error_code ignored;
  std::filesystem::remove_all(temporary, ignored);
  return done ? sync_folder(folder) : done;
}

Result<ClusterKey> load_key(const Cluster& cluster) {
  const std::string path = key_folder(cluster.folder) + "/cluster.key";
  ClusterKey key;
  PIF_TRY_VALUE(const std::string bytes, read_file(path, key.bytes.size() + 1));
  PIF_TRY(check_private(path));
  if (bytes.size() != key.bytes.size())
    return fail(Code::kCorrupt, fmt::format("{} has not {} bytes: it is damaged, restore it", path, key.bytes.size()));
  std::memcpy(key.bytes.data(), bytes.data(), bytes.size());
  return key;
}

Result<net::CurveKeys> load_curve(const Cluster& cluster, const std::string& name) {
  const std::string path = key_folder(cluster.folder) + "/" + name + ".curve";
  PIF_TRY_VALUE(const std::string text, read_file(path, 4096));
  PIF_TRY(check_private(path));
  return parse_curve(path, text);
}

}  // namespace pif::cluster
