// get, cat: interleaved files as local files and on stdout, byte for byte what put took.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "entries.h"
#include "files/expand.h"
#include "header.h"
#include "io.h"
#include "pif/base/say.h"
#include "pif/base/typed_path.h"
#include "pif/base/write_all.h"
#include "pif/client/bulk.h"
#include "program.h"
#include "progress.h"
#include "text.h"

namespace pif::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string records;
  bool recursive = false;
  bool no_clobber = false;
};

constexpr const char* kStdout = "standard output";

std::string header_of(File& file) {
  const auto found = file.attributes().find(std::string(kHeaderAttribute));
  return found == file.attributes().end() ? "" : found->second;
}

// All of a file to a descriptor, its header first. Returns bytes written.
Result<std::uint64_t> write_file(Client& client, const std::string& path, int fd, const std::string& name, bool quiet) {
  auto file = client.open(path);
  if (!file) return fail(at(path, file.error()));
  const std::string header = header_of(*file);
  PIF_TRY(write_all(fd, std::as_bytes(std::span(header)), "cannot write to " + name));
  auto extent = file->extent();
  if (!extent) return fail(at(path, extent.error()));
  Progress progress(path, extent->bytes, !quiet);
  const auto moved = export_stream(*file, fd, options_with(progress));
  if (!moved) return fail(at(path, moved.error()));
  PIF_TRY(file->close());
  return moved->bytes + header.size();
}

// One run of get. What cannot be got while there is more to get is a failure of its own, and the rest goes on.
class Getter {
 public:
  Getter(const Program& program, const Options& options, Client& client)
      : program_(program), options_(options), client_(client) {}

  Status get(const std::string& path, const std::string& local) {
    auto entry = client_.stat(path);
    if (!entry) return fail(at(path, entry.error()));
    if (entry->kind == EntryKind::kFile) return get_plain(path, local, entry->mode);
    if (!options_.recursive) return fail(Code::kIsDirectory, path + " is a folder; use -r to get all that is in it");
    PIF_TRY(make_local(local, entry->mode));
    const Status walked = walk(client_, path, failures_, [&](const std::string& found, const Entry& below) -> Status {
      const std::string to = local + found.substr(path == "/" ? 0 : path.size());
      const Status got = below.kind == EntryKind::kFolder ? make_local(to, below.mode) : get_plain(found, to, below.mode);
      if (!got && ends_all(got.error())) return got;
      failures_.add(got);
      return {};
    });
    close_folders();
    return walked;
  }
  Failures& failures() { return failures_; }

  Outcome report() {
    const std::chrono::duration<double> elapsed = Progress::Clock::now() - started_;
    if (program_.common.verbose)
      say(fmt::format("pif: {} files, {} in {}\n", files_, human_bytes(bytes_), human_time(elapsed)));
    if (program_.common.json) {
      Json document = {{"files", documents_}, {"bytes", bytes_}, {"seconds", elapsed.count()}};
      failures_.add_to(document);
      PIF_TRY(print(document));
    }
    failures_.sum_up();
    return failures_.exit_code();
  }

