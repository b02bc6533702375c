// Common options of `put -r` and `get -r`: files to leave out, and files that are there already.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "pif/client/client.h"

namespace pif::cli {

struct TreeOptions {
  std::vector<std::string> exclude;  // patterns
  bool skip_existing = false;
  bool checksum = false;  // by contents, instead of the time of modification

  bool looks_at_existing() const { return skip_existing || checksum; }
  // relative: the path of what was found below an operand, from there.
  bool leaves_out(const std::string& relative) const;
};

void add_tree_options(CLI::App* command, TreeOptions& options);

// Bytes that get writes of a file, its header included.
std::uint64_t whole_bytes(const Entry& entry);
// Whether the local file has the bytes that get would write of `path`. Reads both up to the first difference.
[[nodiscard]] Result<bool> has_same_bytes(Client& client, const std::string& path, const std::string& local);
// Whether `local` is the file that `entry` (at `path`) is, as the options have it. Files that cannot be compared are
// not the same.
bool is_same_file(Client& client, const TreeOptions& options, const std::string& path, const Entry& entry,
                  const std::string& local);

}  // namespace pif::cli
