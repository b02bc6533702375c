// mkdir, stripe, rm, mv: the directory only.
#include <memory>

#include <fmt/format.h>

#include "command/failures.h"
#include "command/program.h"
#include "names/mode_change.h"
#include "names/operands.h"
#include "names/striping.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct NamesOptions {
  std::vector<std::string> paths;
  std::string mode;    // of a new folder
  bool flag = false;   // -p, -r, --no-clobber
  bool force = false;  // -f
};

struct FolderOptions {
  std::vector<std::string> paths;
  std::string mode;      // of new folders
  bool parents = false;  // -p
  bool none = false;
  StripingOptions striping;
};

// For each path what `each` does; of several, those that fail are passed over. The document says of which it was done.
template <typename Each>
Outcome for_each_path(const Program& program, const char* key, const std::vector<std::string>& paths, Each each) {
  Failures failures(program);
  Json document = {{key, Json::array()}};
  for (const auto& path : paths) {
    const Result<bool> done = each(path);
    if (!done && (paths.size() == 1 || ends_all(done.error()))) return fail(done.error());
    if (!done)
      failures.add(done.error());
    else if (*done)
      document[key].push_back(path);
  }
  failures.add_to(document);
  if (program.common.json) PIF_TRY(print(document));
  return failures.exit_code();
}

constexpr std::uint32_t kFolderMode = 0755;

// What new folders get.
struct NewFolder {
  std::uint32_t mode = kFolderMode;
  std::optional<Striping> striping;  // nothing: that of the folder above
};

// One that is there already stays as it is, which is no success if it was to be otherwise.
Status check_existing(Client& client, const std::string& path, const Striping& wanted) {
  PIF_TRY_VALUE(const Entry entry, client.stat(path));
  if (entry.kind != EntryKind::kFolder)
    return fail(Code::kNotDirectory, fmt::format("{} is a {}, not a folder", path, kind_word(entry.kind)));
  if (json_of(entry.striping) == json_of(wanted)) return {};
  return fail(Code::kExists, path + " exists already, with other striping: pif stripe changes it");
}

// As mkdir(1) does it: the mode and the striping are for the folder that is named, not for missing parents, and not for
// one that is there.
Status make_folder(Client& client, const FolderOptions& options, const std::string& path, const NewFolder& wanted) {
  const std::string parent = path.substr(0, path.rfind('/'));
  const bool is_special = wanted.mode != kFolderMode || wanted.striping;
  if (options.parents && is_special && !parent.empty()) PIF_TRY(client.make_folder(parent, true));
  if (!options.parents || !wanted.striping)
    return client.make_folder(path, options.parents, wanted.mode, wanted.striping);
  const Status made = client.make_folder(path, false, wanted.mode, wanted.striping);
  if (made || made.error().code != Code::kExists) return made;
  return check_existing(client, path, *wanted.striping);
}

Outcome make_folders(const Program& program, const FolderOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  for (std::string& path : paths)
    if (path.size() > 1 && path.ends_with('/')) path.pop_back();  // it becomes a folder
  NewFolder wanted;
  if (!options.mode.empty()) {
    PIF_TRY_VALUE(const ModeChange change, ModeChange::parse(options.mode));
    wanted.mode = change.apply(kFolderMode, true);
  }
  PIF_TRY(format_of(options.striping));  // wrong usage before anything is asked
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const Striping striping, striping_of(client, options.striping));
  if (!striping.is_empty()) wanted.striping = striping;
  return for_each_path(program, "created", paths, [&](const std::string& path) -> Result<bool> {
    const Status made = make_folder(client, options, path, wanted);
    if (!made) return fail(at(path, made.error()));
    return true;
  });
}

Outcome change_striping(const Program& program, const FolderOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY(format_of(options.striping));
  PIF_TRY_VALUE(Client client, program.connect());
  AttributeChange change;
  PIF_TRY_VALUE(change.striping, striping_of(client, options.striping));
  if (change.striping->is_empty() != options.none)
    return fail(Code::kInvalid, "say what files in the folder get, such as --width 2 or --lines, or --none");
  PIF_TRY(expand(client, paths));
  return for_each_path(program, "changed", paths, [&](const std::string& path) -> Result<bool> {
    const Status done = client.change_attributes(path, change);
    if (!done) return fail(at(path, done.error()));
    return true;
  });
}