 private:
  // A new one has the folder's mode, less the umask, when all is in it; until then its owner may write to it.
  Status make_local(const std::string& folder, std::uint32_t mode) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
    if (::mkdir(folder.c_str(), mode | S_IRWXU) == 0) {
      if ((mode & S_IRWXU) != S_IRWXU) closing_.emplace_back(folder, mode);
      return {};
    }
    const int why = errno;
    if (why == EEXIST && std::filesystem::is_directory(folder, error)) return {};
    return fail_errno(why, "cannot make the folder " + folder);
  }
  // The deepest first: who may not search a folder cannot close what is in it.
  void close_folders() {
    for (; !closing_.empty(); closing_.pop_back()) {
      const auto& [folder, mode] = closing_.back();
      struct stat about {};  // the umask has been at it
      const mode_t kept = mode | ~static_cast<mode_t>(S_IRWXU);
      if (::stat(folder.c_str(), &about) != 0 || ::chmod(folder.c_str(), about.st_mode & kept) != 0)
        failures_.add(fail_errno(errno, "cannot set the mode of " + folder).value());
    }
  }

  // Devices and pipes are written to as they are, anything else is replaced when all of it is there.
  Status get_plain(const std::string& path, const std::string& local, std::uint32_t mode) {
    std::uint64_t bytes = 0;
    struct stat about {};
    const bool special = ::stat(local.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
    if (special) {
      UniqueFd fd(::open(local.c_str(), O_WRONLY | O_CLOEXEC));
      if (!fd) return fail_errno(errno, "cannot write to " + local);
      PIF_TRY_VALUE(bytes, write_file(client_, path, fd.get(), local, program_.common.quiet));
    } else {
      PIF_TRY_VALUE(NewFile file, NewFile::create(local, mode));
      PIF_TRY_VALUE(bytes, write_file(client_, path, file.fd(), local, program_.common.quiet));
      PIF_TRY(file.publish(options_.no_clobber));
    }
    ++files_;
    bytes_ += bytes;
    if (program_.common.json) documents_.push_back({{"path", path}, {"local", local}, {"bytes", bytes}});
    return {};
  }

  const Program& program_;
  const Options& options_;
  Client& client_;
  Progress::Clock::time_point started_ = Progress::Clock::now();
  std::uint64_t files_ = 0, bytes_ = 0;
  Json documents_ = Json::array();
  Failures failures_{program_};
  std::vector<std::pair<std::string, std::uint32_t>> closing_;  // folders that get this mode in the end
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

Outcome write_to_stdout(const Program& program, Client& client, const std::vector<std::string>& paths) {
  return for_each_path(program, paths, [&](const std::string& path) -> Status {
    PIF_TRY(write_file(client, path, 1, kStdout, program.common.quiet || ::isatty(1) == 1));
    return {};
  });
}

Result<std::vector<std::string>> parse_paths(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const auto& text : texts) {
    PIF_TRY_VALUE(out.emplace_back(), parse_path(text));
  }
  return out;
}

Status check_local(const Program& program, const std::string& local) {
  if (local.empty()) return fail(Code::kInvalid, "the local file has no name; say where to get it to (-: standard output)");
  if (local.rfind("pif:", 0) == 0)
    return fail(Code::kInvalid, local + " is not a local file; pif copy copies within the file system");
  if (local == "-" && program.common.json)
    return fail(Code::kInvalid, "stdout cannot bear the file and a JSON document; leave one out");
  return local == "-" ? check_stdout() : Status{};
}

// One path alone goes to a local file of its name, and so does each that one pattern alone matches.
Outcome get(const Program& program, const Options& options) {
  const bool alone = options.paths.size() == 1;
  PIF_TRY_VALUE(auto paths, parse_paths({options.paths.begin(), options.paths.end() - (alone ? 0 : 1)}));
  const std::string local = alone ? base_name(paths[0]) : options.paths.back();
  PIF_TRY(check_local(program, local));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  if (local == "-") return write_to_stdout(program, client, paths);
  std::error_code error;
  const bool into = !alone && std::filesystem::is_directory(local, error);
  if (!into && !alone && (paths.size() > 1 || local.back() == '/'))
    return fail(Code::kNotDirectory, local + " is no folder; make it first: mkdir " + local);
  Getter getter(program, options, client);
  for (const auto& path : paths) {
    const Status got = getter.get(path, into ? join_path(local, base_name(path)) : alone ? base_name(path) : local);
    if (!got && (paths.size() == 1 || ends_all(got.error()))) return fail(got.error());
    getter.failures().add(got);
  }
  return getter.report();
}

// ---- cat ----

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < n ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += j <= n ? kDigits[bits >> (18 - 6 * j) & 63u] : '=';
  }
  return out;
}

