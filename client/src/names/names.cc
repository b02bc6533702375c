// The Client of pif/client/client.h: names in the directory.
#include <algorithm>

#include <fmt/format.h>

#include "names/names.h"
#include "pif/wire/convert.h"
#include "pif/wire/nested.h"
#include "pif/wire/views.h"
#include "session/in_use.h"

namespace pif {

using client::create_packet;
using client::entry_of;
using client::sendable;
using client::Session;
using client::strip;

namespace {

constexpr std::size_t kPathsPerStat = 256;
constexpr std::size_t kPathsPerRemove = 256;

std::string_view state_name(std::uint32_t state) {
  constexpr std::string_view kNames[] = {"unknown", "up", "suspect", "down", "draining", "stale", "failing"};
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
  node.host = info.host();
  node.pid = info.pid();
  node.unix_path = info.endpoints().unix_path();
  node.uuid = info.uuid();
  node.incarnation = info.incarnation();
  node.number = info.number();
  node.taken_back = info.taken_back();
  node.clock_ahead = info.clock_ahead();
  node.scrubbed = info.scrubbed();
  node.scrub_damages = info.scrub_damages();
  // An older server says nothing of it.
  node.lacking = info.lacking();
  node.view_state = wire::view_state_name(info.view_state() == 0 ? wire::kViewMember : info.view_state());
  node.rebuilt_percent = info.rebuilt_percent();
  node.trouble = info.trouble();
  node.trouble_since = info.trouble_since();
  node.ipc = info.endpoints().ipc();
  node.tcp = info.endpoints().tcp();
  return node;
}

template <typename Reply>
Status done(Result<Reply> reply) {
  if (!reply) return fail(strip(std::move(reply.error())));
  return {};
}

// The answer for each path. `ask` gets those that can be sent; each other one has its own error, and fails alone.
template <typename One, typename Ask>
Result<std::vector<One>> answers_for(std::span<const std::string> paths, Ask ask) {
  std::vector<Status> sendables;
  std::vector<std::string> asked;
  for (const std::string& path : paths) {
    sendables.push_back(sendable(path));
    if (sendables.back()) asked.push_back(path);
  }
  PIF_TRY_VALUE(std::vector<One> answers, ask(std::span<const std::string>(asked)));
  if (answers.size() != asked.size())
    return fail(Code::kInternal, fmt::format("the server answered for {} of {} paths", answers.size(), asked.size()));
  auto next = answers.begin();
  std::vector<One> all;
  all.reserve(paths.size());
  for (Status& one : sendables) {
    if (one)
      all.push_back(std::move(*next++));
    else
      all.push_back(fail(std::move(one.error())));
  }
  return all;
}

Status stat_some(client::Session& session, std::span<const std::string> paths, std::size_t at_once,
                 std::vector<Result<Entry>>& entries);

// What was answered of these paths. Fewer are asked for at once where entries (attributes, many LFSs) are too long for
// one reply.
Status add_entries(client::Session& session, std::span<const std::string> paths, Result<net::Packet> reply,
                   std::vector<Result<Entry>>& entries) {
  if (!reply && reply.error().code == Code::kTooLarge && paths.size() > 1)
    return stat_some(session, paths, (paths.size() + 3) / 4, entries);
  if (!reply) return fail(strip(std::move(reply.error())));
  wire::Nested<proto::StatResults> nested;
  PIF_TRY(nested.parse(reply->envelope.stat_reply().results(), "what the server says of the paths"));
  for (const proto::StatResults::One& one : nested->results()) {
    if (one.has_error()) {
      entries.push_back(fail(strip(wire::error_of(one.error()))));
    } else {
      entries.push_back(entry_of(one.entry()));
    }
  }
  return {};
}

// Many paths at once.
Status stat_some(client::Session& session, std::span<const std::string> paths, std::size_t at_once,
                 std::vector<Result<Entry>>& entries) {
  std::vector<net::Packet> requests;
  for (std::size_t begin = 0; begin < paths.size(); begin += at_once) {
    net::Packet& request = requests.emplace_back();
    for (const std::string& path : paths.subspan(begin, std::min(at_once, paths.size() - begin))) {
      request.envelope.mutable_stat()->add_paths(path);
    }
  }
  std::size_t begin = 0;
  Status good;
  session.ask_server_all(std::move(requests), [&](Result<net::Packet> reply) {
    const auto asked = paths.subspan(begin, std::min(at_once, paths.size() - begin));
    begin += asked.size();
    if (good) good = add_entries(session, asked, std::move(reply), entries);
  });
  return good;
}

}  // namespace

namespace client {

Result<ListPage> list_page(Session& session, proto::List list) {
  const auto reply = session.call(std::move(list));
  if (!reply) return fail(strip(reply.error()));
  ListPage page;
  page.more = reply->more();
  wire::Nested<proto::EntryList> nested;
  PIF_TRY(nested.parse(reply->entries(), "what the server says of the folder"));
  page.entries.reserve(static_cast<std::size_t>(nested->entries_size()));
  for (const proto::EntryInfo& info : nested->entries()) {
    PIF_TRY_VALUE(Entry entry, entry_of(info));
    page.entries.push_back(std::move(entry));
  }
  return page;
}

Status remove_one(Session& session, proto::Remove request, const std::string& shown) {
  const auto reply = session.change(std::move(request), {"it was removed", shown});
  if (!reply) return fail(strip(reply.error()));
  for (const proto::Error& error : reply->errors())
    if (error.code() != 0) return fail(strip(wire::error_of(error)));
  return {};
}

}  // namespace client

Client::Client(std::shared_ptr<Session> session) : session_(std::move(session)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(ConnectOptions options) {
  client::OneUser user;  // a session has its own
  return client::in_use(user, [&]() -> Result<Client> {
    PIF_TRY_VALUE(auto session, Session::connect(std::move(options)));
    return Client(std::move(session));
  });
}

Result<Client> Client::connect_in(ClientWorld world, const std::string& server, ConnectOptions options) {
  client::OneUser user;
  return client::in_use(user, [&]() -> Result<Client> {
    proto::Endpoints endpoints;
    endpoints.set_unix_path(server);
    options.threads = std::min(options.threads != 0 ? options.threads : world.threads_max, world.threads_max);
    PIF_TRY_VALUE(auto session, Session::connect_in(world, endpoints, std::move(options)));
    return Client(std::move(session));
  });
}

void Client::on_wait(std::function<bool()> wants_to_stop) { session_->caller().on_wait(std::move(wants_to_stop)); }

Status Client::create_empty(const std::string& path, const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY(sendable(path));
    PIF_TRY(options.format.validate());
    return done(
        session_->change(create_packet(path, options, client::WhenThere::kAtOnce), {"the file was created", path}));
  });
}

