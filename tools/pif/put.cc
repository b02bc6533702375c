// put: local files, trees and streams into interleaved files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "entries.h"
#include "header.h"
#include "interrupt.h"
#include "io.h"
#include "pif/base/decimal.h"
#include "pif/base/say.h"
#include "pif/base/typed_path.h"
#include "pif/client/bulk.h"
#include "program.h"
#include "progress.h"
#include "text.h"

namespace pif::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::uint32_t record_length = 0;  // 0: not said
  bool lines = false;
  std::string delimited;
  std::string header;
  std::uint32_t width = 0;
  std::string nodes;
  std::uint32_t bevy = 0;
  bool recursive = false;
  bool no_clobber = false;
};

constexpr std::uint32_t kModeBits = 0777;

// What put does with one file that is open already.
struct Source {
  int fd = -1;
  std::string name;          // for messages
  std::uint32_t mode = 0644;
  std::uint64_t bytes = 0;   // 0: unknown
};

Result<Format> format_of(const Options& options) {
  if (options.lines) return Format::lines();
  if (!options.delimited.empty()) {
    PIF_TRY_VALUE(const std::uint8_t delimiter, parse_delimiter(options.delimited));
    return Format::delimited(delimiter);
  }
  const Format format = Format::fixed(options.record_length == 0 ? kByteRecordLength : options.record_length);
  PIF_TRY(format.validate());
  return format;
}

// "lfs0,lfs2" or node ids.
Result<std::vector<std::uint32_t>> node_ids(Client& client, const std::string& list) {
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  std::vector<std::uint32_t> ids;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string name = list.substr(start, comma - start);
    start = comma + 1;
    const auto found = std::find_if(status.nodes.begin(), status.nodes.end(), [&](const Node& node) {
      return node.name == name || std::to_string(node.id) == name;
    });
    if (found == status.nodes.end())
      return fail(Code::kInvalid, fmt::format("--nodes: there is no node '{}' (pif node list shows them)", name));
    ids.push_back(found->id);
  }
  return ids;
}

Result<CreateOptions> create_options(Client& client, const Options& options) {
  CreateOptions create;
  PIF_TRY_VALUE(create.format, format_of(options));
  create.width = options.width;
  create.bevy = options.bevy;
  create.exclusive = options.no_clobber;
  if (!options.nodes.empty()) {
    PIF_TRY_VALUE(create.nodes, node_ids(client, options.nodes));
  }
  return create;
}

// One run of put: what it has done so far, for the report.
class Putter {
 public:
  Putter(const Program& program, const Options& options, Client& client, CreateOptions create)
      : program_(program), options_(options), client_(client), create_(std::move(create)), interrupted_(catch_interrupts()) {}

  // A file, a folder or "-".
  Status put(const std::string& local, const std::string& target) {
    if (local == "-") return store({0, "standard input", 0644, 0}, target);
    struct stat about {};
    if (::stat(local.c_str(), &about) != 0) return fail_errno(errno, "cannot read " + local);
    if (S_ISDIR(about.st_mode)) {
      if (!options_.recursive) return fail(Code::kIsDirectory, local + " is a folder; use -r to put all that is in it");
      return put_tree(local, target, about.st_mode & kModeBits);
    }
    return put_plain(local, target);
  }

  Outcome report() {
    const std::chrono::duration<double> elapsed = Progress::Clock::now() - started_;
    if (program_.common.verbose)
      say(fmt::format("pif: {} files, {} in {}\n", files_, human_bytes(bytes_), human_time(elapsed)));
    if (program_.common.json)
      PIF_TRY(print_document(elapsed.count()));
    failures_.sum_up();
    return failures_.exit_code();
  }
  Failures& failures() { return failures_; }

