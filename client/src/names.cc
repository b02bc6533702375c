// The Client of pif/client/client.h: names in the directory, and opening files.
#include <algorithm>

#include <fmt/format.h>

#include "file_state.h"
#include "pif/base/path.h"
#include "pif/base/capability.h"
#include "pif/client/convert.h"

namespace pif {

using client::FileParts;
using client::FileState;
using client::Session;

namespace {

constexpr std::size_t kPathsPerStat = 256;
constexpr std::size_t kPathsPerRemove = 256;

Result<Entry> entry_of(const proto::EntryInfo& info) {
  Entry entry;
  entry.name = info.name();
  entry.kind = info.type() == proto::FOLDER ? EntryKind::kFolder : EntryKind::kFile;
  entry.id = info.id();
  entry.owner = info.attributes().owner();
  entry.group = info.attributes().group();
  entry.mode = info.attributes().mode();
  entry.modified_ns = info.attributes().modified();
  if (entry.kind == EntryKind::kFile) {
    PIF_TRY_VALUE(entry.format, client::format_of(info.format()));
  }
  entry.nodes.assign(info.layout().nodes().begin(), info.layout().nodes().end());
  entry.bevies.assign(info.layout().bevies().begin(), info.layout().bevies().end());
  entry.extent = client::extent_of(info.extent());
  for (const auto& [name, value] : info.attributes().named()) entry.attributes.emplace(name, value);
  for (const proto::FileMark& mark : info.marks())
    entry.marks.push_back({mark.node(), static_cast<FileMark::Kind>(mark.kind()), mark.since()});
  return entry;
}

std::string_view state_name(std::uint32_t state) {
  constexpr std::string_view kNames[] = {"unknown", "up", "suspect", "down", "draining", "stale"};
  return state < std::size(kNames) ? kNames[state] : kNames[0];
}

Node node_of(const proto::NodeInfo& info) {
  Node node;
  node.id = info.id();
  node.name = info.name();
  node.state = state_name(info.state());
  node.root = info.root();
  node.bytes_total = info.bytes_total();
  node.bytes_free = info.bytes_free();
  node.inodes_total = info.inodes_total();
  node.inodes_free = info.inodes_free();
  node.components = info.components();
  node.bytes_stored = info.bytes_stored();
  node.silent_ms = info.silent_ms();
  node.pid = info.pid();
  node.unix_path = info.endpoints().unix_path();
  node.uuid = info.uuid();
  node.incarnation = info.incarnation();
  node.number = info.number();
  node.taken_back = info.taken_back();
  node.clock_ahead = info.clock_ahead();
  node.trouble = info.trouble();
  node.trouble_since = info.trouble_since();
  node.ipc = info.endpoints().ipc();
  node.tcp = info.endpoints().tcp();
  return node;
}

// A message holds well-formed text only: what is not UTF-8 would never reach the server, which refuses it as well.
Status sendable(const std::string& path) {
  if (is_utf8(path)) return {};
  auto checked = check_path(path);  // says which path
  return fail(checked ? Error{Code::kInvalid, "the path is not UTF-8", {}} : std::move(checked.error()));
}

net::Packet create_packet(const std::string& path, const CreateOptions& options, bool empty) {
  net::Packet packet;
  proto::Create& create = *packet.envelope.mutable_create();
  create.set_path(path);
  *create.mutable_format() = client::proto_of(options.format);
  create.set_width(options.width);
  create.mutable_nodes()->Assign(options.nodes.begin(), options.nodes.end());
  create.mutable_bevies()->Assign(options.bevies.begin(), options.bevies.end());
  create.set_bevy(options.bevy);
  create.set_mode(options.mode);
  for (const auto& [name, value] : options.attributes) (*create.mutable_named())[name] = value;
  create.set_exclusive(options.exclusive);
  create.set_empty(empty);
  return packet;
}

Error strip(Error error) {
  if (error.node == "server") error.node.clear();  // people know who keeps the names
  return error;
}

Status done(Result<net::Packet> reply) {
  if (!reply) return fail(strip(std::move(reply.error())));
  return {};
}

Status check_parts(const FileParts& parts) {
  if (parts.nodes.size() == parts.layout.width()) return {};
  return fail(Code::kInternal, fmt::format("{}: the server names {} LFSs for a width of {}", parts.path, parts.nodes.size(),
                                           parts.layout.width()));
}

}  // namespace

Client::Client(std::shared_ptr<Session> session) : session_(std::move(session)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(ConnectOptions options) {
  PIF_TRY_VALUE(auto session, Session::connect(std::move(options)));
  return Client(std::move(session));
}

Result<Client> Client::connect_in(ClientWorld world, const std::string& server, ConnectOptions options) {
  proto::Endpoints endpoints;
  endpoints.set_unix_path(server);
  options.threads = std::min(options.threads, world.threads_max);
  PIF_TRY_VALUE(auto session, Session::connect_in(world, endpoints, std::move(options)));
  return Client(std::move(session));
}

Result<File> Client::create(const std::string& path, const CreateOptions& options) {
  PIF_TRY(sendable(path));
  PIF_TRY(options.format.validate());
  auto reply = session_->ask_server(create_packet(path, options, false));
  if (!reply) return fail(strip(std::move(reply.error())));
  const proto::CreateReply& created = reply->envelope.create_reply();
  FileParts parts;
  parts.file = FileId(created.file());
  parts.path = path;
  parts.creating = true;
  parts.format = options.format;
  parts.file_layout = created.layout();
  PIF_TRY_VALUE(parts.layout, client::layout_of(created.layout()));
  parts.nodes.assign(created.nodes().begin(), created.nodes().end());
  parts.capability = created.capability();
  parts.capability_until = session_->clock().wall_seconds() + kCapabilitySeconds;
  parts.rights = kMayCreate | kMayRead;
  parts.epoch = created.epoch();
  parts.owner = session_->uid();
  parts.attributes = options.attributes;
  PIF_TRY(check_parts(parts));
  return File(std::make_unique<FileState>(session_, std::move(parts)));
}

Result<File> Client::open(const std::string& path, Mode mode) {
  PIF_TRY(sendable(path));
  net::Packet request;
  proto::Open& open = *request.envelope.mutable_open();
  open.set_path(path);
  open.set_rights(mode == Mode::kWrite ? kMayRead | kMayWrite : static_cast<std::uint32_t>(kMayRead));
  open.set_hold(mode == Mode::kHold);
  open.set_stale(session_->options().stale);
  auto reply = session_->ask_server(std::move(request));
  if (!reply) return fail(strip(std::move(reply.error())));
  const proto::OpenReply& opened = reply->envelope.open_reply();
  PIF_TRY_VALUE(Entry entry, entry_of(opened.entry()));
  FileParts parts;
  parts.file = FileId(entry.id);
  parts.path = path;
  parts.format = entry.format;
  parts.file_layout = opened.entry().layout();
  PIF_TRY_VALUE(parts.layout, client::layout_of(parts.file_layout));
  parts.nodes.assign(opened.nodes().begin(), opened.nodes().end());
  parts.capability = opened.capability();
  parts.capability_until = session_->clock().wall_seconds() + kCapabilitySeconds;
  parts.rights = mode == Mode::kWrite ? kMayRead | kMayWrite : static_cast<std::uint32_t>(kMayRead);
  parts.epoch = opened.epoch();
  parts.owner = entry.owner;
  parts.extent = entry.marks.empty() ? entry.extent : Extent{};  // of a marked one it may be shorter
  parts.attributes = std::move(entry.attributes);
  PIF_TRY(check_parts(parts));
  auto state = std::make_unique<FileState>(session_, std::move(parts));
  state->held = mode == Mode::kHold;
  return File(std::move(state));
}

Status Client::create_empty(const std::string& path, const CreateOptions& options) {
  PIF_TRY(options.format.validate());
  return done(session_->change(create_packet(path, options, true), {"the file was created", path}));
}

Result<std::vector<Status>> Client::create_empty_many(std::span<const std::string> paths, const CreateOptions& options) {
  for (const std::string& path : paths) PIF_TRY(sendable(path));
  PIF_TRY(options.format.validate());
  std::vector<net::Packet> requests;
  requests.reserve(paths.size());
  for (const std::string& path : paths) requests.push_back(create_packet(path, options, true));
  std::vector<Status> outcome;
  outcome.reserve(paths.size());
  for (auto& reply : session_->ask_server_all(std::move(requests))) outcome.push_back(done(std::move(reply)));
  return outcome;
}

Status Client::make_folder(const std::string& path, bool parents, std::uint32_t mode) {
  PIF_TRY(sendable(path));
  net::Packet request;
  proto::MakeFolder& make = *request.envelope.mutable_make_folder();
  make.set_path(path);
  make.set_parents(parents);
  make.set_mode(mode);
  return done(session_->change(std::move(request), {"the folder was made", path}));
}

Status Client::change_attributes(const std::string& path, const AttributeChange& change) {
  PIF_TRY(sendable(path));
  net::Packet request;
  proto::SetAttributes& set = *request.envelope.mutable_set_attributes();
  set.set_path(path);
  if (change.mode) set.set_mode(*change.mode);
  if (change.owner) set.set_owner(*change.owner);
  if (change.group) set.set_group(*change.group);
  return done(session_->ask_server(std::move(request)));
}

Result<Entry> Client::stat(const std::string& path) {
  PIF_TRY_VALUE(auto entries, stat_many(std::span(&path, 1)));
  return std::move(entries.front());
}

Result<std::vector<Result<Entry>>> Client::stat_many(std::span<const std::string> paths) {
  for (const std::string& path : paths) PIF_TRY(sendable(path));
  std::vector<net::Packet> requests;
  for (std::size_t begin = 0; begin < paths.size(); begin += kPathsPerStat) {
    net::Packet& request = requests.emplace_back();
    for (const std::string& path : paths.subspan(begin, std::min(kPathsPerStat, paths.size() - begin))) {
      request.envelope.mutable_stat()->add_paths(path);
    }
  }
  std::vector<Result<Entry>> entries;
  entries.reserve(paths.size());
  for (auto& reply : session_->ask_server_all(std::move(requests))) {
    if (!reply) return fail(strip(std::move(reply.error())));
    for (const proto::StatReply::One& one : reply->envelope.stat_reply().results()) {
      if (one.has_error()) {
        entries.push_back(fail(strip(net::error_of(one.error()))));
      } else {
        entries.push_back(entry_of(one.entry()));
      }
    }
  }
  if (entries.size() == paths.size()) return entries;
  return fail(Code::kInternal, fmt::format("the server answered for {} of {} paths", entries.size(), paths.size()));
}

Result<ListPage> Client::list(const std::string& path, const std::string& after, std::uint32_t limit) {
  PIF_TRY(sendable(path));
  net::Packet request;
  proto::List& list = *request.envelope.mutable_list();
  list.set_path(path);
  list.set_after(after);
  list.set_limit(limit);
  auto reply = session_->ask_server(std::move(request));
  if (!reply) return fail(strip(std::move(reply.error())));
  ListPage page;
  page.more = reply->envelope.list_reply().more();
  for (const proto::EntryInfo& info : reply->envelope.list_reply().entries()) {
    PIF_TRY_VALUE(Entry entry, entry_of(info));
    page.entries.push_back(std::move(entry));
  }
  return page;
}

Status Client::remove(const std::string& path, bool recursive) {
  PIF_TRY(sendable(path));
  net::Packet request;
  request.envelope.mutable_remove()->add_paths(path);
  request.envelope.mutable_remove()->set_recursive(recursive);
  auto reply = session_->change(std::move(request), {"it was removed", path});
  if (!reply) return fail(strip(std::move(reply.error())));
  const proto::RemoveReply& removed = reply->envelope.remove_reply();
  for (const proto::Error& error : removed.errors()) {
    if (error.code() != 0) return fail(strip(net::error_of(error)));
  }
  return {};
}

Result<std::vector<Status>> Client::remove_many(std::span<const std::string> paths) {
  for (const std::string& path : paths) PIF_TRY(sendable(path));
  std::vector<net::Packet> requests;
  for (std::size_t begin = 0; begin < paths.size(); begin += kPathsPerRemove) {
    net::Packet& request = requests.emplace_back();
    for (const std::string& path : paths.subspan(begin, std::min(kPathsPerRemove, paths.size() - begin))) {
      request.envelope.mutable_remove()->add_paths(path);
    }
  }
  std::vector<Status> outcome;
  outcome.reserve(paths.size());
  std::size_t asked = 0;
  for (auto& reply : session_->ask_server_all(std::move(requests))) {
    asked = std::min(paths.size(), asked + kPathsPerRemove);
    if (!reply) return fail(strip(std::move(reply.error())));
    for (const proto::Error& error : reply->envelope.remove_reply().errors()) {
      outcome.push_back(error.code() == 0 ? Status() : fail(strip(net::error_of(error))));
    }
    if (outcome.size() != asked) {
      return fail(Code::kInternal, fmt::format("the server answered for {} of {} paths", outcome.size(), asked));
    }
  }
  return outcome;
}

Status Client::rename(const std::string& from, const std::string& to, bool no_replace) {
  PIF_TRY(sendable(from));
  PIF_TRY(sendable(to));
  net::Packet request;
  proto::Rename& rename = *request.envelope.mutable_rename();
  rename.set_from(from);
  rename.set_to(to);
  rename.set_no_replace(no_replace);
  return done(session_->change(std::move(request), {"it was renamed", to}));
}

Result<SystemStatus> Client::status(std::uint32_t wait_up) {
  net::Packet request;
  request.envelope.mutable_nodes()->set_wait_up(wait_up);
  auto reply = session_->ask_server(std::move(request));
  if (!reply) return fail(strip(std::move(reply.error())));
  const proto::NodesReply& nodes = reply->envelope.nodes_reply();
  SystemStatus status;
  status.cluster = nodes.cluster();
  for (const proto::NodeInfo& info : nodes.nodes()) status.nodes.push_back(node_of(info));
  status.files = nodes.files();
  status.folders = nodes.folders();
  status.pending = nodes.pending();
  status.doomed = nodes.doomed();
  status.sessions = nodes.sessions();
  status.refused = nodes.refused();
  status.refused_since = nodes.refused_since();
  status.run = nodes.moment().run();
  status.index = nodes.moment().index();
  return status;
}

namespace client {

struct FileAccess {
  static File make(std::unique_ptr<FileState> state) { return File(std::move(state)); }
};

Result<File> adopt_file(std::shared_ptr<Session> session, FileParts parts) {
  PIF_TRY(check_parts(parts));
  auto state = std::make_unique<FileState>(std::move(session), std::move(parts));
  state->adopted = true;
  return FileAccess::make(std::move(state));
}

}  // namespace client

}  // namespace pif
