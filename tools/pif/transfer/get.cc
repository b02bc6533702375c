// get, cat: interleaved files as local files and on stdout, byte for byte what put took.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <sodium.h>

#include "command/program.h"
#include "command/progress.h"
#include "names/entries.h"
#include "names/operand_paths.h"
#include "pif/base/print.h"
#include "pif/client/bulk.h"
#include "text/expand.h"
#include "text/text.h"
#include "transfer/get_files.h"
#include "transfer/transfers.h"

namespace pif::cli {
namespace {

struct GetOptions {
  std::vector<std::string> paths;
  std::string records;
  bool recursive = false;
  bool no_clobber = false;
  std::string compress;  // as --compress has it
  TreeOptions tree;
};

// How local files are compressed, and what their names end with.
struct LocalNames {
  Compression compression = Compression::kNone;
  std::string suffix;  // empty: the name was typed
};

constexpr const char* kStdout = "standard output";

// One run of get: walks what is named, and hands the files it finds to the pool. What cannot be got while there is more
// to get is a failure of its own, and the rest goes on.
class Getter {
 public:
  // is_alone: there is one operand.
  Getter(const Program& program, const GetOptions& options, const LocalNames& names, Client& client, Tally& tally,
         bool is_alone)
      : options_(options),
        names_(names),
        client_(client),
        tally_(tally),
        is_alone_(is_alone),
        files_(options.no_clobber, names.compression, options.tree, tally),
        pool_(program, tally.failures()) {}

  // into: the folder that was typed, if `local` is in it or is it; empty: `local` was typed.
  Status get(const std::string& path, const std::string& local, const std::string& into) {
    auto entry = client_.stat(path);
    if (!entry) return fail(at(path, entry.error()));
    if (entry->kind == EntryKind::kFolder) return get_tree(path, *entry, local, into);
    const bool is_file = entry->kind == EntryKind::kFile;
    const std::string to = is_file ? local + names_.suffix : local;
    PIF_TRY(destinations_.take(path, to));
    if (!is_file) {
      PIF_TRY_VALUE(const LocalTree* const tree, tree_at(into.empty() ? folder_of(local) : into));
      return get_other(*tree, path, to, *entry);
    }
    GetJob job{path, to, std::move(*entry)};
    if (!into.empty()) {
      PIF_TRY_VALUE(job.tree, tree_at(into));
    }
    if (!is_alone_) return add(std::move(job));
    tally_.expect(job.entry.file_length.bytes);
    return files_.get_one(client_, job);
  }

  // Everything that was begun has ended.
  Status finish() {
    const Status done = drain();
    close_folders();
    return done;
  }

 private:
  // What is in a folder whose own local folder could not be made is left out with it.
  Status get_tree(const std::string& path, const Entry& top, const std::string& local, const std::string& into) {
    if (!options_.recursive) return fail(Code::kIsDirectory, path + " is a folder; use -r to get all that is in it");
    if (!destinations_.take(path, local)) PIF_TRY(drain());  // what was got there before is added to
    PIF_TRY_VALUE(const LocalTree* const tree, tree_at(into.empty() ? folder_of(local) : into));
    PIF_TRY(make_local(*tree, local, top.mode));
    std::set<std::string> failed;
    const std::size_t above = path == "/" ? 0 : path.size();
    const std::string suffix(suffix_of(names_.compression));
    const auto visit = [&](const std::string& found, const Entry& below) -> Status {
      const std::string to = local + found.substr(above);
      const bool is_folder = below.kind == EntryKind::kFolder;
      const Status got = is_folder                        ? make_local(*tree, to, below.mode)
                         : below.kind == EntryKind::kFile ? add({found, to + suffix, below, tree})
                                                          : get_other(*tree, found, to, below);
      if (!got && ends_all(got.error())) return got;
      if (!got && is_folder) failed.insert(found);
      tally_.failures().add(got);
      return {};
    };
    return walk(client_, path, tally_.failures(), visit, {}, [&](const std::string& found) {
      return failed.contains(found.substr(0, found.rfind('/'))) || options_.tree.leaves_out(found.substr(above + 1));
    });
  }
  Status get_other(const LocalTree& tree, const std::string& path, const std::string& local, const Entry& entry) {
    PIF_TRY(tree.make_other(local, entry, options_.no_clobber));
    tally_.done(local, 0, [&] { return Json{{"path", path}, {"local", local}, {"kind", kind_word(entry.kind)}}; });
    return {};
  }
  // As it was typed; empty: the working folder.
  static std::string folder_of(const std::string& local) {
    return local.substr(0, local.size() - base_name(local).size());
  }
  Result<const LocalTree*> tree_at(const std::string& root) {
    if (const auto found = trees_.find(root); found != trees_.end()) return &found->second;
    PIF_TRY_VALUE(LocalTree tree, LocalTree::open(root));
    return &trees_.emplace(root, std::move(tree)).first->second;
  }

