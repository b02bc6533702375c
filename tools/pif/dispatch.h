// Which program a command line is meant for.
#pragma once

#include <string>
#include <vector>

namespace pif::cli {

// "up" of ".../pif-up"; empty of ".../pif".
std::string command_in_name(const std::string& program);
// Whether the first word names a command that is not one of this program's.
bool is_external(const std::vector<std::string>& arguments);
// Replaces this process by pif-X, found beside this program or in PATH. Returns only if there is none: the exit code,
// after one line on stderr.
int run_external(const std::vector<std::string>& arguments);
// Replaces this process by words[0]: found beside this program or in PATH, or where it says if there is a slash in it.
// Returns only if that fails: errno.
int replace_process(std::vector<std::string> words);
// Folder of the running program.
std::string program_folder();

}  // namespace pif::cli
