// A folder of the local machine that get fills. Whoever may write in it could put a symbolic link in the way, so what
// is below it is reached by descriptors, step by step, and no step goes through a link. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "command/io.h"
#include "pif/base/handle.h"
#include "pif/base/result.h"
#include "pif/client/client.h"

namespace pif::cli {

class LocalTree {
 public:
  // root: as it was typed, so it may itself be a link to a folder.
  [[nodiscard]] static Result<LocalTree> open(const std::string& root);

  // In all of these `path` begins with the root as it was typed. kNotDirectory: a step to its last name, or of a folder
  // that name itself, is there and is no folder, such as a link.

  // Whether it was made; false: the folder is there already.
  [[nodiscard]] Result<bool> make_folder(const std::string& path, std::uint32_t mode) const;
  // Takes away from the mode of a folder that make_folder() has made the owner's bits that `mode` has not.
  [[nodiscard]] Status close_folder(const std::string& path, std::uint32_t mode) const;
  [[nodiscard]] Result<NewFile> new_file(const std::string& path, std::uint32_t mode) const;
  // Makes an entry that is neither a file nor a folder, in place of one that is no folder. kExists: keep_existing, and
  // something is there.
  [[nodiscard]] Status make_other(const std::string& path, const Entry& entry, bool keep_existing) const;
  // A device or a pipe, open for writing; nothing if `path` is anything else, or not there.
  [[nodiscard]] Result<UniqueFd> special_file(const std::string& path) const;

 private:
  LocalTree(std::string root, UniqueFd fd) : root_(std::move(root)), fd_(std::move(fd)) {}
  Result<UniqueFd> folder(const std::string& path) const;

  std::string root_;
  UniqueFd fd_;
};

}  // namespace pif::cli
