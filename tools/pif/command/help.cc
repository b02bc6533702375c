#include "command/help.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "command/dispatch.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct Group {
  const char* title;
  std::vector<std::string> commands;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> kGroups = {
      {"Start and stop", {"up", "down", "init", "host", "user", "key", "config", "destroy"}},
      {"Look after it",
       {"status", "doctor", "fsck", "df", "node", "rebuild", "scrub", "drill", "protect", "server", "snapshot-hold"}},
      {"Bring and fetch files", {"put", "get", "append", "cat", "head", "tail", "wc"}},
      {"Files and folders",
       {"ls", "tree", "find", "stat", "du", "mkdir", "stripe", "cp", "ln", "mv", "rm", "chmod", "chown", "forks"}},
      {"Where records are", {"locate", "placement"}},
      {"Help, and programs of your own", {"help", "completion", "run", "tool"}}};
  return kGroups;
}

// The tools of a release, and other programs; what is not of it is shown with its path.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kTools = {
    {{"backup", "Back files up, each LFS's part on its own host"},
     {"bench", "Measure the file system, each figure beside its comparison"},
     {"calibrate", "Measure what predictions of run times need"},
     {"cmp", "Compare two files record by record"},
     {"compress", "Compress a file, record by record"},
     {"copy", "Copy a file, into the same or another layout"},
     {"decompress", "Have a compressed file back"},
     {"digest", "Checksum the records of a file"},
     {"grep", "The same as search"},
     {"map", "Run a command of the shell on every LFS of a file"},
     {"mount", "Make the file system a folder, for every program"},
     {"restore", "Restore files from a backup"},
     {"search", "Find records that match patterns"},
     {"sort", "Sort the records of a file"},
     {"summarize", "Say what the fields of a file's records are"},
     {"transpose", "Transpose a matrix whose rows are records"},
     {"umount", "End a mount, when all is sent"}}};

// Programs, but not for people.
constexpr std::array<std::string_view, 7> kNoTools = {"server",   "lfs",           "exec",        "count",
                                                      "simulate", "numbers-model", "parity-model"};

std::string line(const std::string& name, const std::string& what) { return fmt::format("  {:<13} {}\n", name, what); }

std::string about_tool(const std::string& name, const std::vector<std::string>& folders) {
  for (const auto& [known, what] : kTools) {
    if (name == known) return std::string(what);
  }
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/pif-{}", folder, name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace

void group_commands(CLI::App& app) {
  for (const Group& group : groups()) {
    for (const std::string& name : group.commands) app.get_subcommand(name)->group(group.title);
  }
}

std::vector<std::string> program_folders() {
  std::vector<std::string> folders = {program_folder()};
  const char* path = std::getenv("PATH");
  std::istringstream words(path == nullptr ? "" : path);
  for (std::string folder; std::getline(words, folder, ':');) folders.push_back(folder.empty() ? "." : folder);
  return folders;
}

std::vector<std::string> tools_in(const CLI::App& app, const std::vector<std::string>& folders) {
  std::set<std::string> found;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = command_in_name(at->path().filename().string());
      const bool hidden = name.empty() || std::find(kNoTools.begin(), kNoTools.end(), name) != kNoTools.end();
      if (hidden || has_command(app, name) || ::access(at->path().c_str(), X_OK) != 0) continue;
      found.insert(name);
    }
  }
  return {found.begin(), found.end()};
}

std::string overview(const CLI::App& app, const std::vector<std::string>& folders) {
  std::string out = "pif: a parallel interleaved file system. `pif help COMMAND` says more of each.\n";
  for (const Group& group : groups()) {
    out += fmt::format("\n{}\n", group.title);
    for (const std::string& name : group.commands) out += line(name, app.get_subcommand(name)->get_description());
  }
  out += "\nPrograms of their own: tools, with a worker beside the data on every LFS, and mounts\n";
  for (const std::string& name : tools_in(app, folders)) out += line(name, about_tool(name, folders));
  return out;
}

}  // namespace pif::cli
