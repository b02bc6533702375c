#include "dispatch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "exit_code.h"
#include "pif/base/say.h"
#include "text.h"

namespace pif::cli {
namespace {

constexpr std::array<std::string_view, 22> kCommands = {"up", "down", "status", "init", "node",      "mkdir",
                                                        "ls", "stat", "rm",     "mv",   "du",        "df",
                                                        "put", "get", "cat",    "locate", "placement", "fsck",
                                                        "doctor", "run",    "chmod", "chown"};

bool is_own(std::string_view command) {
  return std::find(kCommands.begin(), kCommands.end(), command) != kCommands.end();
}

}  // namespace

std::string command_in_name(const std::string& program) {
  const std::string name = base_name(program);
  return name.rfind("pif-", 0) == 0 ? name.substr(4) : "";
}

bool is_external(const std::vector<std::string>& arguments) {
  return !arguments.empty() && !arguments[0].empty() && arguments[0][0] != '-' && !is_own(arguments[0]);
}

std::string program_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : self.parent_path().string();
}

int replace_process(std::vector<std::string> words) {
  const std::string program = words[0];
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (program.find('/') == std::string::npos) ::execv((program_folder() + "/" + program).c_str(), argv.data());
  if (program.find('/') != std::string::npos || errno == ENOENT) ::execvp(program.c_str(), argv.data());
  return errno;
}

int run_external(const std::vector<std::string>& arguments) {
  const std::string name = "pif-" + arguments[0];
  std::vector<std::string> words = arguments;
  words[0] = name;
  // A name with a slash would run any program beside the folder.
  const int error = arguments[0].find('/') == std::string::npos ? replace_process(std::move(words)) : ENOENT;
  if (error == ENOENT) {
    say(fmt::format("pif: there is no command '{}' (pif --help lists them), and no program {} here or in PATH\n",
                    one_line(arguments[0]), one_line(name)));
    return static_cast<int>(ExitCode::kUsage);
  }
  say(fmt::format("pif: cannot run {}: {}\n", one_line(name), std::strerror(error)));
  return static_cast<int>(ExitCode::kFailed);
}

}  // namespace pif::cli
