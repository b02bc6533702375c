// Names of forks (Nieuwejaar, Kotz 1997, section 2.2): below their file, "SUBFILE/NAME". Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pif/base/result.h"

namespace pif {

// The forks that are the bytes of a placed file have this name.
inline constexpr std::string_view kForkData = "data";

struct ForkName {
  std::uint32_t subfile = 0;  // number of the file's component
  std::string_view name;      // into the text
};
// text: "SUBFILE/NAME". kInvalid (kTooLarge for lengths) says what is wrong: the number is not decimal, or begins with
// a 0 that it does not need; the name is none that a path can have (pif/base/path.h).
[[nodiscard]] Result<ForkName> parse_fork(std::string_view text);
// Whether a path of this form may be a fork's: "/FILE/SUBFILE/NAME". path: as check_path() gives it.
bool may_be_fork(std::string_view path);
// "SUBFILE/NAME"
std::string fork_text(std::uint32_t subfile, std::string_view name);

}  // namespace pif