  Status add(GetJob job) {
    if (!files_.fits_batch(job))
      return pool_.add([this, job = std::move(job)](Client& client) { return files_.get_one(client, job); });
    batch_bytes_ += job.entry.file_length.bytes;
    batch_.push_back(std::move(job));
    return batch_.size() >= kBatch.files || batch_bytes_ >= kBatch.bytes ? send_batch() : Status();
  }
  Status send_batch() {
    if (batch_.empty()) return {};
    batch_bytes_ = 0;
    return pool_.add(
        [this, jobs = std::exchange(batch_, {})](Client& client) { return files_.get_batch(client, jobs); });
  }
  Status drain() {
    PIF_TRY(send_batch());
    return pool_.drain();
  }

  // A new one has the folder's mode, less the umask, when all is in it; until then its owner may write to it.
  Status make_local(const LocalTree& tree, const std::string& folder, std::uint32_t mode) {
    PIF_TRY_VALUE(const bool is_new, tree.make_folder(folder, mode | S_IRWXU));
    if (is_new && (mode & S_IRWXU) != S_IRWXU) closing_.push_back({&tree, folder, mode});
    return {};
  }
  // The deepest first: who may not search a folder cannot close what is in it.
  void close_folders() {
    for (; !closing_.empty(); closing_.pop_back())
      tally_.failures().add(closing_.back().tree->close_folder(closing_.back().folder, closing_.back().mode));
  }

  struct Closing {
    const LocalTree* tree;
    std::string folder;
    std::uint32_t mode;
  };

  const GetOptions& options_;
  const LocalNames& names_;
  Client& client_;
  Tally& tally_;
  const bool is_alone_;
  GetFiles files_;
  Destinations destinations_;               // of all operands
  std::map<std::string, LocalTree> trees_;  // by root
  std::vector<GetJob> batch_;
  std::uint64_t batch_bytes_ = 0;
  std::vector<Closing> closing_;  // folders that get this mode in the end
  TransferPool pool_;             // last: its work uses the rest
};

// For each path what `each` does; of several, those that fail are passed over.
template <typename Each>
Outcome for_each_path(const Program& program, const std::vector<std::string>& paths, Each each) {
  Failures failures(program);
  for (const auto& path : paths) {
    const Status done = each(path);
    if (!done && (paths.size() == 1 || ends_all(done.error()))) return fail(done.error());
    failures.add(done);
  }
  return failures.exit_code();
}

// What is written of a file on standard output, of which rows are gone, is incomplete: a negative answer.
class StaleCat {
 public:
  StaleCat(const Program& program, Client& client) : program_(program), client_(client) {}

