// One file of the file system becomes another one.
#pragma once

#include <string>

#include "command/program.h"
#include "pif/client/client.h"

namespace pif::cli {

struct CopyOptions {
  bool no_clobber = false;  // kExists instead of replacing a file
  bool preserve = false;    // owner and group, too, as far as the user may set them
};

// Copies records, format, layout, mode and attributes of `from`, whose entry is `entry`; durable when it returns, or
// nothing is there. Nobody may write to `from` meanwhile (kBusy names who does). A large file is copied by pif-copy:
// every LFS does its part.
[[nodiscard]] Status copy_file(const Program& program, Client& client, const Entry& entry, const std::string& from,
                               const std::string& to, const CopyOptions& options);

// The first `records` records, in order and in bounded memory; `copy`, of the same format, is being created.
[[nodiscard]] Status copy_records(File& source, File& copy, std::uint64_t records);

// Owner, group and mode of `entry` for what is at `path`: as far as the user may set them.
[[nodiscard]] Status copy_owner(Client& client, const Entry& entry, const std::string& path);

}  // namespace pif::cli
