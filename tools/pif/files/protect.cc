// protect: files without parity are made anew with it, under their names; so are those that lie on no pair of bevies.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "command/interrupt.h"
#include "command/options.h"
#include "command/program.h"
#include "command/progress.h"
#include "files/copy_file.h"
#include "files/copy_forks.h"
#include "names/operands.h"
#include "pif/base/print.h"
#include "pif/cluster/cluster.h"
#include "pif/parity/pairs.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct ProtectOptions {
  std::vector<std::string> paths;
  bool all = false;
  bool dry_run = false;
  std::uint32_t bevy = 0;
};

// One run. What cannot be protected while there is more is a failure of its own, and the rest goes on.
class Protector {
 public:
  // bevy: of files that have none; 0: they stay as they are.
  Protector(const Program& program, const ProtectOptions& options, Client& client, std::uint32_t bevy,
            std::vector<parity::BevyPair> pairs)
      : program_(program),
        options_(options),
        client_(client),
        bevy_(bevy),
        pairs_(std::move(pairs)),
        failures_(program) {}

  // A file that is named.
  Status find(const std::string& path) {
    PIF_TRY_VALUE(const Entry entry, client_.stat(path));
    if (entry.kind == EntryKind::kFolder)
      return fail(Code::kIsDirectory, path + " is a folder; pif protect --all goes through all folders");
    if (entry.bevies.empty() && bevy_ == 0)
      return fail(Code::kInvalid, path + " has no bevies, and the file system has no default for them: say --bevy B");
    note(path, entry);
    return {};
  }
  Status find_all() {
    return walk(client_, "/", failures_, [this](const std::string& path, const Entry& entry) -> Status {
      PIF_TRY(check_interrupt());
      if (entry.kind == EntryKind::kFile) note(path, entry);
      return {};
    });
  }

  Status protect_found() {
    if (options_.dry_run) return {};
    if (!found_.empty() && !program_.common.quiet && !program_.common.json)
      progress_.emplace("protect", bytes_found_, true);
    Status done;
    for (const Found& one : found_) {
      done = check_interrupt();
      if (!done) break;
      done = protect(one.path);
      if (!done && ends_all(done.error())) break;
      if (!done) failures_.add(at(one.path, done.error()));
      done = {};
      bytes_passed_ += one.bytes;
      if (progress_) progress_->set(bytes_passed_);
    }
    progress_.reset();
    return done;
  }

  Outcome report() {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
    if (program_.common.json) {
      Json document = {{"dry_run", options_.dry_run},
                       {"protected", documents()},
                       {"already", already_},
                       {"files", count()},
                       {"bytes", bytes()},
                       {"seconds", elapsed.count()}};
      failures_.add_to(document);
      PIF_TRY(print(document));
    } else if (options_.dry_run) {
      std::string text;
      for (const Found& one : found_) text += fmt::format("{}  {}\n", shown(one.path), human_bytes(one.bytes));
      PIF_TRY(print(text));
    }
    if (!program_.common.json && !program_.common.quiet)
      print_error(fmt::format("{} files, {} {}; {} have parity already\n", count(), human_bytes(bytes()),
                              options_.dry_run ? "would get parity" : "have parity now", already_));
    failures_.sum_up();
    return failures_.exit_code();
  }
  Failures& failures() { return failures_; }

 private:
  struct Found {
    std::string path;
    std::uint64_t bytes = 0;
  };

  // Older ones, and those without bevies if they are to get some.
  bool lacks_parity(const Entry& entry) const {
    return entry.kind == EntryKind::kFile && !entry.is_placed && !entry.is_protected &&
           (!entry.bevies.empty() || bevy_ > 0);
  }
  // Its companions are no pair of the file system: it was made while too few LFSs were there, or on LFSs that somebody
  // named. Only of bevies of the default size.
  bool is_off_pairs(const Entry& entry) const {
    if (entry.kind != EntryKind::kFile || entry.is_placed || !entry.is_protected || pairs_.empty()) return false;
    const std::size_t bevy = pairs_.front().first.size();
    const auto is_default = [bevy](std::uint32_t size) { return size == bevy; };
    if (entry.bevies.size() % 2 != 0 || entry.nodes.size() != bevy * entry.bevies.size()) return false;
    return std::all_of(entry.bevies.begin(), entry.bevies.end(), is_default) &&
           !parity::lies_on_pairs(entry.nodes, entry.bevies, pairs_);
  }
  bool is_to_be_made(const Entry& entry) const { return lacks_parity(entry) || is_off_pairs(entry); }
  void note(const std::string& path, const Entry& entry) {
    if (!is_to_be_made(entry)) already_ += entry.is_protected ? 1 : 0;
    if (!is_to_be_made(entry)) return;
    found_.push_back({path, entry.file_length.bytes});
    bytes_found_ += entry.file_length.bytes;
  }