  // Only with --stale; what cannot be looked up has no marks, and opening it says why.
  bool is_for(const std::string& path) const {
    const auto entry = program_.common.stale ? client_.stat(path) : Result<Entry>(Entry{});
    return entry && !entry->marks.empty() && !entry->is_placed;
  }
  Status take(const Result<StaleCopy>& copy) {
    if (!copy) return fail(copy.error());
    if (copy->missing.empty()) return {};
    is_incomplete_ = true;
    print_error(fmt::format("pif: {}\n", one_line(copy->missing)));
    return {};
  }
  Outcome end(Outcome outcome) const {
    return is_incomplete_ && outcome && *outcome == ExitCode::kDone ? Outcome(ExitCode::kNegative) : outcome;
  }

 private:
  const Program& program_;
  Client& client_;
  bool is_incomplete_ = false;
};

Outcome write_to_stdout(const Program& program, Client& client, const std::vector<std::string>& paths,
                        Compression compression) {
  StaleCat stale(program, client);
  return stale.end(for_each_path(program, paths, [&](const std::string& path) -> Status {
    if (stale.is_for(path))
      return stale.take(write_compressed(1, compression, kStdout,
                                         [&](int fd) { return write_stale_file(client, path, fd, kStdout); }));
    const bool is_shown = !program.common.quiet && ::isatty(1) == 0 && ::isatty(2) == 1;
    const auto entry = is_shown ? client.stat(path) : Result<Entry>(Entry{});
    Progress progress(path, entry ? entry->file_length.bytes : 0, is_shown);
    PIF_TRY(write_compressed(1, compression, kStdout,
                             [&](int fd) { return write_file(client, path, fd, kStdout, options_with(progress)); }));
    return {};
  }));
}

Status check_local(const Program& program, const std::string& local) {
  if (local.empty())
    return fail(Code::kInvalid, "the local file has no name; say where to get it to (-: standard output)");
  if (local.rfind("pif:", 0) == 0)
    return fail(Code::kInvalid, local + " is not a local file; pif copy copies within the file system");
  if (local == "-" && program.common.json)
    return fail(Code::kInvalid, "stdout cannot bear the file and a JSON document; leave one out");
  return local == "-" ? check_stdout() : Status{};
}

// Where a file or folder goes; where nobody says, to its own name here. into: the local path is a folder. A tree that
// is continued is there under that path's own name, unless it is inside.
std::string place_of(const GetOptions& options, const std::string& path, const std::string& local, bool into) {
  if (!into) return options.paths.size() == 1 ? base_name(path) : local;
  const std::string inside = join_path(local, base_name(path));
  std::error_code error;
  const bool may_go_on =
      options.recursive && options.tree.looks_at_existing() && options.paths.size() == 2 && local.back() != '/';
  return may_go_on && !std::filesystem::exists(inside, error) ? local : inside;
}

// is_typed: the name of the local file was.
Result<LocalNames> local_names(const std::string& option, const std::string& local, bool is_typed) {
  LocalNames names;
  if (option.empty()) return names;
  names.compression = option == kByName && is_typed ? compression_of_name(local) : compression_called(option);
  if (names.compression == Compression::kNone)
    return fail(Code::kInvalid, "no name says how to compress: --compress=gzip, zstd or xz");
  if (!is_typed) names.suffix = suffix_of(names.compression);
  return names;
}

// One path alone goes to a local file of its name, and so does each that one pattern alone matches.
Outcome get(const Program& program, const GetOptions& options) {
  const bool alone = options.paths.size() == 1;
  PIF_TRY_VALUE(auto paths, parse_paths({options.paths.begin(), options.paths.end() - (alone ? 0 : 1)}));
  const std::string local = alone ? base_name(paths[0]) : options.paths.back();
  PIF_TRY(check_local(program, local));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  std::error_code error;
  const bool into = !alone && local != "-" && std::filesystem::is_directory(local, error);
  PIF_TRY_VALUE(const LocalNames names, local_names(options.compress, local, !alone && !into));
  if (local == "-") return write_to_stdout(program, client, paths, names.compression);
  if (!into && !alone && (paths.size() > 1 || local.back() == '/'))
    return fail(Code::kNotDirectory, local + " is no folder; make it first: mkdir " + local);
  const bool is_single = paths.size() == 1;
  Tally tally(program, is_single ? paths[0] : fmt::format("{} files", paths.size()));
  Status ended;
  {
    Getter getter(program, options, names, client, tally, is_single);
    for (const auto& path : without_repeats(paths)) {
      ended = getter.get(path, place_of(options, path, local, into), into ? local : "");
      if (!ended && (is_single || ends_all(ended.error()))) break;
      tally.failures().add(std::exchange(ended, {}));
    }
    const Status finished = getter.finish();
    if (ended) ended = finished;
  }
  if (ended) return tally.report();
  tally.failures().sum_up();
  return fail(ended.error());
}

// ---- cat ----

std::string base64(std::span<const std::byte> bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string out(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kVariant);
  out.pop_back();  // the end of a C string
  return out;
}

// The next records, packed, at most a few megabytes.
Result<RecordBatch> next_records(File& file, RecordNumber first, std::uint64_t count, const FileLength& file_length) {
  if (!file.format().is_fixed()) return file.read_batch_at(first, count);
  const std::uint32_t length = file.format().record_length;
  RecordBatch batch;
  const std::uint64_t wanted = std::min<std::uint64_t>(count, std::max<std::uint64_t>(1, (1u << 20) / length));
  batch.data.resize(wanted * length);
  PIF_TRY_VALUE(const std::uint64_t got, file.read_at(first, batch.data, wanted));
  for (std::uint64_t i = 0; i < got; ++i) batch.lengths.push_back(fixed_record_bytes(length, file_length, first + i));
  return batch;
}

// Records of files in base64, as one JSON document: {"files":[{"path":...,"records":[{"record":n,"base64":"..."}]}]}.
// It is printed record after record, and begins with what can be read of the first file.
class JsonCat {
 public:
  Status add(Client& client, const std::string& path, const OpenRange& range) {
    auto file = client.open(path);
    if (!file) return fail(at(path, file.error()));
    PIF_TRY_VALUE(const FileLength file_length, file->file_length());
    PIF_TRY(begin(path, header_of(*file)));
    PIF_TRY(add_records(*file, path, range.clip(file_length.records), file_length));
    closing_ = "]";
    return print(std::string("]}"));
  }
  // After a file that could not be read to its end: the next one can follow.
  Status give_up() {
    if (closing_.size() <= 1) return {};
    closing_ = "]";
    return print(std::string("]}"));
  }
  Status end(const Failures& failures) {
    return print(std::string(closing_.empty() ? kBeginning : "") + "]" + failures.members() + "}\n");
  }
  // What ends the part that is printed; empty: nothing is.
  const std::string& closing() const { return closing_; }

