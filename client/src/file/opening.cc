// The Client of pif/client/client.h: creating and opening files, one or many at once.
#include "file/opening.h"

#include <algorithm>

#include <fmt/format.h>

#include "file/async.h"
#include "file/file_state.h"
#include "names/names.h"
#include "pif/base/capability.h"
#include "pif/base/inheriting.h"
#include "pif/base/limits.h"
#include "pif/base/path.h"
#include "pif/wire/convert.h"
#include "session/in_use.h"

namespace pif {

using client::FileParts;
using client::FileState;
using client::sendable;
using client::Session;
using client::strip;

namespace client {

namespace {

Result<Striping> striping_of(const proto::Striping& said) {
  Striping striping;
  if (said.has_format()) {
    PIF_TRY_VALUE(striping.format, wire::format_of(said.format()));
  }
  striping.width = said.width();
  striping.nodes.assign(said.nodes().begin(), said.nodes().end());
  if (said.has_bevy()) striping.bevy = said.bevy();
  return striping;
}

// Create.inherits
std::uint32_t inherited(const CreateOptions& options) {
  const bool says_nodes = options.width != 0 || !options.nodes.empty() || !options.bevies.empty();
  const bool says_bevies = options.bevy != 0 || !options.bevies.empty();
  return (options.inherits_format ? kInheritsFormat : 0) |
         (options.inherits_layout && !says_nodes ? kInheritsNodes : 0) |
         (options.inherits_layout && !says_bevies ? kInheritsBevies : 0);
}

}  // namespace

proto::Striping proto_of(const Striping& striping) {
  proto::Striping out;
  if (striping.format) *out.mutable_format() = wire::proto_of(*striping.format);
  out.set_width(striping.width);
  out.mutable_nodes()->Assign(striping.nodes.begin(), striping.nodes.end());
  if (striping.bevy) out.set_bevy(*striping.bevy);
  return out;
}

namespace {

EntryKind kind_of(wire::OtherKind kind) {
  constexpr EntryKind kKinds[] = {EntryKind::kLink, EntryKind::kFifo, EntryKind::kSocket, EntryKind::kCharacterDevice,
                                  EntryKind::kBlockDevice};
  return kKinds[kind - wire::kOtherLink];
}

// What the entry is, and what is told of that kind alone.
Status set_kind(const proto::EntryInfo& info, Entry& entry) {
  if (info.type() == proto::OTHER) {
    PIF_TRY_VALUE(const wire::OtherKind kind, wire::other_kind_of(info.other()));
    entry.kind = kind_of(kind);
    entry.target = info.other().target();
    entry.device = info.other().device();
    return {};
  }
  entry.kind = info.type() == proto::FOLDER ? EntryKind::kFolder : EntryKind::kFile;
  if (entry.kind != EntryKind::kFile) return {};
  PIF_TRY_VALUE(entry.format, wire::format_of(info.format()));
  return {};
}

}  // namespace

Result<Entry> entry_of(const proto::EntryInfo& info) {
  Entry entry;
  entry.name = info.name();
  PIF_TRY(set_kind(info, entry));
  entry.id = info.id();
  entry.inode = info.inode() != 0 ? info.inode() : info.id();
  entry.owner = info.attributes().owner();
  entry.group = info.attributes().group();
  entry.mode = info.attributes().mode();
  entry.modified_ns = info.attributes().modified();
  entry.changed_ns = info.attributes().changed();
  entry.nodes.assign(info.layout().nodes().begin(), info.layout().nodes().end());
  entry.bevies.assign(info.layout().bevies().begin(), info.layout().bevies().end());
  entry.is_protected = info.layout().bevies_size() > 0 && !wire::is_older(info.layout());
  PIF_TRY_VALUE(entry.striping, striping_of(info.striping()));
  entry.is_placed = info.placed();
  entry.file_length = wire::file_length_of(info.file_length());
  for (const auto& [name, value] : info.attributes().named()) entry.attributes.emplace(name, value);
  for (const proto::FileMark& mark : info.marks())
    entry.marks.push_back({mark.node(), static_cast<FileMark::Kind>(mark.kind()), mark.since()});
  return entry;
}

Status sendable(const std::string& path) {
  // It fits into a message; the server sees to the rest.
  if (path.size() <= kPathBytesMax && is_utf8(path)) return {};
  auto checked = check_path(path);  // says which path
  return fail(checked ? Error{Code::kInvalid, "the path is not UTF-8", {}} : std::move(checked.error()));
}

net::Packet create_packet(const std::string& path, const CreateOptions& options, WhenThere there) {
  net::Packet packet;
  proto::Create& create = *packet.envelope.mutable_create();
  create.set_path(path);
  *create.mutable_format() = wire::proto_of(options.format);
  create.set_width(options.width);
  create.mutable_nodes()->Assign(options.nodes.begin(), options.nodes.end());
  create.mutable_bevies()->Assign(options.bevies.begin(), options.bevies.end());
  create.set_bevy(options.bevy);
  create.set_inherits(inherited(options));
  create.set_same_host_ok(options.same_host_ok);
  create.set_mode(options.mode);
  set_owner(options.owner, options.group, create);
  for (const auto& [name, value] : options.attributes) (*create.mutable_named())[name] = value;
  create.set_exclusive(options.exclusive);
  create.set_empty(there == WhenThere::kAtOnce);
  create.set_now(there == WhenThere::kAtOnceAndCreated);
  create.set_placed(options.placed);
  return packet;
}

Error strip(Error error) {
  if (error.node == "server") error.node.clear();
  return error;
}

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

namespace {

// What another client creates: in its view, and on the LFSs as it was told of them.
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

}  // namespace

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

}  // namespace client

namespace {

using client::created_state;
using client::joined_state;
using client::open_packet;
using client::opened_state;

// A file for each of `sound`: what `make` makes of its reply, or what was wrong with it. Only the sound ones were asked
// for.
template <typename Make>
std::vector<Result<File>> make_each(const std::vector<Status>& sound, std::vector<Result<net::Packet>> replies,
                                    const Make& make) {
  std::vector<Result<File>> out;
  auto reply = replies.begin();
  for (std::size_t i = 0; i < sound.size(); ++i) {
    if (!sound[i]) {
      out.emplace_back(fail(sound[i].error()));
      continue;
    }
    out.push_back(*reply ? make(i, (*reply)->envelope) : fail(strip(std::move(reply->error()))));
    ++reply;
  }
  return out;
}

}  // namespace

Result<File> Client::create(const std::string& path, const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY(sendable(path));
    PIF_TRY(options.format.validate());
    auto reply = session_->ask_server(client::create_packet(path, options, client::WhenThere::kAtCommit));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, created_state(session_, path, options, reply->envelope.create_reply()));
    return File(std::move(state));
  });
}

