#include "file/placed_bytes.h"

#include <algorithm>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/opened_state.h"
#include "names/names.h"
#include "pif/base/assert.h"
#include "pif/base/fork.h"

namespace pif::client {

Result<std::string> fork_of(const FileState& file, std::uint32_t subfile, const std::string& name) {
  PIF_TRY(file.check_not_ended());
  PIF_TRY(sendable("/" + name));
  std::string text = fork_text(subfile, name);
  PIF_TRY(parse_fork(text));
  if (subfile < file.width()) return text;
  return fail(Code::kInvalid, fmt::format("{}: there is no subfile {}: the file has {}, from 0 on", file.parts.path,
                                          subfile, file.width()));
}

std::string shown_path(const FileState& file, const std::string& fork) { return file.parts.path + "/" + fork; }

Result<std::unique_ptr<FileState>> open_fork(const FileState& of, std::uint32_t subfile, const std::string& name,
                                             Client::Mode mode) {
  PIF_TRY_VALUE(const std::string fork, fork_of(of, subfile, name));
  net::Packet request = open_packet(*of.session, fork, mode);
  request.envelope.mutable_open()->set_fork_of(of.parts.file.value);
  auto reply = of.session->ask_server(std::move(request));
  if (!reply) return fail(strip(std::move(reply.error())));
  return opened_state(of.session, shown_path(of, fork), mode, reply->envelope.open_reply(), false);
}

PlacedBytes::PlacedBytes(const FileState& file) : file_(file) {}
PlacedBytes::~PlacedBytes() = default;

void PlacedBytes::close() {
  parts_.clear();
  length_.reset();
}

// Not opened, if there is none.
Status PlacedBytes::open(std::uint32_t subfile) {
  PIF_ASSERT(subfile < parts_.size(), subfile, parts_.size());
  auto fork = open_fork(file_, subfile, std::string(kForkData), Client::Mode::kRead);
  if (!fork) return fork.error().code == Code::kNotFound ? Status() : Status(fail(std::move(fork.error())));
  parts_[subfile].fork = std::move(*fork);
  return {};
}

Result<FileLength> PlacedBytes::measure() {
  PIF_ASSERT(file_.parts.placed, file_.parts.file.value);
  length_.reset();  // should it fail, the next one measures all anew
  parts_.resize(file_.width());
  FileLength sum;
  for (std::uint32_t subfile = 0; subfile < file_.width(); ++subfile) {
    Part& part = parts_[subfile];
    if (!part.fork) PIF_TRY(open(subfile));
    if (!part.fork) continue;
    PIF_TRY(part.fork->keep_rights());
    PIF_TRY_VALUE(const FileLength length, part.fork->length.get(true));
    part.bytes = length.bytes;
    sum.records += length.records;
    sum.bytes += length.bytes;
  }
  length_ = sum;
  return sum;
}

Result<std::size_t> PlacedBytes::pread(std::span<std::byte> out, std::uint64_t offset) {
  if (!length_) PIF_TRY(measure());
  PIF_ASSERT(parts_.size() == file_.width(), parts_.size(), file_.width());
  std::size_t moved = 0;
  for (const Part& part : parts_) {
    if (moved == out.size()) break;
    if (offset >= part.bytes) {
      offset -= part.bytes;
      continue;
    }
    PIF_ASSERT(part.fork != nullptr, part.bytes, offset);
    const auto piece = out.subspan(moved, std::min<std::uint64_t>(out.size() - moved, part.bytes - offset));
    PIF_TRY_VALUE(const std::size_t bytes, part.fork->pread(piece, offset));
    if (bytes < piece.size())
      return fail(Code::kCorrupt, fmt::format("{} became shorter than it was", part.fork->parts.path));
    moved += bytes;
    offset = 0;
  }
  return moved;
}

}  // namespace pif::client