 private:
  static constexpr const char* kBeginning = "{\"files\":[";

  Status begin(const std::string& path, const std::string& header) {
    const std::string before = closing_.empty() ? kBeginning : ",";
    closing_ = "]}]";
    const Json document = {
        {"path", path}, {"header_base64", base64(std::as_bytes(std::span(header)))}, {"records", Json::array()}};
    std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    text.resize(text.size() - std::string_view("]}").size());  // records follow
    return print(before + text);
  }
  static Status add_records(File& file, const std::string& path, Range range, const FileLength& file_length) {
    for (RecordNumber next = range.begin; next < range.end;) {
      PIF_TRY_VALUE(const RecordBatch batch, next_records(file, next, range.end - next, file_length));
      if (batch.lengths.empty()) return fail(Code::kStaleFile, path + " became shorter while it was read");
      std::string text;
      std::size_t begin = 0;
      for (const std::uint32_t length : batch.lengths) {
        if (next != range.begin) text += ',';
        text += Json{{"record", next}, {"base64", base64(std::span(batch.data).subspan(begin, length))}}.dump();
        begin += length;
        ++next;
      }
      PIF_TRY(print(text));
    }
    return {};
  }

  std::string closing_;
};

Outcome cat_json(const Program& program, Client& client, const std::vector<std::string>& paths,
                 const OpenRange& range) {
  JsonCat cat;
  Failures failures(program);
  for (const auto& path : paths) {
    const Status added = cat.add(client, path, range);
    if (!added && (paths.size() == 1 || ends_all(added.error())))
      return cat.closing().empty() ? Outcome(fail(added.error())) : program.fail_within(added.error(), cat.closing());
    failures.add(added);
    if (!added) PIF_TRY(cat.give_up());
  }
  PIF_TRY(cat.end(failures));
  return failures.exit_code();
}

// Only records, without a header: it is none.
Outcome cat_records(const Program& program, Client& client, const std::vector<std::string>& paths,
                    const OpenRange& range) {
  StaleCat stale(program, client);
  BulkOptions options;
  options.records = {range.begin, range.end.value_or(UINT64_MAX)};
  return stale.end(for_each_path(program, paths, [&](const std::string& path) -> Status {
    if (stale.is_for(path)) return stale.take(write_stale_records(client, path, options.records, 1, kStdout));
    auto file = client.open(path);
    if (!file) return fail(at(path, file.error()));
    const auto moved = export_stream(*file, 1, options);
    if (!moved) return fail(at(path, moved.error()));
    return {};
  }));
}

Outcome cat(const Program& program, const GetOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY(check_stdout());
  OpenRange range;
  if (!options.records.empty()) {
    PIF_TRY_VALUE(range, parse_range(options.records));
  }
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  if (program.common.json) return cat_json(program, client, paths, range);
  return options.records.empty() ? write_to_stdout(program, client, paths, Compression::kNone)
                                 : cat_records(program, client, paths, range);
}

}  // namespace

void add_get_commands(CLI::App& app, Program& program) {
  auto get_options = std::make_shared<GetOptions>();
  CLI::App* get_command = add_command(app, program, "get", "Write files as local files, byte for byte what put took",
                                      "  pif get /big.dat copy.dat\n  pif get /log.txt                 as ./log.txt\n"
                                      "  pif get /a.txt /b.txt folder/\n  pif get -r /results results\n"
                                      "  pif get /big.dat - | sha256sum\n"
                                      "  pif get --compress /log.txt log.txt.gz\n"
                                      "  pif get --compress=zstd -r /logs .       as logs/....zst");
  get_command
      ->add_option("PATH", get_options->paths,
                   "Files, then the local file or folder they go to (-: standard output; of one file alone: here)")
      ->required()
      ->expected(1, 1 << 20)
      ->type_name("FILE... [LOCAL]");
  get_command->add_flag("-r,--recursive", get_options->recursive, "Folders with everything in them");
  get_command->add_flag("--no-clobber", get_options->no_clobber, "Fail instead of replacing a local file");
  get_command
      ->add_flag("--compress{auto}", get_options->compress,
                 "Compress local files: as LOCAL's name says, .gz, .zst, .xz, or as gzip, zstd or xz")
      ->check(CLI::IsMember({"auto", "gzip", "zstd", "xz"}))
      ->type_name("gzip|zstd|xz");
  add_tree_options(get_command, get_options->tree);
  get_command->add_flag("--stale", program.common.stale, "Files that `pif stat` marks, too");
  on_run(get_command, program, get_options, get);

  auto cat_options = std::make_shared<GetOptions>();
  CLI::App* cat_command = add_command(app, program, "cat", "Write files on standard output",
                                      "  pif cat /log.txt | grep error\n  pif cat --records 10:20 /log.txt\n"
                                      "  pif cat --records 7:8 --json /sort.in      records apart, in base64");
  cat_command->add_option("FILE", cat_options->paths, "The files, one after another")->required();
  cat_command->add_option("--records", cat_options->records, "Only these, half open, from 0; without the kept header")
      ->type_name("A:B");
  cat_command->add_flag("--stale", program.common.stale, "Files that `pif stat` marks, too");
  on_run(cat_command, program, cat_options, cat);
}

}  // namespace pif::cli
