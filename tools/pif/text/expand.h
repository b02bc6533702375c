// Patterns in paths of the file system: * ? [...], as a shell understands them, asked of the server's listing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pif/client/client.h"

namespace pif::cli {

// Whether the name matches the pattern (fnmatch(3); a character is one of UTF-8). kHide: a name that begins with a dot
// matches only a pattern that does.
enum class Dots : std::uint8_t { kHide, kShow };
bool matches(const std::string& pattern, const std::string& name, Dots dots);
// The same for a path, whose slashes match only slashes of the pattern; dots are like any other character.
bool matches_path(const std::string& pattern, const std::string& path);

// In place of each path with a pattern come the paths that match it, in order of names. One that is the name of an
// entry as it stands means that entry, and one that matches nothing stays as it is: whatever looks for it says that it
// is not there. A slash at the end of a path matches folders only; it goes where there is one, and stays else: whatever
// looks for the path says that it is a file.
[[nodiscard]] Status expand(Client& client, std::vector<std::string>& paths);

// Every entry of a folder whose name begins so, page by page; does not list what comes before them.
[[nodiscard]] Status for_each_with_prefix(Client& client, const std::string& folder, const std::string& prefix,
                                          const std::function<Status(const Entry&)>& visit);

}  // namespace pif::cli
