#include "file/forks.h"

#include <algorithm>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/opening.h"
#include "names/names.h"
#include "pif/base/assert.h"
#include "pif/base/fork.h"
#include "pif/wire/convert.h"
#include "session/in_use.h"

namespace pif {
namespace client {
namespace {

// What the server is asked for; kInvalid: it cannot be the name of a fork of this file.
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

}  // namespace

Result<std::unique_ptr<FileState>> open_fork(const FileState& of, std::uint32_t subfile, const std::string& name,
                                             Client::Mode mode) {
  PIF_TRY_VALUE(const std::string fork, fork_of(of, subfile, name));
  net::Packet request = open_packet(*of.session, fork, mode);
  request.envelope.mutable_open()->set_fork_of(of.parts.file.value);
  auto reply = of.session->ask_server(std::move(request));
  if (!reply) return fail(strip(std::move(reply.error())));
  return opened_state(of.session, shown_path(of, fork), mode, reply->envelope.open_reply(), false);
}

// ---- the bytes of a placed file ------------------------------------------------------------------------------------

PlacedBytes::PlacedBytes(const FileState& file) : file_(file) {}
PlacedBytes::~PlacedBytes() = default;

void PlacedBytes::close() {
  parts_.clear();
  length_.reset();
}

// Not opened, if there is none.
Status PlacedBytes::open(std::uint32_t subfile) {
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
  std::size_t moved = 0;
  for (const Part& part : parts_) {
    if (moved == out.size()) break;
    if (offset >= part.bytes) {
      offset -= part.bytes;
      continue;
    }
    const auto piece = out.subspan(moved, std::min<std::uint64_t>(out.size() - moved, part.bytes - offset));
    PIF_TRY_VALUE(const std::size_t bytes, part.fork->pread(piece, offset));
    if (bytes < piece.size())
      return fail(Code::kCorrupt, fmt::format("{} became shorter than it was", part.fork->parts.path));
    moved += bytes;
    offset = 0;
  }
  return moved;
}

}  // namespace client

using client::FileAccess;
using client::fork_of;
using client::shown_path;
using client::strip;

Result<File> Client::create_fork(const File& of, std::uint32_t subfile, const std::string& name,
                                 const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY_VALUE(const std::string fork, fork_of(*of.state_, subfile, name));
    PIF_TRY(options.format.validate());
    net::Packet request = client::create_packet(fork, options, client::WhenThere::kAtCommit);
    request.envelope.mutable_create()->set_fork_of(of.id());
    auto reply = session_->ask_server(std::move(request));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, client::created_state(session_, shown_path(*of.state_, fork), options,
                                                    reply->envelope.create_reply()));
    return FileAccess::make(std::move(state));
  });
}

Result<File> Client::open_fork(const File& of, std::uint32_t subfile, const std::string& name, Mode mode) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY_VALUE(auto state, client::open_fork(*of.state_, subfile, name, mode));
    return FileAccess::make(std::move(state));
  });
}

Result<ListPage> Client::list_forks(const File& of, const std::string& after, std::uint32_t limit) {
  return client::in_use(session_->user(), [&]() -> Result<ListPage> {
    PIF_TRY(of.state_->check_not_ended());
    PIF_TRY(client::sendable("/" + after));
    proto::List list;
    list.set_fork_of(of.id());
    list.set_after(after);
    list.set_limit(limit);
    return client::list_page(*session_, std::move(list));
  });
}

Status Client::remove_fork(const File& of, std::uint32_t subfile, const std::string& name) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY_VALUE(std::string fork, fork_of(*of.state_, subfile, name));
    proto::Remove request;
    request.set_fork_of(of.id());
    request.add_paths(fork);
    return client::remove_one(*session_, std::move(request), shown_path(*of.state_, fork));
  });
}

}  // namespace pif
