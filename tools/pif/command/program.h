// Common parts of all commands of `pif`: the common options, how a command is registered, and how it ends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "command/exit_code.h"
#include "pif/client/client.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

using Json = nlohmann::ordered_json;

// Options that every command has.
struct Common {
  std::string where;  // --pif
  bool json = false;  // one JSON document on stdout and nothing else
  bool quiet = false;
  bool verbose = false;
  std::string route = "auto";
  std::string data = "auto";
  bool stale = false;  // of commands that read files
};

// One run of `pif`.
class Program {
 public:
  // kUsage-like errors (kInvalid) for what CLI11 refuses are already handled: returns the process's exit code.
  int run(std::vector<std::string> arguments);

  Common common;
  std::function<Outcome()> chosen;  // set by the command that was named

  // For a JSON document that is printed piece by piece: ends it with the error as its last member, and says it on
  // stderr. closing: what ends the member that was being printed, "]" or the like.
  ExitCode fail_within(const Error& error, const std::string& closing) const;

  [[nodiscard]] Result<Client> connect(Duration timeout = std::chrono::seconds(30)) const;
  // One of `clients` that are at work at once: they share this process's cores.
  [[nodiscard]] Result<Client> connect_one_of(unsigned clients) const;
  // The folder of the file system that connect() found.
  const std::string& folder() const { return found_->folder; }
  // The text of an error for a person, in one line. Since connect() it says which file system it was.
  std::string text_of(const Error& error) const;

 private:
  Result<Client> connect_with(ConnectOptions options) const;

  mutable std::optional<cluster::FoundCluster> found_;  // by connect()

  ExitCode report(const Error& error, const std::string& before) const;
};

// Adds a command: its common options, its examples under --help, and what it does.
CLI::App* add_command(CLI::App& app, Program& program, const std::string& name, const std::string& description,
                      const std::string& examples);

// The work of the command when it was the one named. Outcome run(const Program&, const Options&).
template <typename Options, typename Run>
void on_run(CLI::App* command, Program& program, std::shared_ptr<Options> options, Run run) {
  command->callback([&program, options, run] {
    program.chosen = [&program, options, run]() -> Outcome { return run(program, *options); };
  });
}

// All commands and their options.
void add_all_commands(CLI::App& app, Program& program);
// Groups of commands, one per file.
void add_cluster_commands(CLI::App& app, Program& program);                 // up down init
void add_rescue_commands(CLI::App& app, CLI::App& node, Program& program);  // node accept-stale, node replace, server
void add_snapshot_command(CLI::App& app, Program& program);                 // snapshot-hold
CLI::App* add_status_commands(CLI::App& app, Program& program);             // status df, and node, which it gives
void add_name_commands(CLI::App& app, Program& program);                    // mkdir stripe rm mv
CLI::App* add_host_command(CLI::App& app, Program& program);                // host
void add_destroy_command(CLI::App& app, Program& program);                  // destroy
void add_completion_commands(CLI::App& app, Program& program);              // completion, and what its scripts ask
void add_copy_commands(CLI::App& app, Program& program);                    // cp ln
void add_protect_command(CLI::App& app, Program& program);                  // protect
void add_append_command(CLI::App& app, Program& program);                   // append
void add_end_commands(CLI::App& app, Program& program);                     // head tail
void add_count_command(CLI::App& app, Program& program);                    // wc
void add_find_command(CLI::App& app, Program& program);                     // find
void add_tree_command(CLI::App& app, Program& program);                     // tree
void add_attribute_commands(CLI::App& app, Program& program);               // chmod chown
void add_fork_command(CLI::App& app, Program& program);                     // forks
void add_listing_commands(CLI::App& app, Program& program);                 // ls stat
void add_usage_command(CLI::App& app, Program& program);                    // du
void add_put_command(CLI::App& app, Program& program);                      // put
void add_get_commands(CLI::App& app, Program& program);                     // get cat
void add_placement_commands(CLI::App& app, Program& program);               // locate placement
void add_fsck_command(CLI::App& app, Program& program);                     // fsck
void add_rebuild_command(CLI::App& app, Program& program);                  // rebuild
void add_scrub_command(CLI::App& app, Program& program);                    // scrub
void add_drill_command(CLI::App& app, Program& program);                    // drill
void add_doctor_command(CLI::App& app, Program& program);                   // doctor
void add_run_command(CLI::App& app, Program& program);                      // run
void add_tool_command(CLI::App& app, Program& program);                     // tool new
void add_user_command(CLI::App& app, Program& program);                     // user
void add_key_command(CLI::App& app, Program& program);                      // key
void add_config_command(CLI::App& app, Program& program);                   // config
// host add, host remove, node add
void add_member_commands(CLI::App& host, CLI::App& node, Program& program);

// Prints the document and a line end on stdout.
[[nodiscard]] Status print(const Json& document);
// Writes all of it on stdout; kIo if stdout is gone or full. On a terminal, what it would act on becomes visible().
[[nodiscard]] Status print(const std::string& text);
// Before something is read that nobody can get: kIo if stdout is closed.
[[nodiscard]] Status check_stdout();
// A name to print: on a terminal quoted_name(), else as it is, for programs.
std::string shown(const std::string& name);

}  // namespace pif::cli
