#include "command/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "command/failures.h"
#include "command/help.h"
#include "pif/base/assert.h"
#include "pif/base/print.h"
#include "pif/base/write_all.h"
#include "pif/machine/limits.h"
#include "text/find_words.h"
#include "text/text.h"

namespace pif::cli {
namespace {

void add_common_options(CLI::App& app, Common& common) {
  const auto group = "Options of every command";
  app.add_option("--pif", common.where, "Folder of the file system (else $PIF, pif.toml here or above, your default)")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--json", common.json, "Print one JSON document on stdout and nothing else")->group(group);
  app.add_flag("-q,--quiet", common.quiet, "No progress, no notes")->group(group);
  app.add_flag("--verbose", common.verbose, "Say on stderr what was done, and how fast")->group(group);
  app.add_option("--route", common.route, "How to reach the daemons: auto, unix, ipc, tcp (for measurements)")
      ->envname("PIF_ROUTE")
      ->check(CLI::IsMember({"auto", "unix", "ipc", "tcp"}))
      ->group(group);
  app.add_option("--data", common.data, "How records travel: auto, descriptors, messages (for measurements)")
      ->envname("PIF_DATA")
      ->check(CLI::IsMember({"auto", "descriptors", "messages"}))
      ->group(group);
  app.set_version_flag("--version", std::string("pif ") + PIF_VERSION, "Print the version and leave")->group(group);
}

DataPath data_path_of(const std::string& name) {
  if (name == "descriptors") return DataPath::kDescriptors;
  if (name == "messages") return DataPath::kMessages;
  return DataPath::kAuto;
}

bool names_tool(const CLI::App& app, const std::vector<std::string>& arguments, std::size_t command) {
  const std::string word = command < arguments.size() ? arguments[command] : "";
  return !word.empty() && word[0] != '-' && !has_command(app, word);
}

std::vector<std::string> known_commands(const CLI::App& app) {
  std::vector<std::string> names = tools_in(app, program_folders());
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

struct HelpOptions {
  const CLI::App* app = nullptr;
  std::string command;
};

Outcome help(const Program& program, const HelpOptions& options) {
  const bool all = options.command.empty();
  if (!all && !has_command(*options.app, options.command))
    return static_cast<ExitCode>(run_external({options.command, "--help"}, 0, known_commands(*options.app)));
  const std::string text =
      all ? overview(*options.app, program_folders()) : options.app->get_subcommand(options.command)->help("pif");
  PIF_TRY(program.common.json ? print(Json{{"help", text}}) : print(text));
  return ExitCode::kDone;
}

void add_help_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<HelpOptions>();
  options->app = &app;
  CLI::App* command = add_command(app, program, "help", "List all commands and tools, or say all of one of them",
                                  "  pif help\n  pif help put\n  pif help sort");
  command->add_option("COMMAND", options->command, "A command or a tool");
  on_run(command, program, options, help);
}

}  // namespace

void add_all_commands(CLI::App& app, Program& program) {
  app.set_help_flag("--help", "Print this help and leave");  // commands inherit it; -h is theirs
  add_common_options(app, program.common);
  add_cluster_commands(app, program);
  add_destroy_command(app, program);
  CLI::App* const host = add_host_command(app, program);
  add_member_commands(*host, *add_status_commands(app, program), program);
  add_user_command(app, program);
  add_key_command(app, program);
  add_config_command(app, program);
  add_name_commands(app, program);
  add_copy_commands(app, program);
  add_protect_command(app, program);
  add_append_command(app, program);
  add_end_commands(app, program);
  add_count_command(app, program);
  add_find_command(app, program);
  add_tree_command(app, program);
  add_attribute_commands(app, program);
  add_listing_commands(app, program);
  add_fork_command(app, program);
  add_usage_command(app, program);
  add_put_command(app, program);
  add_get_commands(app, program);
  add_placement_commands(app, program);
  add_fsck_command(app, program);
  add_rebuild_command(app, program);
  add_scrub_command(app, program);
  add_drill_command(app, program);
  add_doctor_command(app, program);
  add_run_command(app, program);
  add_tool_command(app, program);
  add_snapshot_command(app, program);
  add_completion_commands(app, program);
  add_help_command(app, program);
  group_commands(app);
  app.require_subcommand(1);
}

namespace {

// CLI11 takes a word such as [a,b] for a list, where several words may stand; as ./[a,b] it is the name that it is.
// What is for the program of `pif run` stays as it is, and loses the "--" that may stand before it, which CLI11 takes
// for the end of `run`.
void keep_words(const CLI::App& app, std::vector<std::string>& arguments) {
  std::size_t end = arguments.size();
  const std::size_t command = end_of_options(app, arguments, 0);
  if (command < end && arguments[command] == "run") {
    end = end_of_options(*app.get_subcommand("run"), arguments, command + 1);
    if (end < arguments.size() && arguments[end] == "--")
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(end));
  }
  // What is to be completed stays as it is: no words of ours.
  if (command < end && arguments[command] == "complete" && arguments.size() > command + 1) {
    std::string words = "--words=";
    const std::size_t first = command + (arguments[command + 1] == "--" ? 2 : 1);
    for (std::size_t i = first; i < arguments.size(); ++i) words += arguments[i] + '\0';
    arguments.resize(command + 1);
    arguments.push_back(std::move(words));
    end = arguments.size();
  }
  if (command < end && arguments[command] == "find") {
    keep_find_words(arguments, command + 1);
    end = arguments.size();
  }
  for (std::size_t i = 0; i < end; ++i) {
    std::string& word = arguments[i];
    if (word.starts_with('[') && word.ends_with(']')) word.insert(0, "./");
  }
}

// What CLI11 has to say of a command line, with our exit codes: help and version go to stdout and are fine.
int report_parse(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(error);
    if (std::cout.flush()) return static_cast<int>(ExitCode::kDone);
    print_error("pif: cannot write to standard output\n");
    return static_cast<int>(ExitCode::kFailed);
  }
  print_error(fmt::format("pif: {} (pif COMMAND --help shows how)\n", one_line(error.what())));
  return static_cast<int>(ExitCode::kUsage);
}

