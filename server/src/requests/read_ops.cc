// Operations that only look.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "context/server_context.h"
#include "directory/entry_bytes.h"
#include "directory/names.h"
#include "directory/own_ids.h"
#include "nodes/pair_census.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/base/timers.h"
#include "pif/base/version.h"
#include "pif/kv/value.h"
#include "pif/net/calls.h"
#include "pif/wire/convert.h"
#include "pif/wire/file_states.h"

namespace pif::server {
namespace {

constexpr int kStatPathsMax = 4096;
constexpr std::size_t kPageBytes = 60u << 10;    // of a reply in pages, so that it fits every transport
constexpr std::size_t kReplyBytes = 120u << 10;  // of a reply that is not in pages
constexpr std::uint32_t kListMax = 10'000;
constexpr std::uint32_t kListDefault = 1000;
constexpr int kStatesMax = 100'000;
constexpr Duration kWaitMax = std::chrono::minutes(5);
constexpr Duration kWaitDefault = std::chrono::seconds(5);

// The bytes of an EntryInfo with name, type and id alone; as Directory::show().
Result<std::size_t> show_name(std::string_view stored, std::string_view name, std::string& info) {
  proto::StoredEntry entry;
  if (!entry.ParseFromArray(stored.data(), static_cast<int>(stored.size())))
    return fail(Code::kCorrupt, fmt::format("the directory's entry of {} is no message", name));
  proto::EntryInfo little;
  little.set_name(std::string(name));
  little.set_type(entry.type());
  little.set_id(entry.id());
  info = little.SerializeAsString();
  return 1;
}

Status hello(ServerContext& context, Call& call, const proto::Hello& asked, proto::HelloReply& reply) {
  const net::Identity& identity = context.world.messenger.identity(call.request.peer);
  PIF_TRY(
      context.sessions.hello(call.request.peer, call.request.envelope(), identity, context.now, context.wall, reply));
  context.turns.introduce(call.request.peer, asked.program(), reply.uid());
  reply.set_cluster(context.config.cluster);
  reply.set_node("server");
  reply.set_window_bytes(kBulkBytes);
  reply.set_pid(static_cast<std::uint32_t>(::getpid()));
  return {};
}

// Answered by nothing: nobody is there any more.
Status bye(ServerContext& context, Call& call, const proto::Bye&) {
  if (Session* ended = context.sessions.closed(call.request.peer, context.now)) end_session(context, *ended);
  context.world.messenger.disconnect(call.request.peer);
  context.turns.drop(call.request.peer);
  forget_waiting(context, call.request.peer);
  call.is_unanswered = true;
  return {};
}

Status stats(ServerContext& context, Call&, const proto::Stats&, proto::StatsReply& reply) {
  reply = context.replies.stats();
  context.turns.describe(reply);
  reply.set_version(std::string(version()));
  reply.set_pid(::getpid());
  return {};
}

Status stat(ServerContext& context, Call& call, const proto::Stat& ask, proto::StatReply& reply) {
  if (ask.paths_size() > kStatPathsMax) {
    return fail(Code::kTooLarge,
                fmt::format("{} paths in one request, the limit is {}", ask.paths_size(), kStatPathsMax));
  }
  std::string& results = *reply.mutable_results();
  std::string info, one;
  for (const std::string& path : ask.paths()) {
    one.clear();
    const auto read = context.directory.stat(path, call.who(), info);
    if (read) append_field(one, proto::StatResults::One::kEntryFieldNumber, info);
    if (!read)
      append_field(one, proto::StatResults::One::kErrorFieldNumber,
                   wire::proto_of(read.error(), "server").SerializeAsString());
    append_field(results, proto::StatResults::kResultsFieldNumber, one);
    context.weight += read.value_or(1);
  }
  if (ask.paths_size() > 1 && results.size() > kReplyBytes) {
    return fail(Code::kTooLarge,
                fmt::format("what is to be said of {} paths does not fit into one reply: ask for fewer at once",
                            ask.paths_size()));
  }
  return {};
}

// The id of the folder, or of the file, whose entries are asked for.
Result<std::uint64_t> listed(ServerContext& context, const Requester& who, const proto::List& ask) {
  if (ask.fork_of() != 0) {
    PIF_TRY_VALUE(const proto::StoredEntry file, context.directory.file_with_forks(ask.fork_of(), who));
    if (may(who, guard_of(file.attributes()), kWantRead)) return file.id();
    return fail(Code::kPermission, fmt::format("uid {} may not read file {}", who.uid, ask.fork_of()));
  }
  PIF_TRY_VALUE(const std::string_view path, check_path(ask.path()));
  PIF_TRY_VALUE(const FolderRef folder, context.directory.folder(path, who));
  if (may(who, folder->guard(), kWantRead)) return folder->id();
  return fail(Code::kPermission, fmt::format("uid {} may not read the folder {}", who.uid, shown(path)));
}

Status list(ServerContext& context, Call& call, const proto::List& ask, proto::ListReply& reply) {
  PIF_TRY_VALUE(const std::uint64_t folder, listed(context, call.who(), ask));
  const std::uint32_t limit = ask.limit() == 0 ? kListDefault : std::min(ask.limit(), kListMax);
  const std::string prefix = kv::key_u64(folder);
  std::string from = prefix + ask.after();
  if (!ask.after().empty()) from.push_back('\0');  // the first key after it
  std::string& entries = *reply.mutable_entries();
  std::string info;
  std::uint32_t count = 0;
  Status good;
  PIF_TRY(context.rows.scan(kEntries, from, [&](std::string_view key, std::string_view stored) {
    if (key.substr(0, prefix.size()) != prefix) return false;
    reply.set_more(count >= limit || entries.size() > kPageBytes);
    if (reply.more()) return false;
    const std::string_view name = key.substr(prefix.size());
    const auto read = ask.names_only() ? show_name(stored, name, info) : context.directory.show(stored, name, info);
    if (!read) {
      good = fail(read.error());
      return false;
    }
    append_field(entries, proto::EntryList::kEntriesFieldNumber, info);
    context.weight += *read;
    ++count;
    return true;
  }));
  return good;
}

}  // namespace

void describe_nodes(ServerContext& context, proto::NodesReply& reply) {
  context.registry.describe(context.now, *reply.mutable_nodes());
  // What an LFS has changed since is what an old directory does not know of: `pif server accept-old` asks. One that
  // knew better may have come late, and the server heard of others in between.
  if (context.standing == Standing::kBehind) {
    for (proto::NodeInfo& info : *reply.mutable_nodes()) info.set_number(context.registry.find(info.id())->known);
  }
  reply.set_cluster(context.config.cluster);
  const auto files = context.rows.count(kFiles);
  const auto entries = context.rows.count(kEntries);
  reply.set_pending(context.pending.size());
  reply.set_doomed(context.outbox.doomed_count());
  reply.set_sessions(context.sessions.count());
  reply.set_refused(context.behind);
  reply.set_refused_since(context.behind_since);
  *reply.mutable_moment() = context.numbers.moment();
  reply.set_view(context.registry.views().index());
  reply.set_off_pairs(context.off_pairs);
  for (const auto& [first, second] : default_pairs(context)) {
    proto::BevyPair& pair = *reply.add_pairs();
    pair.mutable_first()->Add(first.begin(), first.end());
    pair.mutable_second()->Add(second.begin(), second.end());
  }
  if (!files || !entries) return;
  const std::uint64_t unnamed = context.pending.size() + context.outbox.doomed_count();
  reply.set_files(*files - std::min(*files, unnamed));
  reply.set_folders(*entries - std::min(*entries, reply.files()));
}

namespace {

// One user does not keep others from waiting.
Status check_waiters(const ServerContext& context, const Requester& who) {
  PIF_TRY(check_room(context));
  const auto theirs = context.nodes_waiters.find(who.uid);
  if (who.all_powerful || theirs == context.nodes_waiters.end() || theirs->second < kSessionsPerUserMax) return {};
  return fail(Code::kBusy, fmt::format("{} requests of uid {} wait for LFSs already, the limit of one user",
                                       theirs->second, who.uid));
}

Status nodes(ServerContext& context, Call& call, const proto::Nodes& ask, proto::NodesReply& reply) {
  const auto is_done = [&] { return context.registry.up_count(context.now) >= ask.wait_up(); };
  if (!is_done()) {
    const std::uint32_t uid = call.who().uid;
    PIF_TRY(check_waiters(context, call.who()));
    ++context.nodes_waiters[uid];
    const daemon::AtExit end([&context, uid] {
      if (--context.nodes_waiters[uid] == 0) context.nodes_waiters.erase(uid);
    });
    // A tenth of the time is left for the answer's way back.
    const std::uint32_t ms = call.request.envelope().timeout_ms();
    const Duration timeout = ms == 0 ? kWaitDefault : std::chrono::milliseconds(ms);
    const Time until = context.now + std::min<Duration>(timeout - timeout / 10, kWaitMax);
    PIF_ASSERT(until >= context.now, timeout.count());
    // An LFS may also come up as time passes, without news.
    while (!is_done() && context.clock.now() < until && !context.replies.is_dropped(call.request))
      (void)context.nodes_news.wait(std::min(until, context.clock.now() + ServerContext::kTick));
  }
  describe_nodes(context, reply);
  return {};
}

Status file_states(ServerContext& context, Call&, const proto::FileStates& ask, proto::FileStatesReply& reply) {
  if (ask.files_size() > kStatesMax) {
    return fail(Code::kTooLarge, fmt::format("{} files in one request, the limit is {}", ask.files_size(), kStatesMax));
  }
  for (const std::uint64_t id : ask.files()) {
    PIF_TRY_VALUE(const auto file, context.rows.file(id));
    if (file && !file->aborted()) {  // LFSs are told of its end when nobody has it open any more
      reply.add_states(is_open_still(context, id, *file) ? kCommitted : file->state());
      continue;
    }
    PIF_TRY_VALUE(const bool is_own, is_id_of_run(context.rows, id, context.numbers.run()));
    reply.add_states(is_own ? wire::kFileGivenUp : wire::kFileUnknown);
  }
  context.weight += static_cast<std::size_t>(ask.files_size());
  return {};
}

Status list_files(ServerContext& context, Call& call, const proto::ListFiles& ask, proto::ListFilesReply& reply) {
  const std::uint32_t limit = ask.limit() == 0 ? kListDefault : std::min(ask.limit(), kListMax);
  std::vector<std::pair<std::uint64_t, proto::StoredFile>> page;
  reply.set_capability(capability_for(context, 0, call.who().uid, kMayManage, 0));
  if (ask.after() == UINT64_MAX) return {};  // no id is greater
  std::size_t bytes = 0;
  PIF_TRY(context.rows.scan(kFiles, kv::key_u64(ask.after() + 1), [&](std::string_view key, std::string_view stored) {
    reply.set_more(page.size() >= limit || bytes > kPageBytes);
    if (reply.more()) return false;
    page.emplace_back(kv::u64_of_key(key), proto::StoredFile());
    page.back().second.ParseFromArray(stored.data(), static_cast<int>(stored.size()));
    bytes += stored.size() + 150;  // a committed file's entry, and its path, come on top
    return true;
  }));
  std::unordered_map<std::uint64_t, std::string> known;
  for (const auto& [id, file] : page) {
    proto::ListFilesReply::One& one = *reply.add_files();
    one.set_file(id);
    one.set_state(file.state());
    proto::StoredEntry entry = file.entry();
    if (file.state() == kCommitted) {
      PIF_TRY_VALUE(auto found, context.rows.entry(file.parent(), file.name()));
      if (found) entry = std::move(*found);
    }
    auto folder = context.directory.path_of(file.parent(), known);
    one.set_path(fmt::format("{}/{}", folder ? *folder : std::string("(removed folder)"), file.name()));
    *one.mutable_format() = entry.format();
    *one.mutable_layout() = entry.layout();
    *one.mutable_file_length() = entry.file_length();
    one.set_epoch(entry.epoch());
    one.set_untouched(file.untouched());
    *one.mutable_marks() = entry.marks();
    *one.mutable_lacking() = file.lacking();
  }
  context.weight += page.size();
  return {};
}

}  // namespace

void bind_reading(Operations& operations) {
  operations.bind<hello>(kAlways);
  operations.bind<bye>(kAlways);
  operations.bind<stats>(kAlways);
  operations.bind<stat>(kWhileHeld);
  operations.bind<list>(kWhileHeld);
  operations.bind<nodes>(kAlways);
  operations.bind<file_states>();
  operations.bind<list_files>(kWhileBehind | kWhileHeld);
}

}  // namespace pif::server
