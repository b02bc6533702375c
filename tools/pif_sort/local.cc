#include "local.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include <fmt/format.h>

#include "../pif/command/program.h"
#include "../pif/text/text.h"
#include "../pif/transfer/get_files.h"
#include "pif/base/inheriting.h"
#include "pif/base/typed_path.h"
#include "pif/base/write_all.h"
#include "pif/client/bulk.h"
#include "pif/client/session.h"

namespace pif::sort {
namespace {

constexpr std::uint32_t kLocalMode = 0666;  // less the umask

}  // namespace

CreateOptions nameless_options(const Format& format) {
  CreateOptions options;
  options.format = format;
  options.bevy = kNoBevies;  // it is gone before it could be needed
  options.mode = 0600;
  options.inherits_layout = false;
  return options;
}

Result<Operand> parse_operand(const std::string& text) {
  if (text == "-") return Operand{Operand::Kind::kStream, text};
  if (text.starts_with('/') || text.starts_with("pif:")) {
    PIF_TRY_VALUE(std::string path, parse_path(text));
    return Operand{Operand::Kind::kPath, std::move(path)};
  }
  std::string local = text.starts_with("file:") ? text.substr(5) : text;
  if (local.empty()) return fail(Code::kInvalid, "a file has no name");
  return Operand{Operand::Kind::kLocal, std::move(local)};
}

Status take_local(tool::Controller& controller, const Operand& from, const Format& format, const std::string& folder) {
  UniqueFd opened;
  if (from.kind == Operand::Kind::kLocal) {
    opened = UniqueFd(::open(from.name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) return fail_errno(errno, "cannot read " + from.name);
  }
  const tool::PhaseTimer timer(controller.report(), "import", controller.client().session().clock());
  const std::string name = from.kind == Operand::Kind::kLocal ? from.name : "standard input";
  PIF_TRY_VALUE(File file, controller.client().create(cli::join_path(folder, ".pif-sort"), nameless_options(format)));
  const auto moved = import_stream(file, opened ? opened.get() : STDIN_FILENO);
  if (!moved) return fail(moved.error().code, name + ": " + moved.error().text, moved.error().node);
  PIF_TRY(controller.take(std::move(file)));
  return {};
}

Result<LocalOutput> LocalOutput::open(const Operand& to) {
  LocalOutput out;
  if (to.kind == Operand::Kind::kStream) {
    PIF_TRY(cli::check_stdout());
    return out;
  }
  PIF_TRY_VALUE(cli::NewFile file, cli::NewFile::create(to.name, kLocalMode));
  out.file_.emplace(std::move(file));
  return out;
}

Status LocalOutput::write(tool::Controller& controller, File& sorted) {
  const tool::PhaseTimer timer(controller.report(), "export", controller.client().session().clock());
  const int fd = file_ ? file_->fd() : STDOUT_FILENO;
  const std::string header = cli::header_of(sorted);
  PIF_TRY(write_all(fd, std::as_bytes(std::span(header)), "cannot write what is sorted"));
  std::atomic<bool> is_cancelled = false;
  BulkOptions options;
  options.cancel = &is_cancelled;
  options.progress = [&](const BulkCounts&, std::uint64_t) { is_cancelled = controller.is_cancelled(); };
  PIF_TRY(export_stream(sorted, fd, options));
  return {};
}

Status LocalOutput::publish(bool keep_existing) { return file_ ? file_->publish(keep_existing) : Status(); }

}  // namespace pif::sort
