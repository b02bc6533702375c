// Permission bits as people write them. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "pif/base/result.h"

namespace pif::cli {

// A mode as chmod(1) takes it: octal digits ("0750", "2775"), or changes with commas between them, each
// [ugoa]*[-+=][rwxXst]* ("u+w,go=rX"). Nobody named is everybody, whatever the umask. X is x for folders, and for files
// that somebody may execute already. s is the set-user-id bit of u, and the set-group-id bit of g; t is the sticky bit.
class ModeChange {
 public:
  // kInvalid for anything else.
  [[nodiscard]] static Result<ModeChange> parse(std::string_view text);
  std::uint32_t apply(std::uint32_t mode, bool is_folder) const;

 private:
  struct Step {
    std::uint32_t who = 0;              // 0700, 0070, 0007 and sums; with the bits above that are theirs
    char how = '=';                     // = + -
    std::uint32_t bits = 0;             // 0 to 7, of each
    std::uint32_t special = 0;          // 04000, 02000, 01000 and sums
    bool search_if_executable = false;  // X
  };
  [[nodiscard]] static Result<Step> parse_step(std::string_view text, std::string_view all);

  std::vector<Step> steps_;
};

}  // namespace pif::cli
