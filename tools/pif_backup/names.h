// The names of a backup: what each entry of the file system is, without its records. The archive "names" has them all,
// a folder before what is in it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backup.pb.h"
#include "backup_archive.h"
#include "pif/base/format.h"
#include "pif/client/client.h"

namespace pif::backup {

message::NamedEntry named_entry(const std::string& path, const Entry& entry);
// kCorrupt, naming the entry: no file can be so.
[[nodiscard]] Result<Format> format_of(const message::NamedEntry& named);
[[nodiscard]] Result<parity::Layout> layout_of(const message::NamedEntry& named);
Striping striping_of(const message::NamedEntry& named);

struct Names {
  message::ArchiveHead head;
  std::vector<message::NamedEntry> entries;
};
// Both name FOLDER's archive in their errors. The head has no version yet.
[[nodiscard]] Status write_names(const std::string& folder, Names names);
// kVersion: a newer program made it; kCorrupt: cut or damaged; kNotFound: FOLDER has no backup.
[[nodiscard]] Result<Names> read_names(const std::string& folder);

}  // namespace pif::backup
