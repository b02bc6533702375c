// cp: files and folders of the file system, beside one another. ln: symbolic links.
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "command/interrupt.h"
#include "command/program.h"
#include "files/copy_file.h"
#include "names/operands.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct CpOptions {
  std::vector<std::string> paths;
  bool recursive = false;
  CopyOptions copy;
};

// One run of cp. What cannot be copied while there is more to copy is a failure of its own, and the rest goes on.
class Copier {
 public:
  Copier(const Program& program, const CpOptions& options, Client& client)
      : program_(program), options_(options), client_(client), failures_(program) {}

  Status copy(const std::string& from, const std::string& to) {
    PIF_TRY_VALUE(const Entry entry, client_.stat(from));
    if (from == to) return fail(Code::kInvalid, from + " cannot be copied to itself");
    if (entry.kind == EntryKind::kFile) {
      PIF_TRY(destinations_.check(from, to));
      PIF_TRY(copy_one(entry, from, to));
      destinations_.note(from, to);
      return {};
    }
    if (entry.kind != EntryKind::kFolder) return copy_other(entry, to);
    if (!options_.recursive) return fail(Code::kIsDirectory, from + " is a folder; use -r to copy all that is in it");
    if (to.starts_with(from == "/" ? from : from + "/"))
      return fail(Code::kInvalid, fmt::format("{} cannot be copied into itself, to {}", from, to));
    return copy_tree(entry, from, to);
  }
  Failures& failures() { return failures_; }

  Outcome report() {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
    if (program_.common.verbose)
      print_error(fmt::format("pif: {} files, {} in {}\n", files_, human_bytes(bytes_), human_time(elapsed)));
    if (program_.common.json) {
      Json document = {{"copied", documents_}, {"files", files_}, {"bytes", bytes_}, {"seconds", elapsed.count()}};
      failures_.add_to(document);
      PIF_TRY(print(document));
    }
    failures_.sum_up();
    return failures_.exit_code();
  }

 private:
  // A folder that is there already is used, as put and get do. What is in one that could not be made is left out.
  Status copy_tree(const Entry& top, const std::string& from, const std::string& to) {
    PIF_TRY(make_folder(top, to));
    std::set<std::string> failed;
    const auto visit = [&](const std::string& found, const Entry& entry) -> Status {
      PIF_TRY(check_interrupt());
      const std::string target = join_path(to, std::string_view(found).substr(from == "/" ? 1 : from.size() + 1));
      const bool is_folder = entry.kind == EntryKind::kFolder;
      const Status done = is_folder                        ? make_folder(entry, target)
                          : entry.kind == EntryKind::kFile ? copy_one(entry, found, target)
                                                           : copy_other(entry, target);
      if (!done && ends_all(done.error())) return done;
      if (!done && is_folder) failed.insert(found);
      failures_.add(done);
      return {};
    };
    const Status walked = walk(client_, from, failures_, visit, {}, [&](const std::string& found) {
      return failed.contains(found.substr(0, found.rfind('/')));
    });
    close_folders();
    return walked;
  }

  // A new one has the other's mode when all is in it; until then its owner may write to it.
  Status make_folder(const Entry& entry, const std::string& to) {
    PIF_TRY_VALUE(const bool is_there, is_folder(client_, to));
    if (is_there) return {};
    PIF_TRY(client_.make_folder(to, false, entry.mode | S_IRWXU));
    if (options_.copy.preserve || (entry.mode & S_IRWXU) != S_IRWXU) closing_.emplace_back(to, entry);
    return {};
  }
  void close_folders() {
    for (; !closing_.empty(); closing_.pop_back()) {
      const auto& [path, entry] = closing_.back();
      AttributeChange change;
      change.mode = entry.mode;
      failures_.add(options_.copy.preserve ? copy_owner(client_, entry, path)
                                           : client_.change_attributes(path, change));
    }
  }

  Status copy_one(const Entry& entry, const std::string& from, const std::string& to) {
    PIF_TRY(copy_file(program_, client_, entry, from, to, options_.copy));
    ++files_;
    bytes_ += entry.file_length.bytes;
    if (program_.common.json) documents_.push_back({{"from", from}, {"to", to}, {"bytes", entry.file_length.bytes}});
    return {};
  }

  // A link stays a link. It takes no other name's place.
  Status copy_other(const Entry& entry, const std::string& to) {
    PIF_TRY(client_.create_other(to, {entry.kind, entry.target, entry.device, entry.mode, {}, {}}));
    ++files_;
    return options_.copy.preserve ? copy_owner(client_, entry, to) : Status();
  }

  const Program& program_;
  const CpOptions& options_;
  Client& client_;
  Failures failures_;
  Destinations destinations_;                           // of files; a folder joins what is there
  std::vector<std::pair<std::string, Entry>> closing_;  // folders that get their modes in the end
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::uint64_t files_ = 0, bytes_ = 0;
  Json documents_ = Json::array();
};

Outcome copy(const Program& program, const CpOptions& options) {
  if (options.paths.size() < 2)
    return fail(Code::kInvalid, "cp takes what to copy, and where to: pif cp /a.txt /b.txt");
  PIF_TRY_VALUE(auto operands, SourcesAndTarget::parse(options.paths));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(operands.look_up(client));
  catch_interrupts();
  Copier copier(program, options, client);
  PIF_TRY(for_each_operand(without_repeats(operands.sources), copier.failures(),
                           [&](const std::string& from) { return copier.copy(from, operands.place_of(from)); }));
  return copier.report();
}

struct LinkOptions {
  std::string target, path;
  bool symbolic = false;
};

Outcome make_link(const Program& program, const LinkOptions& options) {
  if (!options.symbolic)
    return fail(Code::kInvalid,
                "a file has one name here: ln -s makes a symbolic link, pif cp copies a file, pif mv renames it");
  PIF_TRY_VALUE(const std::string path, parse_path(options.path));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(client.create_other(path, {EntryKind::kLink, options.target, 0, 0777, {}, {}}));
  return ExitCode::kDone;
}

}  // namespace

void add_copy_commands(CLI::App& app, Program& program) {
  auto options = std::make_shared<CpOptions>();
  CLI::App* cp =
      add_command(app, program, "cp", "Copy files and folders within the file system",
                  "  pif cp /a.txt /b.txt\n  pif cp '/logs/*.txt' /folder\n  pif cp -r /results /results.old\n"
                  "To copy a file into another layout: pif copy --width 2 /a /b.");
  cp->add_option("PATH", options->paths, "What to copy, then where to")->required()->type_name("SOURCE... TARGET");
  cp->add_flag("-r,-R,--recursive", options->recursive, "Folders with everything in them");
  cp->add_flag("-p,--preserve", options->copy.preserve,
               "Owner and group too, as far as you may set them (the mode is kept in any case)");
  cp->add_flag("-n,--no-clobber", options->copy.no_clobber, "Fail instead of replacing a file");
  cp->add_flag("--stale", program.common.stale, "Files that `pif stat` marks, too");
  on_run(cp, program, options, copy);

  auto link = std::make_shared<LinkOptions>();
  CLI::App* ln = add_command(app, program, "ln", "Make a symbolic link, for those who mount the file system",
                             "  pif ln -s ../data/a.txt /links/a\nThe commands of pif do not follow links.");
  ln->add_option("TARGET", link->target, "What the link says; it need not be there")->required();
  ln->add_option("PATH", link->path, "The link")->required();
  ln->add_flag("-s,--symbolic", link->symbolic, "There are no others");
  on_run(ln, program, link, make_link);
}

}  // namespace pif::cli