Result<Client::CreatedNow> Client::create_now(const std::string& path, const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Result<CreatedNow> {
    PIF_TRY(sendable(path));
    PIF_TRY(options.format.validate());
    auto reply = session_->change(client::create_packet(path, options, client::WhenThere::kAtOnceAndCreated),
                                  {"the file was created", path});
    if (!reply) return fail(strip(std::move(reply.error())));
    const proto::CreateReply& created = reply->envelope.create_reply();
    PIF_TRY_VALUE(Entry entry, client::entry_of(created.entry()));
    PIF_TRY_VALUE(auto state, created_state(session_, path, options, created));
    return CreatedNow{File(std::move(state)), std::move(entry)};
  });
}

Result<File> Client::create_instead_of(std::uint64_t id) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    proto::Create create;
    create.set_instead_of(id);
    auto reply = session_->ask_server(net::packet_of(std::move(create)));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, created_state(session_, fmt::format("the new version of file {}", id), {},
                                            reply->envelope.create_reply()));
    state->note_written();  // the old bytes go, though none may come
    return File(std::move(state));
  });
}

std::vector<Result<File>> Client::create_many(std::span<const NewFile> files) {
  return client::in_use_each(session_->user(), files.size(), [&] {
    std::vector<net::Packet> requests;
    std::vector<Status> sound;
    for (const NewFile& file : files) {
      Status valid = sendable(file.path);
      if (valid) valid = file.options.format.validate();
      if (valid) requests.push_back(client::create_packet(file.path, file.options, client::WhenThere::kAtCommit));
      sound.push_back(std::move(valid));
    }
    const auto make = [&](std::size_t i, const proto::Envelope& reply) -> Result<File> {
      PIF_TRY_VALUE(auto state, created_state(session_, files[i].path, files[i].options, reply.create_reply()));
      return File(std::move(state));
    };
    return make_each(sound, session_->ask_server_all(std::move(requests)), make);
  });
}