 private:
  Status put_plain(const std::string& local, const std::string& target) {
    UniqueFd fd(::open(local.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail_errno(errno, "cannot read " + local);
    struct stat about {};
    if (::fstat(fd.get(), &about) != 0) return fail_errno(errno, "cannot read " + local);
    const std::uint64_t bytes = S_ISREG(about.st_mode) ? static_cast<std::uint64_t>(about.st_size) : 0;
    return store({fd.get(), local, about.st_mode & kModeBits, bytes}, target);
  }

  // Depth first, in name order; folders that are there already are used. What cannot be put is a failure of its own, and the
  // rest goes on; an error is what ends all of it.
  Status put_tree(const std::string& local, const std::string& target, std::uint32_t mode) {
    PIF_TRY_VALUE(const bool is_new, make_target(target, mode));
    std::error_code error;
    std::vector<std::filesystem::directory_entry> entries;
    for (std::filesystem::directory_iterator at(local, error), end; !error && at != end; at.increment(error))
      entries.push_back(*at);
    if (error) failures_.add(Error{Code::kIo, fmt::format("cannot list {}: {}", local, error.message()), {}});
    std::sort(entries.begin(), entries.end());
    for (const auto& entry : entries) {
      PIF_TRY(check_interrupt());
      const Status done = put_found(entry.path().string(), join_path(target, entry.path().filename().string()));
      if (!done && ends_all(done.error())) return done;
      failures_.add(done);
    }
    if (is_new && (mode & S_IRWXU) != S_IRWXU) PIF_TRY(set_mode(target, mode));
    return {};
  }

  // What a folder has. Links to folders are not followed: they may lead back up.
  Status put_found(const std::string& local, const std::string& target) {
    struct stat link {}, about {};
    if (::lstat(local.c_str(), &link) != 0) return fail_errno(errno, "cannot read " + local);
    if (::stat(local.c_str(), &about) != 0)
      return S_ISLNK(link.st_mode) ? Status(fail(Code::kNotFound, local + " is a link that leads nowhere; it is left out"))
                                   : Status(fail_errno(errno, "cannot read " + local));
    if (S_ISDIR(about.st_mode) && S_ISLNK(link.st_mode))
      return fail(Code::kUnsupported, local + " is a link to a folder; it is left out: put what it leads to by itself");
    if (S_ISDIR(about.st_mode)) return put_tree(local, target, about.st_mode & kModeBits);
    if (S_ISREG(about.st_mode)) return put_plain(local, target);
    return fail(Code::kUnsupported, local + " is neither a file nor a folder; it is left out");
  }

  // Whether it was made. A new folder has the local one's mode, when all is in it; until then its owner may write to it.
  Result<bool> make_target(const std::string& target, std::uint32_t mode) {
    PIF_TRY_VALUE(const bool there, is_folder(client_, target));
    if (there) return false;
    PIF_TRY(client_.make_folder(target, false, mode | S_IRWXU));
    return true;
  }
  Status set_mode(const std::string& target, std::uint32_t mode) {
    AttributeChange change;
    change.mode = mode;
    return client_.change_attributes(target, change);
  }

  Status store(const Source& source, const std::string& target) {
    CreateOptions create = create_;
    create.mode = source.mode;
    if (!options_.header.empty()) PIF_TRY(take_header(source, create));
    auto file = client_.create(target, create);
    if (!file) return at(target, file.error());
    Progress progress(target, source.bytes, !program_.common.quiet);
    const auto moved = import_stream(*file, source.fd, options_with(progress, &interrupted_));
    Status done = check_interrupt();
    if (done && !moved) done = fail(moved.error());
    Extent extent;
    if (done) done = commit(*file, extent);
    if (!done) {
      // The first error counts; what cannot be removed now, the server removes when we are gone.
      static_cast<void>(file->abort().has_value());
      return at(source.name + " to " + target, done.error());
    }
    count(*file, source, target, moved->bytes, extent);
    return {};
  }

  // extent: what was committed; asked for before, because a file is closed when it is committed.
  static Status commit(File& file, Extent& extent) {
    PIF_TRY_VALUE(extent, file.extent());
    return file.commit();
  }

  Status take_header(const Source& source, CreateOptions& create) {
    PIF_TRY_VALUE(Header header, read_header(source.fd, options_.header, source.name));
    if (header.record_length && options_.record_length == 0 && create.format.is_fixed())
      create.format = Format::fixed(*header.record_length);
    create.attributes[std::string(kHeaderAttribute)] = std::move(header.bytes);
    return {};
  }

  static Status at(const std::string& what, Error error) {
    error.text = what + ": " + error.text;
    return fail(std::move(error));
  }

  void count(const File& file, const Source& source, const std::string& target, std::uint64_t bytes, const Extent& extent) {
    ++files_;
    bytes_ += bytes;
    if (!program_.common.json) return;
    documents_.push_back({{"local", source.name},
                          {"path", target},
                          {"id", file.id()},
                          {"records", extent.records},
                          {"bytes", extent.bytes},
                          {"width", file.layout().width()}});
  }
  Status print_document(double seconds) const {
    Json document = {{"files", documents_}, {"bytes", bytes_}, {"seconds", seconds}};
    failures_.add_to(document);
    return print(document);
  }

  const Program& program_;
  const Options& options_;
  Client& client_;
  CreateOptions create_;
  const std::atomic<bool>& interrupted_;
  Progress::Clock::time_point started_ = Progress::Clock::now();
  std::uint64_t files_ = 0, bytes_ = 0;
  Json documents_ = Json::array();
  Failures failures_{program_};
};

// Name that a local path gets inside a folder.
Result<std::string> name_of(const std::string& local) {
  if (local == "-") return fail(Code::kInvalid, "standard input has no name; say which file it becomes");
  const std::string name = std::filesystem::path(local).lexically_normal().filename().string();
  if (!name.empty() && name != "." && name != "..") return name;
  // "." and "x/" are named by what they are.
  std::error_code error;
  const auto full = std::filesystem::canonical(local, error);
  if (error) return fail(Code::kNotFound, fmt::format("cannot read {}: {}", local, error.message()));
  return full.filename().string();
}

Status check_sources(const std::vector<std::string>& sources) {
  if (sources.empty()) return fail(Code::kInvalid, "put takes local files, then where they go: pif put a.txt /a.txt");
  for (const auto& source : sources) {
    if (source.rfind("pif:", 0) == 0)
      return fail(Code::kInvalid, source + " is in the file system already; pif copy copies such files");
  }
  return {};
}

Outcome put(const Program& program, const Options& options) {
  std::vector<std::string> sources(options.paths.begin(), options.paths.end() - 1);
  PIF_TRY(check_sources(sources));
  const std::string& last = options.paths.back();
  PIF_TRY_VALUE(const std::string target, parse_path(last));
  PIF_TRY(format_of(options));  // wrong usage before anything is asked
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(CreateOptions create, create_options(client, options));
  PIF_TRY_VALUE(const bool into, is_folder(client, target));
  if (!into && (sources.size() > 1 || last.back() == '/'))
    return fail(Code::kNotFound, target + " is no folder; make it with: pif mkdir -p " + target);
  Putter putter(program, options, client, std::move(create));
  for (const auto& source : sources) {
    std::string to = target;
    if (into) {
      PIF_TRY_VALUE(const std::string name, name_of(source));
      to = join_path(target, name);
    }
    const Status done = putter.put(source, to);
    if (!done && (sources.size() == 1 || ends_all(done.error()))) return fail(done.error());
    putter.failures().add(done);
  }
  return putter.report();
}

}  // namespace

void add_put_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, program, "put", "Store local files as interleaved files; durable when it returns",
      "  pif put big.dat /big.dat                        64 KiB records over all LFSs\n"
      "  pif put --record-length 100 sort.in /sort.in     records of 100 bytes\n"
      "  pif put --lines --width 2 log.txt /log.txt       text lines over two LFSs\n"
      "  pif put -r results/ /results                     a tree\n"
      "  zcat data.gz | pif put - /data                   a stream\n"
      "  pif put --header pbm image.pbm /image            rows of the bitmap; its header is kept aside");
  command->add_option("PATH", options->paths, "Local files (- is standard input), then the file or folder they go to")
      ->required()
      ->expected(2, 1 << 20)
      ->type_name("LOCAL... TARGET");
  auto* length = command->add_option("--record-length", options->record_length, "Bytes of a record (default: 65536)")
                     ->check(CLI::Range(1u, kRecordLengthMax))
                     ->transform(decimal)
                     ->type_name("L");
  auto* lines = command->add_flag("--lines", options->lines, "Each text line is a record")->excludes(length);
  command->add_option("--delimited", options->delimited, "A record ends with this: a character, \\n, \\t, \\0 or 0xHH")
      ->excludes(length)
      ->excludes(lines)
      ->type_name("C");
  command->add_option("--header", options->header, "Keep leading bytes aside, as an attribute: a number, pbm or bed")
      ->type_name("N|pbm|bed");
  auto* width = command->add_option("--width", options->width, "Number of LFSs (default: all that are up)")
                    ->check(CLI::Range(1u, kWidthMax))
                    ->transform(decimal)
                    ->type_name("P");
  command->add_option("--nodes", options->nodes, "These LFSs, in this order: names or ids")
      ->excludes(width)
      ->check([](const std::string& list) { return list.empty() ? "names no LFS" : ""; })
      ->type_name("LIST");
  command->add_option("--bevy", options->bevy, "Parity over bevies of this size; needs a width that is a multiple of 2B")
      ->check(CLI::Range(2u, kWidthMax / 2))
      ->transform(decimal)
      ->type_name("B");
  command->add_flag("-r,--recursive", options->recursive, "Folders with everything in them");
  command->add_flag("--no-clobber", options->no_clobber, "Fail instead of replacing a file");
  on_run(command, program, options, put);
}

}  // namespace pif::cli