// The next records, packed, at most a few megabytes.
Result<RecordBatch> next_records(File& file, RecordNumber first, std::uint64_t count, const Extent& extent) {
  if (!file.format().is_fixed()) return file.read_batch_at(first, count);
  const std::uint32_t length = file.format().record_length;
  RecordBatch batch;
  const std::uint64_t wanted = std::min<std::uint64_t>(count, std::max<std::uint64_t>(1, (1u << 20) / length));
  batch.data.resize(wanted * length);
  PIF_TRY_VALUE(const std::uint64_t got, file.read_at(first, batch.data, wanted));
  for (std::uint64_t i = 0; i < got; ++i) batch.lengths.push_back(fixed_record_bytes(length, extent, first + i));
  return batch;
}

// Records of files in base64, as one JSON document: {"files":[{"path":...,"records":[{"record":n,"base64":"..."}]}]}. It is printed
// record after record, and begins with what can be read of the first file.
class JsonCat {
 public:
  Status add(Client& client, const std::string& path, const OpenRange& range) {
    auto file = client.open(path);
    if (!file) return fail(at(path, file.error()));
    PIF_TRY_VALUE(const Extent extent, file->extent());
    PIF_TRY(begin(path, header_of(*file)));
    PIF_TRY(add_records(*file, path, range.clip(extent.records), extent));
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
    return print(before + "{\"path\":" + Json(path).dump(-1, ' ', false, Json::error_handler_t::replace) +
                 ",\"header_base64\":\"" + base64(std::as_bytes(std::span(header))) + "\",\"records\":[");
  }
  static Status add_records(File& file, const std::string& path, Range range, const Extent& extent) {
    for (RecordNumber next = range.begin; next < range.end;) {
      PIF_TRY_VALUE(const RecordBatch batch, next_records(file, next, range.end - next, extent));
      if (batch.lengths.empty()) return fail(Code::kStaleFile, path + " became shorter while it was read");
      std::string text;
      std::size_t begin = 0;
      for (const std::uint32_t length : batch.lengths) {
        text += fmt::format("{}{{\"record\":{},\"base64\":\"{}\"}}", next == range.begin ? "" : ",", next,
                            base64(std::span(batch.data).subspan(begin, length)));
        begin += length;
        ++next;
      }
      PIF_TRY(print(text));
    }
    return {};
  }

  std::string closing_;
};

Outcome cat_json(const Program& program, Client& client, const std::vector<std::string>& paths, const OpenRange& range) {
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
Outcome cat_records(const Program& program, Client& client, const std::vector<std::string>& paths, const OpenRange& range) {
  return for_each_path(program, paths, [&](const std::string& path) -> Status {
    auto file = client.open(path);
    if (!file) return fail(at(path, file.error()));
    BulkOptions options;
    options.records = {range.begin, range.end.value_or(UINT64_MAX)};
    const auto moved = export_stream(*file, 1, options);
    if (!moved) return fail(at(path, moved.error()));
    return {};
  });
}

Outcome cat(const Program& program, const Options& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY(check_stdout());
  OpenRange range;
  if (!options.records.empty()) {
    PIF_TRY_VALUE(range, parse_range(options.records));
  }
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  if (program.common.json) return cat_json(program, client, paths, range);
  return options.records.empty() ? write_to_stdout(program, client, paths) : cat_records(program, client, paths, range);
}

}  // namespace

void add_get_commands(CLI::App& app, Program& program) {
  auto get_options = std::make_shared<Options>();
  CLI::App* get_command =
      add_command(app, program, "get", "Write files as local files, byte for byte what put took",
                  "  pif get /big.dat copy.dat\n  pif get /log.txt                 as ./log.txt\n"
                  "  pif get /a.txt /b.txt folder/\n  pif get -r /results results\n"
                  "  pif get /big.dat - | sha256sum");
  get_command->add_option("PATH", get_options->paths,
                          "Files, then the local file or folder they go to (-: standard output; of one file alone: here)")
      ->required()
      ->expected(1, 1 << 20)
      ->type_name("FILE... [LOCAL]");
  get_command->add_flag("-r,--recursive", get_options->recursive, "Folders with everything in them");
  get_command->add_flag("--no-clobber", get_options->no_clobber, "Fail instead of replacing a local file");
  get_command->add_flag("--stale", program.common.stale, "Files that `pif stat` marks, too");
  on_run(get_command, program, get_options, get);

  auto cat_options = std::make_shared<Options>();
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
