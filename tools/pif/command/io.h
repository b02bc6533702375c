// Plain files and streams of the local machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/stat.h>

#include "pif/base/handle.h"
#include "pif/base/result.h"

namespace pif::cli {

// When the file was last written to, in ns since 1970.
std::int64_t modified_ns_of(const struct stat& about);

// Fills `out`, going on after signals and short reads; fewer bytes only at the end. `name` is for messages.
[[nodiscard]] Result<std::size_t> read_full(int fd, std::span<std::byte> out, const std::string& name);

// A name in its folder that nobody else takes.
std::string temporary_name();

// A file that appears under its name, complete, or not at all: it has no name while it is written (or, where the file
// system cannot do that, a temporary one beside the target).
class NewFile {
 public:
  // Beside `target`, with permissions `mode` less the umask.
  [[nodiscard]] static Result<NewFile> create(const std::string& target, std::uint32_t mode);
  // The same for the name that `target` ends with, in a folder that is open already.
  [[nodiscard]] static Result<NewFile> create_in(UniqueFd folder, const std::string& target, std::uint32_t mode);
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // removes what was not published

  int fd() const { return fd_.get(); }
  // When all is written. ns since 1970.
  [[nodiscard]] Status set_modified(std::int64_t ns);
  // Gives it its name, in place of what is there. With `keep_existing`: kExists instead.
  [[nodiscard]] Status publish(bool keep_existing);

 private:
  NewFile(UniqueFd folder, std::string target, UniqueFd fd, std::string temporary);
  Status link_beside();
  bool link_as(const std::string& name) const;

  UniqueFd folder_;
  std::string target_;  // path, for messages
  std::string name_;    // its last part, which it gets in the folder
  UniqueFd fd_;
  std::string temporary_;  // its name in the folder now; empty: none
};

}  // namespace pif::cli
