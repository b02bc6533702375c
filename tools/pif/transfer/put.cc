// put: local files, trees and streams into interleaved files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "command/interrupt.h"
#include "command/program.h"
#include "names/entries.h"
#include "names/operand_paths.h"
#include "names/striping.h"
#include "pif/base/inheriting.h"
#include "pif/base/typed_path.h"
#include "text/text.h"
#include "transfer/put_files.h"
#include "transfer/transfers.h"

namespace pif::cli {
namespace {

struct PutOptions {
  std::vector<std::string> paths;
  StripingOptions striping;
  LocalFormat local;
  bool same_host_ok = false;
  bool recursive = false;
  bool no_clobber = false;
  std::string links;  // follow, skip, store; empty: those to files are followed, those to folders left out
  TreeOptions tree;
};

Result<CreateOptions> create_options(Client& client, const PutOptions& options) {
  CreateOptions create;
  PIF_TRY_VALUE(Striping said, striping_of(client, options.striping));
  create.format = said.format.value_or(create.format);
  create.inherits_format = !said.format;
  if (options.local.text != TextKind::kPlain) {
    create.format = Format::variable();
    create.inherits_format = false;
  }
  create.width = said.width;
  create.nodes = std::move(said.nodes);
  if (said.bevy) create.bevy = *said.bevy == 0 ? kNoBevies : *said.bevy;
  create.same_host_ok = options.same_host_ok;
  create.exclusive = options.no_clobber;
  return create;
}

// What a local file is called in the file system.
std::string stored_name(const std::string& local, const LocalFormat& format) {
  return without_suffix(local, format.compression_of(local));
}

// One run of put: walks what is named, and hands the files it finds to the pool.
class Putter {
 public:
  // is_alone: there is one operand.
  Putter(const Program& program, const PutOptions& options, Client& client, CreateOptions create, Tally& tally,
         bool is_alone)
      : options_(options),
        client_(client),
        create_(std::move(create)),
        tally_(tally),
        is_alone_(is_alone),
        files_(create_, options.local, options.tree, catch_interrupts(), tally),
        pool_(program, tally.failures()) {}

  // A file, a folder or "-".
  Status put(const std::string& local, const std::string& target) {
    if (local == "-") return files_.put_one(client_, {"standard input", target, 0644, 0, {}}, 0);
    struct stat about {};
    if (::stat(local.c_str(), &about) != 0) return fail_errno(errno, "cannot read " + local);
    if (!S_ISDIR(about.st_mode)) {
      PIF_TRY(destinations_.take(local, target));
      return put_plain(local, target, about);
    }
    if (!options_.recursive) return fail(Code::kIsDirectory, local + " is a folder; use -r to put all that is in it");
    if (!destinations_.take(local, target)) PIF_TRY(drain());  // what was put there before is added to
    operand_ = local;
    PIF_TRY_VALUE(const bool is_new, make_target(target, about.st_mode & kModeBits));
    return put_tree({local, target, about.st_mode & kModeBits, {about.st_dev, about.st_ino}}, is_new);
  }

  // Everything that was begun has ended.
  Status finish() {
    PIF_TRY(drain());
    for (const auto& [folder, mode] : std::exchange(closing_, {})) tally_.failures().add(set_mode(folder, mode));
    return {};
  }

 private:
  using Place = std::pair<dev_t, ino_t>;
  struct Folder {
    std::string local, target;
    std::uint32_t mode = 0;
    Place place;
  };

  Status put_plain(const std::string& local, const std::string& target, const struct stat& about) {
    PutJob job = PutJob::of(local, target, about);
    if (is_alone_ && operand_.empty()) {
      if (options_.local.compression_of(local) == Compression::kNone) tally_.expect(job.bytes);
      return files_.put_one(client_, job);
    }
    if (!files_.fits_batch(job))
      return pool_.add([this, job = std::move(job)](Client& client) { return files_.put_one(client, job); });
    batch_bytes_ += job.bytes;
    batch_.push_back(std::move(job));
    return batch_.size() >= kBatch.files || batch_bytes_ >= kBatch.bytes ? send_batch() : Status();
  }
  Status send_batch() {
    if (batch_.empty()) return {};
    batch_bytes_ = 0;
    return pool_.add(
        [this, jobs = std::exchange(batch_, {})](Client& client) { return files_.put_batch(client, jobs); });
  }
  Status drain() {
    PIF_TRY(send_batch());
    return pool_.drain();
  }

