// Permission bits as people write them. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "pif/base/result.h"

namespace pif::cli {

// What chmod(1) takes, for permission bits: octal digits ("0750"), or changes with commas between them, each
// [ugoa]*[-+=][rwxX]* ("u+w,go=rX"). Nobody named is everybody, whatever the umask. X is x for folders, and for files
// that somebody may execute already.
class ModeChange {
 public:
  // kInvalid for anything else.
  [[nodiscard]] static Result<ModeChange> parse(std::string_view text);
  std::uint32_t apply(std::uint32_t mode, bool is_folder) const;

 private:
  struct Step {
    std::uint32_t who = 0;              // 0700, 0070, 0007 and sums
    char how = '=';                     // = + -
    std::uint32_t bits = 0;             // 0 to 7
    bool search_if_executable = false;  // X
  };
  [[nodiscard]] static Result<Step> parse_step(std::string_view text, std::string_view all);

  std::vector<Step> steps_;
};

}  // namespace pif::cli
