#include "file/opened_state.h"

#include <fmt/format.h>

#include "file/file_state.h"
#include "names/names.h"
#include "pif/base/capability.h"
#include "pif/wire/convert.h"

namespace pif::client {

namespace {

Status check_parts(const FileParts& parts) {
  if (parts.nodes.size() == parts.layout.width()) return {};
  return fail(Code::kInternal, fmt::format("{}: the server names {} LFSs for a width of {}", parts.path,
                                           parts.nodes.size(), parts.layout.width()));
}

}  // namespace

Result<std::unique_ptr<FileState>> created_state(const std::shared_ptr<Session>& session, const std::string& path,
                                                 const CreateOptions& options, const proto::CreateReply& created) {
  FileParts parts;
  parts.file = FileId(created.file());
  parts.path = path;
  parts.creating = true;
  parts.placed = options.placed;
  parts.format = options.format;
  if (created.has_format()) {
    PIF_TRY_VALUE(parts.format, wire::format_of(created.format()));
  }
  parts.file_layout = created.layout();
  PIF_TRY_VALUE(parts.layout, wire::layout_of(created.layout()));
  parts.nodes.assign(created.nodes().begin(), created.nodes().end());
  parts.capability = created.capability();
  parts.capability_until = session->clock().wall_seconds() + kCapabilitySeconds;
  parts.rights = kMayCreate | kMayRead;
  parts.epoch = created.epoch();
  parts.view = created.view();
  parts.owner = session->uid();
  parts.attributes = options.attributes;
  for (const auto& [name, value] : created.named()) parts.attributes.emplace(name, value);
  PIF_TRY(check_parts(parts));
  const OpenKind kind{false, false, options.is_small, options.modified_ns};
  return std::make_unique<FileState>(session, std::move(parts), kind);
}

Result<std::unique_ptr<FileState>> joined_state(const std::shared_ptr<Session>& session,
                                                const proto::JoinReply& joined) {
  FileParts parts;
  parts.file = FileId(joined.file());
  parts.path = joined.name();
  parts.creating = true;
  PIF_TRY_VALUE(parts.format, wire::format_of(joined.format()));
  parts.file_layout = joined.layout();
  PIF_TRY_VALUE(parts.layout, wire::layout_of(joined.layout()));
  parts.nodes.assign(joined.nodes().begin(), joined.nodes().end());
  PIF_TRY(check_parts(parts));
  if (static_cast<std::size_t>(joined.incarnations_size()) != parts.nodes.size())
    return fail(Code::kInternal, fmt::format("{}: the server names {} incarnations of {} LFSs", parts.path,
                                             joined.incarnations_size(), parts.nodes.size()));
  for (std::size_t i = 0; i < parts.nodes.size(); ++i)
    parts.nodes[i].set_incarnation(joined.incarnations(static_cast<int>(i)));
  parts.capability = joined.capability();
  parts.capability_until = session->clock().wall_seconds() + kCapabilitySeconds;
  parts.rights = kMayCreate | kMayRead;
  parts.epoch = joined.epoch();
  parts.view = joined.view();
  parts.owner = session->uid();
  for (const auto& [name, value] : joined.named()) parts.attributes.emplace(name, value);
  auto state = std::make_unique<FileState>(session, std::move(parts), OpenKind{});
  state->member = joined.member();
  PIF_TRY(state->scattered.begin());
  return state;
}

net::Packet open_packet(const Session& session, const std::string& path, Client::Mode mode) {
  net::Packet request;
  proto::Open& open = *request.envelope.mutable_open();
  open.set_path(path);
  open.set_rights(mode == Client::Mode::kWrite ? kMayRead | kMayWrite : static_cast<std::uint32_t>(kMayRead));
  open.set_hold(mode == Client::Mode::kHold);
  open.set_stale(session.options().stale);
  return request;
}

namespace {

Status check_writable(const std::string& path, const proto::FileLayout& layout) {
  if (!wire::is_older(layout)) return {};
  return fail(Code::kUnsupported,
              fmt::format("unprotected: {0} was made before parity was kept and can only be read; make it anew with "
                          "`pif protect {0}`",
                          path));
}

}  // namespace

Result<std::unique_ptr<FileState>> opened_state(const std::shared_ptr<Session>& session, const std::string& path,
                                                Client::Mode mode, const proto::OpenReply& opened, bool is_small) {
  PIF_TRY_VALUE(Entry entry, entry_of(opened.entry()));
  if (mode == Client::Mode::kWrite) PIF_TRY(check_writable(path, opened.entry().layout()));
  FileParts parts;
  parts.file = FileId(entry.id);
  parts.path = path;
  parts.placed = entry.is_placed;
  parts.format = entry.format;
  parts.file_layout = opened.entry().layout();
  PIF_TRY_VALUE(parts.layout, wire::layout_of(parts.file_layout));
  parts.nodes.assign(opened.nodes().begin(), opened.nodes().end());
  parts.capability = opened.capability();
  parts.capability_until = session->clock().wall_seconds() + kCapabilitySeconds;
  parts.rights = mode == Client::Mode::kWrite ? kMayRead | kMayWrite : static_cast<std::uint32_t>(kMayRead);
  parts.epoch = opened.epoch();
  parts.view = opened.view();
  parts.owner = entry.owner;
  // A marked file may be shorter than that; but the length of one that LFS 0 has no rows of is nowhere else.
  const bool is_only_here = parts.is_protected() && parts.layout.rows(0, entry.file_length.records) == 0;
  parts.file_length = entry.marks.empty() || is_only_here ? entry.file_length : FileLength{};
  parts.attributes = entry.attributes;
  PIF_TRY(check_parts(parts));
  const OpenKind kind{false, mode == Client::Mode::kHold, is_small, {}};
  auto state = std::make_unique<FileState>(session, std::move(parts), kind);
  state->directory_length = entry.file_length;
  state->is_marked = !entry.marks.empty();
  state->entry = std::move(entry);
  return state;
}

Result<std::unique_ptr<FileState>> adopted_state(std::shared_ptr<Session> session, FileParts parts, bool held) {
  PIF_TRY(check_parts(parts));
  const OpenKind kind{.adopted = true, .held = held};
  return std::make_unique<FileState>(std::move(session), std::move(parts), kind);
}

}  // namespace pif::client
