// chmod, chown: who owns files and folders, and who may do what with them.
#include <memory>

#include <fmt/format.h>

#include "command/failures.h"
#include "command/program.h"
#include "names/entries.h"
#include "names/mode_change.h"
#include "names/operand_paths.h"
#include "text/expand.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct AttributesOptions {
  std::string what;  // a mode, or an owner
  std::vector<std::string> paths;
  bool recursive = false;
};

using Change = std::function<AttributeChange(const Entry&)>;

// One run of chmod or chown.
class Changer {
 public:
  Changer(const Program& program, Client& client, bool recursive, Change change)
      : client_(client), recursive_(recursive), change_(std::move(change)), failures_(program) {}

  // A folder comes after what is in it: who takes his own right to search away still reaches all of it.
  Status change(const std::string& path) {
    PIF_TRY_VALUE(const Entry top, client_.stat(path));
    if (recursive_ && top.kind == EntryKind::kFolder) {
      std::vector<std::pair<std::string, Entry>> folders;
      PIF_TRY(walk(client_, path, failures_, [&](const std::string& found, const Entry& entry) -> Status {
        if (entry.kind == EntryKind::kFolder) {
          folders.emplace_back(found, entry);
          return {};
        }
        const Status done = change_one(found, entry);
        if (!done && ends_all(done.error())) return done;
        failures_.add(done);
        return {};
      }));
      for (; !folders.empty(); folders.pop_back())
        failures_.add(change_one(folders.back().first, folders.back().second));
    }
    return change_one(path, top);
  }
  Failures& failures() { return failures_; }
  std::uint64_t changed() const { return changed_; }

 private:
  Status change_one(const std::string& path, const Entry& entry) {
    const Status done = client_.change_attributes(path, change_(entry));
    if (!done) return fail(at(path, done.error()));
    ++changed_;
    return {};
  }

  Client& client_;
  bool recursive_;
  Change change_;
  Failures failures_;
  std::uint64_t changed_ = 0;
};

Outcome change_all(const Program& program, const AttributesOptions& options, const Change& change) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  Changer changer(program, client, options.recursive, change);
  for (const auto& path : paths) {
    const Status done = changer.change(path);
    if (!done && ((paths.size() == 1 && changer.failures().is_empty()) || ends_all(done.error())))
      return fail(done.error());
    changer.failures().add(done);
  }
  if (program.common.json) {
    Json document = {{"changed", changer.changed()}};
    changer.failures().add_to(document);
    PIF_TRY(print(document));
  }
  return changer.failures().exit_code();
}

Outcome change_mode(const Program& program, const AttributesOptions& options) {
  PIF_TRY_VALUE(const ModeChange mode, ModeChange::parse(options.what));
  return change_all(program, options, [mode](const Entry& entry) {
    AttributeChange change;
    change.mode = mode.apply(entry.mode, entry.kind == EntryKind::kFolder);
    return change;
  });
}

// "USER", "USER:GROUP" or ":GROUP", by names or numbers.
Result<AttributeChange> parse_owner(const std::string& text) {
  AttributeChange change;
  const std::size_t colon = text.find(':');
  const std::string user = text.substr(0, colon);
  if (!user.empty()) {
    PIF_TRY_VALUE(change.owner, user_id(user));
  }
  if (colon != std::string::npos) {
    PIF_TRY_VALUE(change.group, group_id(text.substr(colon + 1)));
  }
  if (!change.owner && !change.group) return fail(Code::kInvalid, "whom to? USER, USER:GROUP or :GROUP");
  return change;
}

Outcome change_owner(const Program& program, const AttributesOptions& options) {
  PIF_TRY_VALUE(const AttributeChange change, parse_owner(options.what));
  return change_all(program, options, [change](const Entry&) { return change; });
}

void add_paths(CLI::App* command, AttributesOptions& options, const char* paths) {
  command->add_option("PATH", options.paths, paths)->required();
  command->add_flag("-R,--recursive", options.recursive, "Folders with everything in them");
}

}  // namespace

void add_attribute_commands(CLI::App& app, Program& program) {
  auto mode_options = std::make_shared<AttributesOptions>();
  CLI::App* chmod = add_command(app, program, "chmod", "Change who may read, write and search",
                                "  pif chmod 0640 /a.txt\n  pif chmod -R u+w,go=rX /results\n  pif chmod a-w /sealed");
  chmod->add_option("MODE", mode_options->what, "Octal, or [ugoa][-+=][rwxX] with commas between")->required();
  add_paths(chmod, *mode_options, "Files or folders of one's own");
  on_run(chmod, program, mode_options, change_mode);

  auto owner_options = std::make_shared<AttributesOptions>();
  CLI::App* chown = add_command(app, program, "chown", "Give files and folders to another user or group",
                                "  pif chown ada /home/ada                  as root or the file system's owner\n"
                                "  pif chown -R ada:users /home/ada\n"
                                "  pif chown :users /a.txt                  to a group one is in");
  chown->add_option("OWNER", owner_options->what, "Names or numbers")->required()->type_name("[USER][:GROUP]");
  add_paths(chown, *owner_options, "Files or folders");
  on_run(chown, program, owner_options, change_owner);
}

}  // namespace pif::cli
