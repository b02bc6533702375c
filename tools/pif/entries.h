// What commands print of an entry, and how they walk folders.
#pragma once

#include <functional>
#include <string>

#include "pif/client/client.h"
#include "program.h"

namespace pif::cli {

Json json_of(const Format& format);
Json json_of(const Entry& entry, const std::string& path);

// Every entry of a folder, page by page, in byte order of their names.
[[nodiscard]] Status for_each_entry(Client& client, const std::string& folder,
                                    const std::function<Status(const Entry&)>& visit);
// Every entry below `folder`, a folder before what is in it. `path` is the entry's.
[[nodiscard]] Status walk(Client& client, const std::string& folder,
                          const std::function<Status(const std::string& path, const Entry&)>& visit);

// Whether `path` is a folder; false also if there is nothing of that name.
[[nodiscard]] Result<bool> is_folder(Client& client, const std::string& path);

// User and group as people write them; the number where there is no name.
std::string user_name(std::uint32_t uid);
std::string group_name(std::uint32_t gid);

}  // namespace pif::cli
