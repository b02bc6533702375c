// An LFS root: which file system and node it belongs to (lfs.toml), and its folders. docs/FORMAT.md "LFS root".
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pif/component/storage.h"
#include "pif/kv/store.h"

namespace pif::lfs {

struct RootIdentity {
  std::string cluster;
  std::uint32_t node = 0;
  std::string name;
};

// What lfs.toml says. kNotFound if there is none, kVersion for a newer format, kInvalid naming the line.
[[nodiscard]] Result<RootIdentity> read_identity(component::Storage& storage, const std::string& root);
// Makes a new root's folders and lfs.toml, or checks that an existing one is ours: kInvalid says whose it is.
[[nodiscard]] Status claim_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                                const RootIdentity& ours);

inline std::string data_folder(const std::string& root) { return root + "/data"; }
inline std::string scratch_folder(const std::string& root) { return root + "/scratch"; }
inline std::string log_path(const std::string& root) { return root + "/log/redo.log"; }

// Every file under data/: visit(folder's path, file's name).
[[nodiscard]] Status each_data_file(component::Storage& storage, const std::string& root,
                                    const std::function<Status(const std::string& folder, const std::string& name)>& visit);

}  // namespace pif::lfs
