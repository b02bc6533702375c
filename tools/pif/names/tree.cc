// tree: folders and what is in them, drawn.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "command/program.h"
#include "names/operands.h"
#include "pif/base/decimal.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct TreeOptions {
  std::vector<std::string> paths = {"/"};
  std::uint64_t depth = UINT64_MAX;
  bool only_folders = false;
};

// Draws one folder after another, each level a page of its listing at a time.
class Drawer {
 public:
  Drawer(const TreeOptions& options, Client& client, Failures& failures, bool json)
      : options_(options), client_(client), failures_(failures), json_(json) {}

  Status draw(const std::string& path) {
    PIF_TRY_VALUE(const Entry top, client_.stat(path));
    PIF_TRY(json_ ? print_json(top, path) : print(shown(path) + "\n"));
    if (top.kind != EntryKind::kFolder) return {};
    return draw_folder(path, "", 1);
  }
  Status end() {
    if (json_) return print(std::string(is_first_ ? kBeginning : "") + "]" + failures_.members() + "}\n");
    return print(fmt::format("\n{} {}, {} {}\n", folders_, folders_ == 1 ? "folder" : "folders", files_,
                             files_ == 1 ? "file" : "files"));
  }
  bool has_begun_json() const { return json_ && !is_first_; }

 private:
  static constexpr const char* kBeginning = "{\"entries\":[";

  // The last entry is drawn otherwise, so each waits for the one behind it.
  Status draw_folder(const std::string& folder, const std::string& margin, std::uint64_t level) {
    std::optional<Entry> waiting;
    const Status listed = for_each_entry(client_, folder, [&](const Entry& entry) -> Status {
      if (options_.only_folders && entry.kind != EntryKind::kFolder) return {};
      if (waiting) PIF_TRY(draw_entry(*waiting, folder, margin, level, false));
      waiting = entry;
      return {};
    });
    PIF_TRY(listed);
    return waiting ? draw_entry(*waiting, folder, margin, level, true) : Status{};
  }

  Status draw_entry(const Entry& entry, const std::string& folder, const std::string& margin, std::uint64_t level,
                    bool is_last) {
    const std::string path = join_path(folder, entry.name);
    const bool is_folder = entry.kind == EntryKind::kFolder;
    ++(is_folder ? folders_ : files_);
    const std::string line = (is_last ? "└── " : "├── ") + shown(entry.name) + name_end(entry) + "\n";
    PIF_TRY(json_ ? print_json(entry, path) : print(margin + line));
    if (!is_folder || level >= options_.depth) return {};
    const Status drawn = draw_folder(path, margin + (is_last ? "    " : "│   "), level + 1);
    if (drawn || ends_all(drawn.error()) || drawn.error().code == Code::kIo) return drawn;
    failures_.add(at(path, drawn.error()));  // a folder that cannot be listed is passed over
    return {};
  }

  Status print_json(const Entry& entry, const std::string& path) {
    const std::string before = std::exchange(is_first_, false) ? kBeginning : ",";
    return print(before + json_of(entry, path).dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  const TreeOptions& options_;
  Client& client_;
  Failures& failures_;
  const bool json_;
  bool is_first_ = true;
  std::uint64_t folders_ = 0, files_ = 0;
};

Outcome tree(const Program& program, const TreeOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY(check_stdout());
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  Failures failures(program);
  Drawer drawer(options, client, failures, program.common.json);
  const Status drawn = for_each_operand(paths, failures, [&](const std::string& path) { return drawer.draw(path); });
  if (!drawn) return drawer.has_begun_json() ? program.fail_within(drawn.error(), "]") : Outcome(fail(drawn.error()));
  PIF_TRY(drawer.end());
  return failures.exit_code();
}

}  // namespace

void add_tree_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<TreeOptions>();
  CLI::App* command = add_command(app, program, "tree", "Draw folders and what is in them",
                                  "  pif tree\n  pif tree -L 2 /results\n  pif tree -d");
  command->add_option("PATH", options->paths, "Files or folders (default: /)");
  command->add_option("-L", options->depth, "So many levels (default: all)")
      ->check(CLI::Range(std::uint64_t{1}, UINT64_MAX))
      ->transform(whole_number)
      ->type_name("DEPTH");
  command->add_flag("-d", options->only_folders, "Folders only");
  on_run(command, program, options, tree);
}

}  // namespace pif::cli