Outcome remove(const Program& program, const NamesOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  for (const auto& path : paths) {
    if (path == "/") return fail(Code::kInvalid, "the root folder cannot be removed; name what is in it");
  }
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  return for_each_path(program, "removed", paths, [&](const std::string& path) -> Result<bool> {
    const Status done = client.remove(path, options.flag);
    const bool is_absent = !done && (done.error().code == Code::kNotFound || done.error().code == Code::kNotDirectory);
    if (is_absent && options.force) return false;
    if (!done) return fail(at(path, done.error()));
    return true;
  });
}

Outcome move(const Program& program, const NamesOptions& options) {
  if (options.paths.size() < 2) return fail(Code::kInvalid, "mv takes what to move, and where to");
  PIF_TRY_VALUE(auto operands, SourcesAndTarget::parse(options.paths));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(operands.look_up(client));
  Json document = {{"moved", Json::array()}};
  Failures failures(program);
  Destinations destinations;
  const auto move_one = [&](const std::string& path) -> Status {
    const std::string to = operands.place_of(path);
    PIF_TRY(destinations.check(path, to));
    PIF_TRY(client.rename(path, to, options.flag));
    destinations.note(path, to);
    document["moved"].push_back({{"from", path}, {"to", to}});
    return {};
  };
  PIF_TRY(for_each_operand(operands.sources, failures, move_one));
  failures.add_to(document);
  if (program.common.json) PIF_TRY(print(document));
  return failures.exit_code();
}

void add_folder_commands(CLI::App& app, Program& program) {
  auto make_options = std::make_shared<FolderOptions>();
  CLI::App* make = add_command(app, program, "mkdir", "Make folders",
                               "  pif mkdir /results\n  pif mkdir -p /a/b/c\n  pif mkdir -m 0700 /private\n"
                               "  pif mkdir --width 2 --record-length 100 /runs    files in it get that\n"
                               "  pif mkdir --bevy 2 /kept                         and parity");
  make->add_option("FOLDER", make_options->paths, "Folders to make")->required();
  make->add_option("-m,--mode", make_options->mode, "Who may do what with them, as chmod takes it (default: 0755)")
      ->type_name("MODE");
  make->add_flag("-p,--parents", make_options->parents, "Make missing parents too; an existing folder is no error");
  add_striping_options(make, make_options->striping, true);
  on_run(make, program, make_options, make_folders);

  auto stripe_options = std::make_shared<FolderOptions>();
  CLI::App* stripe = add_command(app, program, "stripe", "Say how new files in folders are laid out",
                                 "  pif stripe --width 2 /runs            in place of all that was said before\n"
                                 "  pif stripe --lines --nodes lfs0,lfs2 /logs\n"
                                 "  pif stripe --none /runs               as everywhere\n"
                                 "Files and folders that are there stay as they are. pif stat shows it.");
  stripe->add_option("FOLDER", stripe_options->paths, "Folders of one's own")->required();
  stripe->add_flag("--none", stripe_options->none, "Nothing is said any more");
  add_striping_options(stripe, stripe_options->striping, true);
  on_run(stripe, program, stripe_options, change_striping);
}

}  // namespace

void add_name_commands(CLI::App& app, Program& program) {
  add_folder_commands(app, program);

  auto remove_options = std::make_shared<NamesOptions>();
  CLI::App* rm =
      add_command(app, program, "rm", "Remove files, and folders", "  pif rm /a.txt /b.txt\n  pif rm -r /results");
  rm->add_option("PATH", remove_options->paths, "Files, or empty folders, to remove")->required();
  rm->add_flag("-r,--recursive", remove_options->flag, "Folders with everything in them");
  rm->add_flag("-f,--force", remove_options->force, "What is not there is no error");
  on_run(rm, program, remove_options, remove);

  auto move_options = std::make_shared<NamesOptions>();
  CLI::App* mv =
      add_command(app, program, "mv", "Rename, or move into a folder; an existing file is replaced atomically",
                  "  pif mv /a.txt /b.txt\n  pif mv /a.txt /b.txt /folder");
  mv->add_option("PATH", move_options->paths, "What to move, then where to")->required()->type_name("SOURCE... TARGET");
  mv->add_flag("-n,--no-clobber", move_options->flag, "Fail instead of replacing a file");
  on_run(mv, program, move_options, move);
}

}  // namespace pif::cli