  // Depth first, in name order, a folder's files before its folders; folders that are there already are used. What
  // cannot be put is a failure of its own, and the rest goes on; an error is what ends all of it.
  Status put_tree(const Folder& folder, bool is_new) {
    std::error_code error;
    std::vector<std::filesystem::directory_entry> entries;
    for (std::filesystem::directory_iterator at(folder.local, error), end; !error && at != end; at.increment(error))
      entries.push_back(*at);
    if (error)
      tally_.failures().add(Error{Code::kIo, fmt::format("cannot list {}: {}", folder.local, error.message()), {}});
    std::sort(entries.begin(), entries.end());
    std::vector<Folder> below;
    std::map<std::string, std::string> taken;  // local names, by what they are called in the target
    above_.push_back(folder.place);
    for (const auto& entry : entries) {
      PIF_TRY(check_interrupt());
      const std::string local = entry.path().string();
      if (options_.tree.leaves_out(std::filesystem::path(local).lexically_relative(operand_).string())) continue;
      const std::string name = name_in_target(entry);
      const auto [other, is_free] = taken.emplace(name, local);
      PIF_TRY(go_on(is_free ? put_found(local, join_path(folder.target, name), below)
                            : fail(Code::kExists, fmt::format("{} is left out: {} is {} there", local, other->second,
                                                              join_path(folder.target, name)))));
    }
    const auto made = make_targets(below, is_new);
    if (!made && ends_all(made.error())) return fail(made.error());
    if (!made) tally_.failures().add(made.error());
    for (std::size_t i = 0; made && i < below.size(); ++i)
      if ((*made)[i]) PIF_TRY(put_tree(below[i], *(*made)[i]));
    above_.pop_back();
    if (is_new && (folder.mode & S_IRWXU) != S_IRWXU) closing_.emplace_back(folder.target, folder.mode);
    return {};
  }
  // Only what is decompressed has another one.
  std::string name_in_target(const std::filesystem::directory_entry& entry) const {
    const std::string name = entry.path().filename().string();
    std::error_code error;
    const bool is_stored_link = options_.links == "store" && entry.is_symlink(error);
    return entry.is_regular_file(error) && !is_stored_link ? stored_name(name, options_.local) : name;
  }
  Status go_on(Status done) {
    if (!done && ends_all(done.error())) return done;
    tally_.failures().add(done);
    return {};
  }

  // What a folder has; folders go to `below`.
  Status put_found(const std::string& local, const std::string& target, std::vector<Folder>& below) {
    struct stat about {};
    if (::lstat(local.c_str(), &about) != 0) return fail_errno(errno, "cannot read " + local);
    const bool is_link = S_ISLNK(about.st_mode);
    if (is_link && options_.links == "skip") {
      tally_.left_out_link();
      return {};
    }
    if (is_link && options_.links == "store") return put_link(local, target);
    if (is_link && ::stat(local.c_str(), &about) != 0)
      return fail(Code::kNotFound, local + " is a link that leads nowhere; it is left out");
    if (S_ISREG(about.st_mode)) return put_plain(local, target, about);
    if (!S_ISDIR(about.st_mode))
      return fail(Code::kUnsupported, local + " is neither a file nor a folder; it is left out");
    const Place place{about.st_dev, about.st_ino};
    if (is_link && options_.links != "follow")
      return fail(Code::kUnsupported,
                  local + " is a link to a folder; it is left out: --links follow takes what it leads to");
    if (std::find(above_.begin(), above_.end(), place) != above_.end())
      return fail(Code::kUnsupported, local + " is a link to a folder that it is in; it is left out");
    below.push_back({local, target, about.st_mode & kModeBits, place});
    return {};
  }

  // One that is there already is no change; another one takes the place of what is there, unless that is a folder.
  Status put_link(const std::string& local, const std::string& target) {
    std::error_code error;
    const std::string leads_to = std::filesystem::read_symlink(local, error).string();
    if (error) return fail(Code::kIo, fmt::format("cannot read the link {}: {}", local, error.message()));
    const auto make = [&] { return client_.create_other(target, {EntryKind::kLink, leads_to, 0, 0777, {}, {}}); };
    Status made = make();
    if (!made && made.error().code == Code::kExists && !options_.no_clobber) {
      PIF_TRY_VALUE(const Entry existing, client_.stat(target));
      const bool is_same = existing.kind == EntryKind::kLink && existing.target == leads_to;
      if (!is_same && existing.kind != EntryKind::kFolder) PIF_TRY(client_.remove(target));
      made = is_same ? Status() : make();
    }
    if (!made) return made;
    tally_.done(local, 0, [&] { return Json{{"local", local}, {"path", target}, {"target", leads_to}}; });
    return {};
  }

