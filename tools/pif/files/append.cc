// append: what a local file or a stream has goes on where a file ends, in pieces, each durable and visible when it is
// there.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "command/interrupt.h"
#include "command/program.h"
#include "command/progress.h"
#include "names/operands.h"
#include "pif/base/handle.h"
#include "pif/base/limits.h"
#include "pif/base/print.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::size_t kPieceBytes = 8u << 20;
constexpr int kSilenceMs = 50;  // of a pipe, before what has come is appended
constexpr int kLookMs = 200;    // while a pipe is silent, how often an interrupt is looked for

struct AppendOptions {
  std::string local, path;
  bool terminate = false;
};

// Local bytes as they come.
class Source {
 public:
  Source(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  // Behind what is in `buffer`, until that has `bytes`; less at the end, or when something has come and nothing more
  // for a moment.
  Status read(std::vector<std::byte>& buffer, std::size_t bytes) {
    const std::size_t before = buffer.size();
    std::size_t used = before;
    buffer.resize(std::max(bytes, used));
    Status done;
    while (done && !is_at_end_ && used < buffer.size() && (used == before || has_more(kSilenceMs))) {
      if (done = check_interrupt(); !done) break;
      if (used == before && !has_more(kLookMs)) continue;
      const ssize_t got = ::read(fd_, buffer.data() + used, buffer.size() - used);
      if (got < 0 && errno != EINTR) done = fail_errno(errno, "cannot read " + name_);
      is_at_end_ = got == 0;
      used += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    buffer.resize(used);
    return done;
  }
  bool is_at_end() const { return is_at_end_; }
  const std::string& name() const { return name_; }

 private:
  bool has_more(int milliseconds) const {
    pollfd waiting{fd_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds);
    return ready > 0 || (ready < 0 && errno != EINTR);  // a failure shows when it is read
  }

  int fd_;
  std::string name_;
  bool is_at_end_ = false;
};

// One run of append: what it has done so far.
class Appender {
 public:
  Appender(File& file, Source& source, bool terminate, Progress& progress)
      : file_(file), source_(source), terminate_(terminate), progress_(progress) {}

  Status run() {
    while (!source_.is_at_end()) {
      PIF_TRY(check_interrupt());
      PIF_TRY(source_.read(buffer_, std::max(kPieceBytes, buffer_.size() + kPieceBytes / 2)));
      PIF_TRY(file_.format().is_fixed() ? append_bytes() : append_records());
      progress_.set(bytes_);
    }
    return {};
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Status append_bytes() {
    if (buffer_.empty()) return {};
    PIF_TRY(file_.append_bytes(buffer_));
    bytes_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  // Those that are there with their ends; at the end of the input, the last one, too.
  Status append_records() {
    const std::byte delimiter{file_.format().delimiter};
    if (source_.is_at_end() && !buffer_.empty() && buffer_.back() != delimiter && terminate_)
      buffer_.push_back(delimiter);
    std::vector<std::uint32_t> lengths;
    std::size_t begin = 0;
    for (auto end = next(begin, delimiter); end != begin; end = next(begin, delimiter)) {
      if (end - begin > kRecordLengthMax) return too_long();
      lengths.push_back(static_cast<std::uint32_t>(end - begin));
      begin = end;
    }
    if (!lengths.empty()) PIF_TRY(file_.append_batch(lengths, std::span(buffer_).first(begin)));
    bytes_ += begin;
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin));
    if (buffer_.size() > kRecordLengthMax) return too_long();
    if (!source_.is_at_end() || buffer_.empty()) return {};
    return fail(
        Code::kInvalid,
        fmt::format("the last record of {} ({} bytes) lacks its delimiter, and nothing could follow it: end it, or "
                    "let --terminate do that",
                    source_.name(), buffer_.size()));
  }
  // Behind the record that begins there; its beginning if it has no end yet.
  std::size_t next(std::size_t begin, std::byte delimiter) const {
    if (begin == buffer_.size()) return begin;
    const void* const found =
        std::memchr(buffer_.data() + begin, std::to_integer<int>(delimiter), buffer_.size() - begin);
    return found == nullptr ? begin
                            : static_cast<std::size_t>(static_cast<const std::byte*>(found) - buffer_.data()) + 1;
  }
  Status too_long() const {
    return fail(Code::kTooLarge,
                fmt::format("the record at byte {} of {} is longer than {} bytes: is the delimiter right?", bytes_,
                            source_.name(), kRecordLengthMax));
  }

  File& file_;
  Source& source_;
  const bool terminate_;
  Progress& progress_;
  std::vector<std::byte> buffer_;
  std::uint64_t bytes_ = 0;
};

// Said before anything is appended, where it can be seen: a regular file's last byte.
Status check_end(int fd, const struct stat& about, const Format& format, const AppendOptions& options) {
  if (format.is_fixed() || options.terminate || !S_ISREG(about.st_mode) || about.st_size == 0) return {};
  std::uint8_t last = 0;
  if (::pread(fd, &last, 1, about.st_size - 1) != 1 || last == format.delimiter) return {};
  return fail(Code::kInvalid,
              options.local +
                  " does not end with the delimiter of the records, and nothing could follow its last one: "
                  "end it, or let --terminate do that; nothing was appended");
}

Status append_all(const Program& program, const AppendOptions& options, int fd, const std::string& path,
                  Json& document) {
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY_VALUE(File file, client.open(path, Client::Mode::kWrite));
  if (file.format().kind == RecordKind::kVariable)
    return fail(Code::kInvalid,
                path + " has records of any length without a delimiter: a stream cannot be cut into such records");
  struct stat about {};
  if (::fstat(fd, &about) != 0) return fail_errno(errno, "cannot read " + options.local);
  if (S_ISDIR(about.st_mode))
    return fail(Code::kIsDirectory, options.local + " is a folder; append takes a file or a stream");
  PIF_TRY(check_end(fd, about, file.format(), options));
  Source source(fd, options.local == "-" ? "standard input" : options.local);
  Progress progress(path, S_ISREG(about.st_mode) ? static_cast<std::uint64_t>(about.st_size) : 0,
                    !program.common.quiet);
  Appender appender(file, source, options.terminate, progress);
  const Status appended = appender.run();
  const Result<FileLength> file_length = file.file_length();
  const Status closed = file.close();
  if (!appended) {
    Error error = at(path, appended.error());
    error.text += fmt::format("; {} bytes before that are appended", appender.bytes());
    return fail(error);
  }
  PIF_TRY(closed);
  if (!file_length) return fail(file_length.error());
  document = {{"path", path},
              {"appended_bytes", appender.bytes()},
              {"records", file_length->records},
              {"bytes", file_length->bytes}};
  return {};
}

Outcome append(const Program& program, const AppendOptions& options) {
  PIF_TRY_VALUE(const std::string path, parse_path(options.path));
  UniqueFd opened(options.local == "-" ? -1 : ::open(options.local.c_str(), O_RDONLY | O_CLOEXEC));
  if (options.local != "-" && !opened) return fail_errno(errno, "cannot read " + options.local);
  catch_interrupts();
  const auto begin = Progress::Clock::now();
  Json document;
  PIF_TRY(append_all(program, options, options.local == "-" ? 0 : opened.get(), path, document));
  const std::chrono::duration<double> elapsed = Progress::Clock::now() - begin;
  const std::uint64_t bytes = document["appended_bytes"];
  if (program.common.verbose)
    print_error(fmt::format("pif: {} appended in {}\n", human_bytes(bytes), human_time(elapsed)));
  document["seconds"] = elapsed.count();
  if (program.common.json) PIF_TRY(print(document));
  return ExitCode::kDone;
}

}  // namespace

void add_append_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<AppendOptions>();
  CLI::App* command = add_command(app, program, "append", "Add a local file or a stream to the end of a file",
                                  "  pif append today.log /log.txt\n  tail -f app.log | pif append - /log.txt\n"
                                  "  printf 'no end' | pif append --terminate - /log.txt\n"
                                  "The file must be there: pif put makes it, and says what its records are.");
  command->add_option("LOCAL", options->local, "A local file (-: standard input)")->required();
  command->add_option("FILE", options->path, "The file that it is added to")->required();
  command->add_flag("--terminate", options->terminate,
                    "Give the last record the delimiter (the line end) that it lacks");
  on_run(command, program, options, append);
}

}  // namespace pif::cli
