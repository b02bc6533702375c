#include "pif/client/rewrite.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "file/file_state.h"
#include "session/in_use.h"

namespace pif::client {
namespace {

constexpr std::uint64_t kCopiedAtOnce = 4u << 20;

}  // namespace

Status copy_start(File& from, File& to, std::uint64_t end) {
  std::vector<std::byte> bytes(std::min(kCopiedAtOnce, end));
  for (std::uint64_t at = 0; at < end;) {
    const auto piece = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), end - at));
    PIF_TRY_VALUE(const std::size_t read, from.pread(piece, at));
    if (read < piece.size())
      return fail(Code::kCorrupt, fmt::format("{} ends at byte {} of {}", from.state().parts.path, at + read, end));
    PIF_TRY(to.pwrite(piece, at));
    at += read;
  }
  return {};
}

Result<File> rewrite(Client& client, File& of, const RewriteOptions& options) {
  PIF_TRY_VALUE(const FileLength length, of.file_length());
  const std::uint64_t end = std::min(options.keep, length.bytes);
  if (end > options.bytes_max) {
    return fail(Code::kUnsupported, fmt::format("{}: for this change its {} bytes would be copied; at most {} are",
                                                of.state().parts.path, end, options.bytes_max));
  }
  PIF_TRY_VALUE(File made, client.create_instead_of(of.id()));
  PIF_TRY(copy_start(of, made, end));
  return made;
}

Status resize(Client& client, File& file, std::uint64_t bytes) {
  if (file.state().creating()) return file.resize(bytes);
  PIF_TRY(file.state().check_may_write());
  if (!file.format().is_fixed())
    return fail(Code::kInvalid,
                fmt::format("{}: only a file of fixed records gets another length", file.state().parts.path));
  PIF_TRY_VALUE(const FileLength now, file.file_length());
  if (bytes < now.bytes) {
    PIF_TRY_VALUE(File made, rewrite(client, file, {.keep = bytes}));
    PIF_TRY(made.commit());
    PIF_TRY_VALUE(file, client.open_by_id(made.id(), Client::Mode::kWrite));
  } else if (bytes > now.bytes) {
    PIF_TRY(in_use(file.state().session->user(), [&] { return file.state().lengthen(bytes); }));
  }
  return {};
}

}  // namespace pif::client
