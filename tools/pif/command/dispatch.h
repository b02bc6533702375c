// Which program a command line is meant for.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pif::cli {

// "up" of ".../pif-up"; empty of ".../pif".
std::string command_in_name(const std::string& program);
// Whether it is a command of this program.
bool has_command(const CLI::App& app, const std::string& name);
// Where the options of `app` end that begin at `at`: the place of a command's name, or of its first other word.
std::size_t end_of_options(const CLI::App& app, const std::vector<std::string>& arguments, std::size_t at);
// Replaces this process by pif-X, X the word at `command`, found beside this program or in PATH. Words before X are
// handed on, behind it. Returns only if there is none: the exit code, after one line on stderr, which names the one of
// `known` that may be meant.
int run_external(std::vector<std::string> arguments, std::size_t command, const std::vector<std::string>& known);
// Replaces this process by words[0]: found beside this program or in PATH, or where it says if there is a slash in it.
// Returns only if that fails: errno.
int replace_process(std::vector<std::string> words);
// Folder of the running program.
std::string program_folder();

}  // namespace pif::cli