// Whether the server was asked in vain. An error without a node may also be about an LFS, a worker, or nobody: then it
// does not name the server.
bool is_of_server(const Error& error) {
  const bool no_answer = error.code == Code::kUnavailable || error.code == Code::kTimeout;
  const bool names_server =
      error.text.find("server") != std::string::npos || error.text.find("PIF Server") != std::string::npos;
  return no_answer && (error.node == "server" || (error.node.empty() && names_server));
}

// The name of an option that was given an empty value; empty: none was. To take it for an option that was not given
// would be to do something else than was asked for.
std::string option_without_value(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool is_empty = std::any_of(option->results().begin(), option->results().end(),
                                      [](const std::string& value) { return value.empty(); });
    const bool needs_value = option->nonpositional() && option->get_items_expected_min() > 0;
    if (is_empty && needs_value) return option->get_name();
  }
  for (const CLI::App* command : app.get_subcommands())
    if (std::string name = option_without_value(*command); !name.empty()) return name;
  return {};
}

// " (on host h3)": of the daemon that the error is about, in a file system of several hosts; else nothing.
std::string host_of(const std::string& folder, const Error& error) {
  const bool of_server = is_of_server(error);
  if (!of_server && error.node.empty()) return {};
  const auto cluster = cluster::load_cluster(folder);
  if (!cluster || !cluster->has_hosts()) return {};
  if (of_server) return fmt::format(" (on host {})", cluster->servers.front().host);
  for (const cluster::LfsEntry& lfs : cluster->lfss)
    if (lfs.name == error.node) return fmt::format(" (on host {})", lfs.host);
  return {};
}

}  // namespace