  // Whether it was made. A new folder has the local one's mode, when all is in it; until then its owner may write to
  // it.
  Result<bool> make_target(const std::string& target, std::uint32_t mode) {
    PIF_TRY_VALUE(const bool there, is_folder(client_, target));
    if (there) return false;
    PIF_TRY(client_.make_folder(target, false, mode | S_IRWXU));
    return true;
  }
  // Of each: whether it was made; nothing where it failed, which is said.
  Result<std::vector<std::optional<bool>>> make_targets(const std::vector<Folder>& folders, bool are_new) {
    std::vector<std::optional<bool>> made(folders.size());
    std::vector<std::string> targets;
    for (const Folder& folder : folders) targets.push_back(folder.target);
    if (!are_new && !folders.empty()) {
      PIF_TRY_VALUE(const auto entries, client_.stat_many(targets));
      for (std::size_t i = 0; i < folders.size(); ++i)
        if (entries[i] && entries[i]->kind == EntryKind::kFolder) made[i] = false;
    }
    std::vector<Client::NewFolder> wanted;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < folders.size(); ++i) {
      if (made[i]) continue;
      wanted.push_back({folders[i].target, folders[i].mode | S_IRWXU});
      which.push_back(i);
    }
    const auto outcome = client_.make_folder_many(wanted);
    for (std::size_t i = 0; i < which.size(); ++i) {
      PIF_TRY(go_on(outcome[i] ? Status() : fail(at(wanted[i].path, outcome[i].error()))));
      if (outcome[i]) made[which[i]] = true;
    }
    return made;
  }
  Status set_mode(const std::string& target, std::uint32_t mode) {
    AttributeChange change;
    change.mode = mode;
    return client_.change_attributes(target, change);
  }

  const PutOptions& options_;
  Client& client_;
  const CreateOptions create_;
  Tally& tally_;
  const bool is_alone_;
  PutFiles files_;
  std::string operand_;        // the folder that is walked
  Destinations destinations_;  // of all operands
  std::vector<Place> above_;   // the folders that lead to where the walk is
  std::vector<PutJob> batch_;
  std::uint64_t batch_bytes_ = 0;
  std::vector<std::pair<std::string, std::uint32_t>>
      closing_;        // folders that get this mode in the end, the deepest first
  TransferPool pool_;  // last: its work uses the rest
};

// Name that a local path gets inside a folder.
Result<std::string> name_of(const std::string& local, const LocalFormat& format) {
  if (local == "-") return fail(Code::kInvalid, "standard input has no name; say which file it becomes");
  const std::string name = std::filesystem::path(local).lexically_normal().filename().string();
  std::error_code none;
  if (!name.empty() && name != "." && name != "..")
    return std::filesystem::is_directory(local, none) ? name : stored_name(name, format);
  // "x/" and "/x/.." are named by what they are.
  std::error_code error;
  const auto full = std::filesystem::canonical(local, error);
  if (error) return fail(Code::kNotFound, fmt::format("cannot read {}: {}", local, error.message()));
  return full.filename().string();
}

Status check_sources(const std::vector<std::string>& sources, const LocalFormat& format) {
  if (sources.empty()) return fail(Code::kInvalid, "put takes local files, then where they go: pif put a.txt /a.txt");
  for (const auto& source : sources) {
    if (source.rfind("pif:", 0) == 0)
      return fail(Code::kInvalid, source + " is in the file system already; pif copy copies such files");
    if (source == "-" && format.decompress == kByName)
      return fail(Code::kInvalid, "standard input has no name that says what it is: --decompress=gzip, zstd or xz");
  }
  return {};
}

// Whether the last name is "." or "..": then cp(1) takes what is in the folder, and not the folder.
bool means_contents(std::string_view source) {
  while (source.size() > 1 && source.ends_with('/')) source.remove_suffix(1);
  const std::string_view name = source.substr(source.rfind('/') + 1);
  return name == "." || name == "..";
}

// Where a local file or folder goes. into: the target is a folder. A tree that is continued is there under the target's
// own name, unless the target has it.
Result<std::string> place_of(Client& client, const PutOptions& options, const std::string& source,
                             const std::string& target, bool into) {
  if (!into || means_contents(source)) return target;
  PIF_TRY_VALUE(const std::string name, name_of(source, options.local));
  const std::string inside = join_path(target, name);
  std::error_code error;
  const bool may_go_on = options.recursive && options.tree.looks_at_existing() && options.paths.size() == 2 &&
                         options.paths.back().back() != '/' && std::filesystem::is_directory(source, error);
  if (!may_go_on) return inside;
  PIF_TRY_VALUE(const bool has_it, is_folder(client, inside));
  return has_it ? inside : target;
}

Outcome put(const Program& program, const PutOptions& options) {
  std::vector<std::string> sources(options.paths.begin(), options.paths.end() - 1);
  PIF_TRY(check_sources(sources, options.local));
  const std::string& last = options.paths.back();
  PIF_TRY_VALUE(const std::string target, parse_path(last));
  PIF_TRY(format_of(options.striping));  // wrong usage before anything is asked
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(CreateOptions create, create_options(client, options));
  PIF_TRY_VALUE(const bool into, is_folder(client, target));
  if (!into && (sources.size() > 1 || last.back() == '/'))
    return fail(Code::kNotFound, target + " is no folder; make it with: pif mkdir -p " + target);
  const bool is_alone = sources.size() == 1;
  Tally tally(program, is_alone ? target : fmt::format("{} files", sources.size()));
  Status ended;
  {
    Putter putter(program, options, client, std::move(create), tally, is_alone);
    for (const auto& source : without_repeats(sources)) {
      const auto to = place_of(client, options, source, target, into);
      ended = to ? putter.put(source, *to) : fail(to.error());
      if (!ended && (is_alone || ends_all(ended.error()))) break;
      tally.failures().add(std::exchange(ended, {}));
    }
    if (ended) ended = putter.finish();
  }
  if (ended) return tally.report();
  tally.failures().sum_up();
  if (options.recursive && ended.error().code == Code::kCancelled)
    ended.error().text += "; the same command with --skip-existing goes on from here";
  return fail(ended.error());
}

}  // namespace

