// C and C++ sources as the rules look at them. A lexer's worth of understanding, no more.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pif::tree {

// The text with comments, strings, character constants and preprocessor lines turned into spaces. Lines stay where they
// were.
std::string code_only(std::string_view text);

struct Include {
  std::size_t line = 0;
  std::string path;
  bool quoted = false;
};
std::vector<Include> includes_of(std::string_view text);

struct Function {
  std::size_t line = 0;   // where its head begins
  std::size_t lines = 0;  // head and body
};
// `code`: from code_only.
std::vector<Function> functions_of(std::string_view code);

struct Call {
  std::size_t line = 0;
  std::string name;  // with the scope it was called by, as written: "std::abort", "::fork"
};
// Calls of free functions: not of members, and not declarations.
std::vector<Call> calls_of(std::string_view code);

std::vector<std::string_view> lines_of(std::string_view text);
std::size_t line_at(std::string_view text, std::size_t offset);  // from 1

}  // namespace pif::tree
