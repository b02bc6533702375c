// An LFS root: which file system and node it belongs to (lfs.toml), and its folders. docs/FORMAT.md "LFS root".
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pif/component/storage.h"
#include "pif/kv/store.h"
#include "pif/lfs/lfs.h"

namespace pif::lfs {

// Reads lfs.toml. kNotFound if there is none, kVersion for another format, kInvalid naming the line.
[[nodiscard]] Result<RootIdentity> read_identity(component::Storage& storage, const std::string& root);
// Whether root and catalogue are ours, and the one belongs to the other: kNotFound, kInvalid, kCorrupt, kVersion say
// what is wrong. Makes the folders of a root that are missing.
[[nodiscard]] Status claim_root(component::Storage& storage, kv::Store& catalogue, const std::string& root,
                                const RootIdentity& ours);

// A root of an earlier release becomes one of this: its format is raised in lfs.toml, then in the catalogue, durably.
// Older programs refuse it from then on. Nothing happens to one that is so far. May be interrupted and done again.
[[nodiscard]] Status raise_root(component::Storage& storage, kv::Store& catalogue, const std::string& root);

inline std::string data_folder(const std::string& root) { return root + "/data"; }
inline std::string scratch_folder(const std::string& root) { return root + "/scratch"; }
inline std::string programs_folder(const std::string& root) { return root + "/programs"; }
inline std::string log_folder(const std::string& root) { return root + "/log"; }
inline std::string older_log_path(const std::string& root) { return root + "/log/redo.log"; }

// Every file under data/: visit(folder's path, file's name).
[[nodiscard]] Status each_data_file(
    component::Storage& storage, const std::string& root,
    const std::function<Status(const std::string& folder, const std::string& name)>& visit);

}  // namespace pif::lfs
