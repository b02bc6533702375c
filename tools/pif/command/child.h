// Other programs that a command runs and waits for.
#pragma once

#include <chrono>
#include <cstdint>
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

// The same with `input` as its stdin, and both of its outputs caught, 1 MiB of each at most: what is more is dropped.
// At the deadline it is killed. Any thread.
struct ChildTalk {
  int exit_code = 0;
  bool was_late = false;
  std::string output, errors;
};
[[nodiscard]] Result<ChildTalk> talk_to_child(std::vector<std::string> words, const std::string& input,
                                              std::chrono::steady_clock::time_point deadline);

}  // namespace pif::cli
