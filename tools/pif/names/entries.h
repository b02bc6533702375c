// How commands print entries, and how they walk folders.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "command/failures.h"
#include "command/program.h"
#include "pif/client/client.h"

namespace pif::cli {

// "folder", "file", "link"; and the letter that ls(1) has for it: "d", "-", "l".
std::string_view kind_word(EntryKind kind);
char kind_letter(EntryKind kind);
// Behind a name that is shown: "/" of a folder, " -> TARGET" of a link.
std::string name_end(const Entry& entry);

Json json_of(const Format& format);
Json json_of(const Entry& entry, const std::string& path);

// Whether the first comes before the second. None: byte order of names.
using EntryOrder = std::function<bool(const Entry&, const Entry&)>;

// Every entry of a folder: page by page, or, in another order than that of names, when all are there.
[[nodiscard]] Status for_each_entry(Client& client, const std::string& folder,
                                    const std::function<Status(const Entry&)>& visit, const EntryOrder& order = {});
// Every entry of the pages that `page` gives, by the name after which they begin.
[[nodiscard]] Status for_each_entry(const std::function<Result<ListPage>(const std::string& after)>& page,
                                    const std::function<Status(const Entry&)>& visit);
// Whether an entry, and all below it, is left out.
using EntryFilter = std::function<bool(const std::string& path)>;
// Every entry below `folder`, a folder before what is in it. `path` is the entry's. A folder below it that cannot be
// listed is passed over, and added to the failures; what `visit` returns ends the walk.
[[nodiscard]] Status walk(Client& client, const std::string& folder, Failures& failures,
                          const std::function<Status(const std::string& path, const Entry&)>& visit,
                          const EntryOrder& order = {}, const EntryFilter& is_left_out = {});
// The error with the path in its text, in the place of the file's number, or in front if it is not there already.
Error at(const std::string& path, Error error);

// Whether `path` is a folder; false also if there is nothing of that name.
[[nodiscard]] Result<bool> is_folder(Client& client, const std::string& path);

// User and group as people write them; the number where there is no name.
std::string user_name(std::uint32_t uid);
std::string group_name(std::uint32_t gid);
// The number of a user or group who is named, or the number itself. kInvalid if there is no such name.
[[nodiscard]] Result<std::uint32_t> user_id(const std::string& name);
[[nodiscard]] Result<std::uint32_t> group_id(const std::string& name);

}  // namespace pif::cli
