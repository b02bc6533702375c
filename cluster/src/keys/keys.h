// The key folder of a file system: what is in it and how it is made.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pif/base/result.h"
#include "pif/cluster/key_file.h"
#include "pif/net/real_messenger.h"

namespace pif::cluster {

inline std::string key_folder(const std::string& folder) { return folder + "/keys"; }
inline std::string cluster_key_path(const std::string& folder) { return key_folder(folder) + "/cluster.key"; }
// Public keys of CURVE clients that may connect.
inline std::string client_key_folder(const std::string& folder) { return key_folder(folder) + "/clients"; }

// Whether keys/clients/NAME.pub may be: 1 to kUserNameMax of letters, digits and - _ . @, and no - or . first.
inline constexpr std::size_t kUserNameMax = 64;
bool is_user_name(std::string_view name);

// Public keys of the daemons of each host.
inline std::string host_key_folder(const std::string& folder) { return key_folder(folder) + "/hosts"; }
inline std::string host_key_path(const std::string& folder, const std::string& host) {
  return host_key_folder(folder) + "/" + host + ".pub";
}

// Makes FOLDER/keys with all keys, in one step: it is there whole or not at all. Keys that are there already stay.
// own_host: of a file system of several hosts.
[[nodiscard]] Status make_keys(const std::string& folder, const std::string& own_host);
// kPermission if others than its owner can read it.
[[nodiscard]] Status check_private(const std::string& path);
// load_key_file() by folder.
[[nodiscard]] Result<KeyFile> read_key_file(const std::string& folder);
// Whether both have a key in common: they are of one file system, and one is not far behind the other.
bool share_a_key(const KeyFile& a, const KeyFile& b);

// Public keys of the file system's owner on another host; with the host's goes what was done with them.
inline std::string owner_key_path(const std::string& folder, const std::string& host) {
  return client_key_folder(folder) + "/host-" + host + ".pub";
}
// The pair that the owner has on the host with this pair. It follows from that, so that nobody need keep it until the
// host gets it.
[[nodiscard]] Result<net::CurveKeys> owner_pair_of(const net::CurveKeys& host);

}  // namespace pif::cluster