Result<std::vector<Status>> Client::create_empty_many(std::span<const std::string> paths,
                                                      const CreateOptions& options) {
  return client::in_use(session_->user(), [&]() -> Result<std::vector<Status>> {
    PIF_TRY(options.format.validate());
    return answers_for<Status>(paths, [&](std::span<const std::string> asked) -> Result<std::vector<Status>> {
      std::vector<net::Packet> requests;
      std::vector<client::Change> changes;
      requests.reserve(asked.size());
      changes.reserve(asked.size());
      for (const std::string& path : asked) {
        requests.push_back(create_packet(path, options, client::WhenThere::kAtOnce));
        changes.push_back({"the file was created", path});
      }
      std::vector<Status> outcome;
      outcome.reserve(asked.size());
      for (auto& reply : session_->change_all(std::move(requests), changes)) outcome.push_back(done(std::move(reply)));
      return outcome;
    });
  });
}

Status Client::make_folder(const std::string& path, bool parents, std::uint32_t mode,
                           const std::optional<Striping>& striping, const Owner& owner) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY(sendable(path));
    proto::MakeFolder make;
    make.set_path(path);
    make.set_parents(parents);
    make.set_mode(mode);
    if (striping) *make.mutable_striping() = client::proto_of(*striping);
    client::set_owner(owner.user, owner.group, make);
    return done(session_->change(std::move(make), {"the folder was made", path}));
  });
}

Status Client::create_other(const std::string& path, const NewOther& what) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY(sendable(path));
    if (what.kind < EntryKind::kLink)
      return fail(Code::kInvalid, fmt::format("{}: a file or a folder is made otherwise", path));
    proto::Create create;
    create.set_path(path);
    create.set_mode(what.mode);
    client::set_owner(what.owner, what.group, create);
    proto::Other& other = *create.mutable_other();
    other.set_kind(static_cast<std::uint32_t>(what.kind) - static_cast<std::uint32_t>(EntryKind::kLink) +
                   wire::kOtherLink);
    other.set_target(what.target);
    other.set_device(what.device);
    PIF_TRY(wire::other_kind_of(other));
    return done(session_->change(std::move(create), {"it was made", path}));
  });
}

std::vector<Status> Client::make_folder_many(std::span<const NewFolder> folders) {
  return client::in_use_each(session_->user(), folders.size(), [&] {
    std::vector<net::Packet> requests;
    std::vector<client::Change> changes;
    std::vector<Status> outcome;
    for (const NewFolder& folder : folders) {
      outcome.push_back(sendable(folder.path));
      if (!outcome.back()) continue;
      proto::MakeFolder& make = *requests.emplace_back().envelope.mutable_make_folder();
      make.set_path(folder.path);
      make.set_mode(folder.mode);
      changes.push_back({"the folder was made", folder.path});
    }
    auto replies = session_->change_all(std::move(requests), changes);
    auto next = replies.begin();
    for (Status& one : outcome)
      if (one) one = done(std::move(*next++));
    return outcome;
  });
}

