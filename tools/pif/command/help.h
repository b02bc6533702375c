// All commands and tools at a glance.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace pif::cli {

// Puts the commands of `pif` into groups, for --help and overview().
void group_commands(CLI::App& app);

// Every command and every tool, in groups, with a line of its own: tools are the programs pif-X in these folders.
std::string overview(const CLI::App& app, const std::vector<std::string>& folders);

// The programs pif-X in these folders that are no commands of `app` and no daemons: the X, sorted.
std::vector<std::string> tools_in(const CLI::App& app, const std::vector<std::string>& folders);

// The folder of this program, then those of $PATH.
std::vector<std::string> program_folders();

}  // namespace pif::cli