  // The same LFSs in the same order, if bevies fit them and they are pairs; else as many as the server finds.
  CreateOptions options_for(const File& source, const Entry& entry) const {
    CreateOptions create;
    create.format = source.format();
    create.mode = entry.mode;
    create.attributes = source.attributes();
    create.modified_ns = entry.modified_ns;
    create.same_host_ok = true;  // as it is
    const bool fits = !entry.bevies.empty() || source.nodes().size() % (2 * bevy_) == 0;
    const bool keeps_nodes = fits && !is_off_pairs(entry);
    if (keeps_nodes) create.nodes.assign(source.nodes().begin(), source.nodes().end());
    create.bevies = entry.bevies;
    if (entry.bevies.empty()) create.bevy = bevy_;
    create.inherits_layout = false;
    return create;
  }

  // Nobody writes to the file meanwhile. The copy takes its name when it is complete, durable and of the same length;
  // until then nothing has changed.
  Status protect(const std::string& path) {
    PIF_TRY_VALUE(const Entry entry, client_.stat(path));
    if (!is_to_be_made(entry)) return {};  // meanwhile
    PIF_TRY_VALUE(File source, client_.open(path, Client::Mode::kHold));
    PIF_TRY_VALUE(const FileLength file_length, source.file_length());
    const CreateOptions create = options_for(source, entry);
    PIF_TRY_VALUE(File copy, client_.create(path, create));
    Status done = fill(source, copy, file_length);
    if (done) done = copy_forks(client_, source, copy);
    if (done) done = copy.commit();
    if (!done) {
      // The first error counts; what cannot be removed now, the server removes.
      static_cast<void>(copy.abort().has_value());
      return done;
    }
    PIF_TRY(copy_owner(client_, entry, path));
    made_.push_back({path, file_length.bytes});
    return {};
  }
  static Status fill(File& source, File& copy, const FileLength& file_length) {
    PIF_TRY(copy_records(source, copy, file_length.records));
    PIF_TRY_VALUE(const FileLength written, copy.file_length());
    if (written == file_length) return {};
    return fail(Code::kInternal, fmt::format("its copy has {} records and {} bytes, not {} and {}: it stays as it is",
                                             written.records, written.bytes, file_length.records, file_length.bytes));
  }

  const std::vector<Found>& listed() const { return options_.dry_run ? found_ : made_; }
  std::size_t count() const { return listed().size(); }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Found& one : listed()) sum += one.bytes;
    return sum;
  }
  Json documents() const {
    Json out = Json::array();
    for (const Found& one : listed()) out.push_back({{"path", one.path}, {"bytes", one.bytes}});
    return out;
  }

  const Program& program_;
  const ProtectOptions& options_;
  Client& client_;
  const std::uint32_t bevy_;
  const std::vector<parity::BevyPair> pairs_;
  Failures failures_;
  std::optional<Progress> progress_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::vector<Found> found_, made_;
  std::uint64_t bytes_found_ = 0, bytes_passed_ = 0, already_ = 0;
};

Outcome protect(const Program& program, const ProtectOptions& options) {
  if (options.all != options.paths.empty())
    return fail(Code::kInvalid, "protect takes files, or --all: pif protect /a.txt");
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(program.folder()));
  PIF_TRY(expand(client, paths));
  catch_interrupts();
  PIF_TRY_VALUE(SystemStatus status, client.status());
  Protector protector(program, options, client, options.bevy > 0 ? options.bevy : cluster.bevy,
                      std::move(status.pairs));
  PIF_TRY(options.all ? protector.find_all()
                      : for_each_operand(paths, protector.failures(),
                                         [&](const std::string& path) { return protector.find(path); }));
  PIF_TRY(protector.protect_found());
  return protector.report();
}

}  // namespace

void add_protect_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<ProtectOptions>();
  CLI::App* command = add_command(app, program, "protect", "Make files that lack parity anew with it",
                                  "  pif protect /old.dat\n"
                                  "  pif protect --all                all that lack it, or lie on no pair of bevies\n"
                                  "  pif protect --all --dry-run      which these are\n"
                                  "  pif protect --bevy 4 /plain      a file that has no bevies");
  command->add_option("FILE", options->paths, "Files to protect");
  command->add_flag("--all", options->all, "All files that lack parity, or lie on no pair of bevies, in all folders");
  add_bevy_option(command, options->bevy,
                  "Bevies of this size for files that have none (default: that of the file system)");
  command->add_flag("-n,--dry-run", options->dry_run, "Only list them");
  on_run(command, program, options, protect);
}

}  // namespace pif::cli
