// Other programs that a command runs and waits for.
#pragma once

#include <string>
#include <vector>

#include "pif/base/result.h"

namespace pif::cli {

struct ChildEnd {
  int exit_code = 0;   // 128 and the signal's number, if one ended it
  std::string output;  // what it wrote on stdout, if that was asked for
};

// Runs words[0], found beside this program or in PATH, with our streams, until it ends. kCatch: its stdout is read, and
// its stderr goes nowhere. kNotFound if there is no such program.
enum class ChildOutput : std::uint8_t { kPass, kCatch };
[[nodiscard]] Result<ChildEnd> run_child(std::vector<std::string> words, ChildOutput output);

}  // namespace pif::cli
