#include "command/dispatch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "command/exit_code.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {

std::string command_in_name(const std::string& program) {
  const std::string name = base_name(program);
  return name.rfind("pif-", 0) == 0 ? name.substr(4) : "";
}

bool has_command(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands([&](const CLI::App* command) { return command->check_name(name); });
  return !commands.empty();
}

std::size_t end_of_options(const CLI::App& app, const std::vector<std::string>& arguments, std::size_t at) {
  while (at < arguments.size() && arguments[at].starts_with('-') && arguments[at] != "--") {
    const CLI::Option* const option = app.get_option_no_throw(arguments[at]);  // "--pif=DIR" names none
    at += option != nullptr && option->get_items_expected_min() > 0 ? 2 : 1;
  }
  return std::min(at, arguments.size());
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

namespace {

// Tools have no --data, and heed $PIF_DATA.
std::vector<std::string> words_for_tool(const std::vector<std::string>& arguments, std::size_t command) {
  constexpr std::string_view kData = "--data";
  std::vector<std::string> words = {"pif-" + arguments[command]};
  for (std::size_t i = 0; i < command; ++i) {
    if (arguments[i] == kData && i + 1 < command) {
      ::setenv("PIF_DATA", arguments[++i].c_str(), 1);
    } else if (arguments[i].starts_with(std::string(kData) + "=")) {
      ::setenv("PIF_DATA", arguments[i].c_str() + kData.size() + 1, 1);
    } else {
      words.push_back(arguments[i]);
    }
  }
  words.insert(words.end(), arguments.begin() + static_cast<std::ptrdiff_t>(command) + 1, arguments.end());
  return words;
}

}  // namespace

int run_external(std::vector<std::string> arguments, std::size_t command, const std::vector<std::string>& known) {
  const std::string word = arguments[command], name = "pif-" + word;
  // A name with a slash would run any program beside the folder.
  const int error = word.find('/') == std::string::npos ? replace_process(words_for_tool(arguments, command)) : ENOENT;
  if (error != ENOENT) {
    print_error(fmt::format("pif: cannot run {}: {}\n", one_line(name), std::strerror(error)));
    return static_cast<int>(ExitCode::kFailed);
  }
  const std::string meant = nearest(word, known);
  print_error(fmt::format("pif: there is no command '{}' ({}pif help lists them), and no program {} here or in PATH\n",
                          one_line(word), meant.empty() ? "" : fmt::format("did you mean '{}'? ", one_line(meant)),
                          one_line(name)));
  return static_cast<int>(ExitCode::kUsage);
}

}  // namespace pif::cli
