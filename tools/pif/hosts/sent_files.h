// The files that a host is given, as they travel on the standard input of `pif host receive`.
#pragma once

#include <string>
#include <string_view>

#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

inline constexpr std::size_t kSentBytesMax = 16u << 20;

// With an empty `host` it is what all hosts have alike, without keys of one.
[[nodiscard]] Result<std::string> pack_files(const cluster::HostFiles& files);
// kInvalid: it is something else, or not all of it.
[[nodiscard]] Result<cluster::HostFiles> unpack_files(std::string_view packed);

}  // namespace pif::cli
