// pif.toml as text. docs/FORMAT.md "Cluster folder" has an example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cluster {

inline constexpr std::size_t kDescriptionBytesMax = 4u << 20;
inline constexpr std::size_t kDaemonNameMax = 15;    // bytes; run_folder() reckons with it
inline constexpr std::uint32_t kHostsFormat = 3;     // of pif.toml with hosts; without any it is kFormatVersion
inline constexpr std::uint32_t kSettingsFormat = 4;  // with any of kSettings, and with or without hosts

inline std::string description_path(const std::string& folder) { return folder + "/pif.toml"; }

// LFS roots inside the folder of their host are written relative to it, so that the folder can be moved. The text is
// the same on every host.
std::string format_description(const Cluster& cluster);
// `folder` is absolute; own_host: which host of the description this is, if it has any. Errors name the file, the line
// and the key.
[[nodiscard]] Result<Cluster> parse_description(const std::string& folder, std::string_view text,
                                                const std::string& own_host = {});
// A check that any description must satisfy, wherever it comes from.
[[nodiscard]] Status check_bevy(std::size_t lfs_count, std::uint32_t bevy);

}  // namespace pif::cluster
