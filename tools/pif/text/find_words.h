// find(1) has words of its own on its command line: options with one dash, and the command behind -exec. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pif/base/result.h"

namespace pif::cli {

// From `at` on, makes of them what the option parser understands: "-name X" becomes "--name=X", and "-exec CMD ... ;"
// or
// "-exec CMD ... {} +" becomes one word "--exec=...", the command's words with a NUL behind each.
void keep_find_words(std::vector<std::string>& arguments, std::size_t at);

// The words behind -exec.
struct ExecPlan {
  std::vector<std::string> words;  // with {} where names go
  bool many = false;               // {} +: so many names at once as fit, at the end
};
// kInvalid if it is not CMD ... ; or CMD ... {} +.
[[nodiscard]] Result<ExecPlan> parse_exec(const std::string& joined);
// The words of one run.
std::vector<std::string> words_for(const ExecPlan& plan, const std::vector<std::string>& paths);

// "+10M", "-1k", "512": more than, less than, or just so many bytes.
struct SizeTest {
  char sign = '=';  // + - =
  std::uint64_t bytes = 0;
  bool holds(std::uint64_t size) const {
    return sign == '+' ? size > bytes : sign == '-' ? size < bytes : size == bytes;
  }
};
[[nodiscard]] Result<SizeTest> parse_size(const std::string& text);

}  // namespace pif::cli
