#include "transfer/tree_options.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "command/io.h"
#include "text/expand.h"
#include "transfer/header.h"

namespace pif::cli {
namespace {

constexpr std::size_t kCompareBytes = 1u << 20;  // read at once from each side

std::string header_of(const std::map<std::string, std::string>& attributes) {
  const auto found = attributes.find(std::string(kHeaderAttribute));
  return found == attributes.end() ? "" : found->second;
}

}  // namespace

bool TreeOptions::leaves_out(const std::string& relative) const {
  const std::string name = relative.substr(relative.rfind('/') + 1);
  return std::any_of(exclude.begin(), exclude.end(), [&](const std::string& pattern) {
    return matches_path(pattern, relative) || matches(pattern, name, Dots::kShow);
  });
}

void add_tree_options(CLI::App* command, TreeOptions& options) {
  command
      ->add_option("--exclude", options.exclude,
                   "Leave out what is called so, or lies there below the folder that is named (again for more)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command->add_flag("--skip-existing", options.skip_existing,
                    "Leave out files that are there with the same size and time");
  command->add_flag("--checksum", options.checksum, "Leave out files that are there with the same bytes: reads both");
}

std::uint64_t whole_bytes(const Entry& entry) { return header_of(entry.attributes).size() + entry.file_length.bytes; }

Result<bool> has_same_bytes(Client& client, const std::string& path, const std::string& local) {
  const UniqueFd fd(::open(local.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "cannot read " + local);
  PIF_TRY_VALUE(File file, client.open(path));
  const std::string header = header_of(file.attributes());
  std::vector<std::byte> here(std::max(header.size(), kCompareBytes)), there(kCompareBytes);
  PIF_TRY_VALUE(const std::size_t begin, read_full(fd.get(), std::span(here).first(header.size()), local));
  if (begin != header.size() || std::memcmp(here.data(), header.data(), begin) != 0) return false;
  for (std::uint64_t at = 0;; at += kCompareBytes) {
    PIF_TRY_VALUE(const std::size_t got, file.pread(there, at));
    PIF_TRY_VALUE(const std::size_t wanted, read_full(fd.get(), std::span(here).first(kCompareBytes), local));
    if (got != wanted || std::memcmp(here.data(), there.data(), got) != 0) return false;
    if (got < kCompareBytes) return true;
  }
}

bool is_same_file(Client& client, const TreeOptions& options, const std::string& path, const Entry& entry,
                  const std::string& local) {
  struct stat about {};
  if (!options.looks_at_existing() || entry.kind != EntryKind::kFile || ::stat(local.c_str(), &about) != 0)
    return false;
  if (!S_ISREG(about.st_mode) || static_cast<std::uint64_t>(about.st_size) != whole_bytes(entry)) return false;
  if (!options.checksum) return entry.modified_ns == modified_ns_of(about);
  const auto same = has_same_bytes(client, path, local);
  return same && *same;
}

}  // namespace pif::cli