namespace {

// --csv, --fasta, --fastq, --decompress. `options` outlives the command.
void add_text_options(CLI::App* command, PutOptions& options) {
  const auto is = [&options](TextKind kind) {
    return [&options, kind] {
      options.local.text = kind;
      if (kind == TextKind::kCsv) options.local.header = kCsvHeader;
    };
  };
  std::vector<CLI::Option*> kinds = {
      command->add_flag_callback(
          "--csv", is(TextKind::kCsv),
          "CSV (RFC 4180): records end at line breaks outside of quotes; the line of column names is kept aside"),
      command->add_flag_callback("--fasta", is(TextKind::kFasta), "FASTA: each entry is a record, all its lines"),
      command->add_flag_callback("--fastq", is(TextKind::kFastq), "FASTQ: each entry is a record, all its lines")};
  for (CLI::Option* const kind : kinds) {
    for (const char* const other : {"--header", "--record-length", "--lines", "--delimited"})
      kind->excludes(command->get_option(other));
    for (CLI::Option* const other : kinds)
      if (other != kind) kind->excludes(other);
  }
  command
      ->add_flag("--decompress{auto}", options.local.decompress,
                 "Store what is in compressed files: by their names, .gz, .zst, .xz, or all as gzip, zstd or xz")
      ->check(CLI::IsMember({"auto", "gzip", "zstd", "xz"}))
      ->type_name("gzip|zstd|xz");
}

}  // namespace

void add_put_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<PutOptions>();
  CLI::App* command =
      add_command(app, program, "put", "Store local files as interleaved files; durable when it returns",
                  "  pif put big.dat /big.dat                        64 KiB records over all LFSs\n"
                  "  pif put --record-length 100 sort.in /sort.in     records of 100 bytes\n"
                  "  pif put --lines --width 2 log.txt /log.txt       text lines over two LFSs\n"
                  "  pif put -r results/ /results                     a tree\n"
                  "  pif put -r --skip-existing results/ /results     the rest of it, after an interruption\n"
                  "  pif put -r --exclude '*.o' --exclude .git src /  a tree without some of it\n"
                  "  zcat data.gz | pif put - /data                   a stream\n"
                  "  pif put --header pbm image.pbm /image            rows of the bitmap; its header is kept aside\n"
                  "  pif put --csv table.csv /table                   records of a table, for pif sort --csv\n"
                  "  pif put --fastq reads.fastq.gz /reads            entries, decompressed\n"
                  "  pif put --lines --decompress log.gz /log         lines of what is in it");
  command->add_option("PATH", options->paths, "Local files (- is standard input), then the file or folder they go to")
      ->required()
      ->expected(2, 1 << 20)
      ->type_name("LOCAL... TARGET");
  add_striping_options(command, options->striping, false);
  command
      ->add_option("--header", options->local.header, "Keep leading bytes aside, as an attribute: a number, pbm or bed")
      ->type_name("N|pbm|bed");
  add_text_options(command, *options);
  command->add_flag("--same-host-ok", options->same_host_ok,
                    "Bevies that have each other's parity may be on one machine, though there are several");
  command->add_flag("-r,--recursive", options->recursive, "Folders with everything in them");
  command->add_flag("--no-clobber", options->no_clobber, "Fail instead of replacing a file");
  command
      ->add_option("--links", options->links,
                   "Links in a tree: follow, skip or store all of them (default: follow those to files)")
      ->check(CLI::IsMember({"follow", "skip", "store"}))
      ->type_name("follow|skip|store");
  add_tree_options(command, options->tree);
  on_run(command, program, options, put);
}

}  // namespace pif::cli