Result<File> Client::join(std::string_view token) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    proto::Join join;
    join.set_token(std::string(token));
    auto reply = session_->ask_server(net::packet_of(std::move(join)));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, joined_state(session_, reply->envelope.join_reply()));
    return File(std::move(state));
  });
}

Result<File> Client::open(const std::string& path, Mode mode) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    PIF_TRY(sendable(path));
    auto reply = session_->ask_server(open_packet(*session_, path, mode));
    if (!reply) return fail(strip(std::move(reply.error())));
    PIF_TRY_VALUE(auto state, opened_state(session_, path, mode, reply->envelope.open_reply(), false));
    return File(std::move(state));
  });
}

Result<File> Client::open_by_id(std::uint64_t id, Mode mode) {
  return client::in_use(session_->user(), [&]() -> Result<File> {
    net::Packet request = open_packet(*session_, {}, mode);
    request.envelope.mutable_open()->set_file(id);
    request.envelope.mutable_open()->set_anew(true);
    auto reply = session_->ask_server(std::move(request));
    if (!reply) return fail(strip(std::move(reply.error())));
    const proto::OpenReply& opened = reply->envelope.open_reply();
    PIF_TRY_VALUE(auto state, opened_state(session_, opened.entry().name(), mode, opened, false));
    return File(std::move(state));
  });
}

std::vector<Result<File>> Client::open_small_many(std::span<const std::string> paths) {
  return client::in_use_each(session_->user(), paths.size(), [&] {
    std::vector<net::Packet> requests;
    std::vector<Status> sound;
    for (const std::string& path : paths) {
      sound.push_back(sendable(path));
      if (sound.back()) requests.push_back(open_packet(*session_, path, Mode::kRead));
    }
    const auto make = [&](std::size_t i, const proto::Envelope& reply) -> Result<File> {
      PIF_TRY_VALUE(auto state, opened_state(session_, paths[i], Mode::kRead, reply.open_reply(), true));
      return File(std::move(state));
    };
    return make_each(sound, session_->ask_server_all(std::move(requests)), make);
  });
}

namespace client {

File FileAccess::make(std::unique_ptr<FileState> state) { return File(std::move(state)); }

Result<File> adopt_file(std::shared_ptr<Session> session, FileParts parts) {
  PIF_TRY(check_parts(parts));
  return FileAccess::make(std::make_unique<FileState>(std::move(session), std::move(parts), OpenKind{.adopted = true}));
}

Result<File> read_sealed(File& file, const FileLength& file_length) {
  FileParts parts = parts_of(file);
  parts.creating = false;
  parts.rights = kMayRead;
  parts.file_length = file_length;
  PIF_TRY(check_parts(parts));
  auto state =
      std::make_unique<FileState>(file.state().session, std::move(parts), OpenKind{.adopted = true, .held = true});
  state->length.set(file_length);
  return FileAccess::make(std::move(state));
}

}  // namespace client

}  // namespace pif