CLI::App* add_command(CLI::App& app, Program& program, const std::string& name, const std::string& description,
                      const std::string& examples) {
  CLI::App* command = app.add_subcommand(name, description);
  if (!examples.empty()) command->footer("Examples:\n" + examples);
  add_common_options(*command, program.common);
  return command;
}

int Program::run(std::vector<std::string> arguments) {
  CLI::App app("pif: a parallel interleaved file system", "pif");
  app.footer("`pif X` runs pif-X for any other X; `pif help` lists all of them. `pif COMMAND --help` has examples.");
  add_all_commands(app, *this);
  keep_words(app, arguments);
  const std::size_t command = end_of_options(app, arguments, 0);
  if (names_tool(app, arguments, command)) return run_external(std::move(arguments), command, known_commands(app));
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return report_parse(app, error);
  }
  const std::string without_value = option_without_value(app);
  const Outcome outcome =
      without_value.empty() ? chosen() : fail(Code::kInvalid, without_value + " was given an empty value");
  return static_cast<int>(outcome ? *outcome : report(outcome.error(), "{"));
}

ExitCode Program::fail_within(const Error& error, const std::string& closing) const {
  return report(error, closing + ",");
}

// before: what the document has before its member "error".
ExitCode Program::report(const Error& error, const std::string& before) const {
  print_error(fmt::format("pif: {}\n", text_of(error)));
  if (common.json) {
    const std::string text = json_of(error).dump(-1, ' ', false, Json::error_handler_t::replace);
    // stdout may be what failed; the exit code tells.
    if (const Status printed = print(before + "\"error\":" + text + "}\n"); !printed) return ExitCode::kFailed;
  }
  return exit_code_of(error);
}

Result<Client> Program::connect(Duration timeout) const {
  ConnectOptions options;
  options.timeout = timeout;
  return connect_with(std::move(options));
}

Result<Client> Program::connect_one_of(unsigned clients) const {
  constexpr unsigned kLeast = 2;  // a large file may be the only one
  PIF_ASSERT(clients > 0, clients);
  ConnectOptions options;
  options.threads = std::clamp(machine::usable_cores() / clients, kLeast, ConnectOptions::kThreadsMax);
  return connect_with(std::move(options));
}

Result<Client> Program::connect_with(ConnectOptions options) const {
  if (!found_) {  // the first time: later ones may come from several threads
    PIF_TRY_VALUE(found_, cluster::look_up_cluster(common.where));
  }
  options.where = found_->folder;
  options.route = common.route;
  options.data_path = data_path_of(common.data);
  options.stale = common.stale;
  auto client = Client::connect(options);
  if (!client && client.error().code == Code::kUnavailable)
    client.error().text += "; if the server is not running: pif up " + shell_word(found_->folder);
  return client;
}

std::string Program::text_of(const Error& error) const {
  std::string text = one_line(error.to_string());
  if (!found_) return text;
  text += host_of(found_->folder, error);
  const std::string folder = one_line(found_->folder);
  const bool is_default = found_->by == cluster::FoundBy::kDefault;
  if (text.find(folder) == std::string::npos)
    return fmt::format("{} (file system {}{})", text, folder, is_default ? ", your default" : "");
  return is_default ? text + " (your default file system)" : text;
}

Status print(const std::string& text) {
  const std::string safe = ::isatty(1) == 1 ? visible(text) : text;
  return write_all(1, std::as_bytes(std::span(safe)), "cannot write to standard output");
}

// fill_standard_streams() made it read-only.
Status check_stdout() {
  const int flags = ::fcntl(1, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return {};
  return fail(Code::kIo, "cannot write to standard output: it is closed");
}

std::string shown(const std::string& name) { return ::isatty(1) == 1 ? quoted_name(name) : name; }

Status print(const Json& document) {
  return print(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace pif::cli