Status Client::change_attributes(const std::string& path, const AttributeChange& change) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY(sendable(path));
    proto::SetAttributes set;
    set.set_path(path);
    if (change.mode) set.set_mode(*change.mode);
    if (change.owner) set.set_owner(*change.owner);
    if (change.group) set.set_group(*change.group);
    if (change.modified_ns) {
      set.set_modified(*change.modified_ns);
      set.set_at(session_->clock().wall_ns());
    }
    if (change.striping) *set.mutable_striping() = client::proto_of(*change.striping);
    return done(session_->change(std::move(set), {"the attributes were changed", path}));
  });
}

Result<Entry> Client::stat(const std::string& path) {
  PIF_TRY_VALUE(auto entries, stat_many(std::span(&path, 1)));
  return std::move(entries.front());
}

Result<std::vector<Result<Entry>>> Client::stat_many(std::span<const std::string> paths) {
  return client::in_use(session_->user(), [&]() -> Result<std::vector<Result<Entry>>> {
    return answers_for<Result<Entry>>(paths,
                                      [&](std::span<const std::string> asked) -> Result<std::vector<Result<Entry>>> {
                                        std::vector<Result<Entry>> entries;
                                        entries.reserve(asked.size());
                                        PIF_TRY(stat_some(*session_, asked, kPathsPerStat, entries));
                                        return entries;
                                      });
  });
}

Result<ListPage> Client::list(const std::string& path, const std::string& after, std::uint32_t limit) {
  return client::in_use(session_->user(), [&]() -> Result<ListPage> {
    PIF_TRY(sendable(path));
    proto::List list;
    list.set_path(path);
    list.set_after(after);
    list.set_limit(limit);
    return client::list_page(*session_, std::move(list));
  });
}

Status Client::remove(const std::string& path, bool recursive) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY(sendable(path));
    proto::Remove request;
    request.add_paths(path);
    request.set_recursive(recursive);
    return client::remove_one(*session_, std::move(request), path);
  });
}

namespace {

Result<std::vector<Status>> remove_asked(client::Session& session, std::span<const std::string> paths) {
  std::vector<net::Packet> requests;
  std::vector<client::Change> changes;
  for (std::size_t begin = 0; begin < paths.size(); begin += kPathsPerRemove) {
    changes.push_back({"they were removed", paths[begin]});
    net::Packet& request = requests.emplace_back();
    for (const std::string& path : paths.subspan(begin, std::min(kPathsPerRemove, paths.size() - begin))) {
      request.envelope.mutable_remove()->add_paths(path);
    }
  }
  std::vector<Status> outcome;
  outcome.reserve(paths.size());
  std::size_t asked = 0;
  for (auto& reply : session.change_all(std::move(requests), changes)) {
    asked = std::min(paths.size(), asked + kPathsPerRemove);
    if (!reply) return fail(strip(std::move(reply.error())));
    for (const proto::Error& error : reply->envelope.remove_reply().errors()) {
      outcome.push_back(error.code() == 0 ? Status() : fail(strip(wire::error_of(error))));
    }
    if (outcome.size() != asked) {
      return fail(Code::kInternal, fmt::format("the server answered for {} of {} paths", outcome.size(), asked));
    }
  }
  return outcome;
}

}  // namespace

Result<std::vector<Status>> Client::remove_many(std::span<const std::string> paths) {
  return client::in_use(session_->user(), [&]() -> Result<std::vector<Status>> {
    return answers_for<Status>(paths,
                               [&](std::span<const std::string> asked) { return remove_asked(*session_, asked); });
  });
}

Status Client::rename(const std::string& from, const std::string& to, bool no_replace) {
  return client::in_use(session_->user(), [&]() -> Status {
    PIF_TRY(sendable(from));
    PIF_TRY(sendable(to));
    proto::Rename rename;
    rename.set_from(from);
    rename.set_to(to);
    rename.set_no_replace(no_replace);
    return done(session_->change(std::move(rename), {"it was renamed", to}));
  });
}

Result<SystemStatus> Client::status(std::uint32_t wait_up) {
  return client::in_use(session_->user(), [&]() -> Result<SystemStatus> {
    proto::Nodes request;
    request.set_wait_up(wait_up);
    const auto reply = session_->call(std::move(request));
    if (!reply) return fail(strip(reply.error()));
    const proto::NodesReply& nodes = *reply;
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
    status.view = nodes.view();
    status.off_pairs = nodes.off_pairs();
    for (const proto::BevyPair& pair : nodes.pairs())
      status.pairs.emplace_back(std::vector(pair.first().begin(), pair.first().end()),
                                std::vector(pair.second().begin(), pair.second().end()));
    return status;
  });
}

}  // namespace pif
