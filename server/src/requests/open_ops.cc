// Open, close and renew: leases on files, and the capabilities that go with them.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "context/server_context.h"
#include "directory/names.h"
#include "pif/base/format.h"
#include "pif/wire/values.h"
#include "requests/layouts.h"
#include "requests/replacing.h"

namespace pif::server {
namespace {

constexpr std::uint32_t kOpenRights = kMayRead | kMayWrite;
constexpr int kRenewFilesMax = 4096;

// A committed file, or one that was removed while this session has it open.
struct Opened {
  proto::StoredFile row;
  proto::StoredEntry entry;
};

tl::unexpected<Error> stale(std::uint64_t file) {
  return fail(Code::kStaleFile, fmt::format("file {} was removed or replaced since it was opened", file));
}

Status check_has_bytes(const proto::StoredEntry& entry, std::string_view what) {
  if (entry.type() != proto::OTHER) return {};
  return fail(Code::kInvalid, fmt::format("{} is {}: it has no bytes that could be opened", what, kind_name(entry)));
}

using Reached = std::unordered_map<std::uint64_t, bool>;  // folders, for the length of a request

// Ids are easily guessed: to who does not have the file open, one below a folder that he may not search is not there.
Result<Opened> by_id(ServerContext& context, const Call& call, std::uint64_t file, Reached& reached) {
  PIF_TRY_VALUE(auto row, context.rows.file(file));
  if (!row || row->state() == kPending) return stale(file);
  const bool is_open = context.opens.find(file, call.session->id) != nullptr;
  if (row->state() == kDoomed) {
    if (!is_open) return stale(file);
    proto::StoredEntry entry = row->entry();
    return Opened{std::move(*row), std::move(entry)};
  }
  if (!is_open) {
    PIF_TRY_VALUE(const bool reaches, context.directory.may_reach(row->parent(), call.who(), reached));
    if (!reaches) return stale(file);
  }
  PIF_TRY_VALUE(auto entry, context.rows.entry(row->parent(), row->name()));
  if (!entry || entry->id() != file) {
    return fail(Code::kCorrupt,
                fmt::format("the directory has no entry for file {}, {}: run `pif fsck`", file, row->name()));
  }
  PIF_TRY(check_has_bytes(*entry, row->name()));
  return Opened{std::move(*row), std::move(*entry)};
}

Result<Opened> with_row(ServerContext& context, proto::StoredEntry entry, std::string_view path) {
  PIF_TRY_VALUE(auto row, context.rows.file(entry.id()));
  if (!row) return fail(Code::kCorrupt, fmt::format("the directory has no row for {}: run `pif fsck`", path));
  return Opened{std::move(*row), std::move(entry)};
}

Result<Opened> by_path(ServerContext& context, const proto::Open& ask, const Requester& who) {
  const std::string& path = ask.path();
  if (ask.fork_of() != 0) {
    PIF_TRY_VALUE(const Place fork, context.directory.fork_of(ask.fork_of(), path, who));
    PIF_TRY_VALUE(auto entry, context.rows.entry(ask.fork_of(), fork.name));
    if (!entry) return fail(Code::kNotFound, fmt::format("there is no fork {}", path));
    return with_row(context, std::move(*entry), path);
  }
  PIF_TRY_VALUE(Directory::Found found, context.directory.find(path, who));
  if (!found.place.folder || found.entry.type() == proto::FOLDER)
    return fail(Code::kIsDirectory, fmt::format("{} is a folder", path));
  PIF_TRY(check_has_bytes(found.entry, path));
  return with_row(context, std::move(found.entry), path);
}

// Whether the session may open so many more.
Status check_count(const ServerContext& context, const Call& call, std::size_t more) {
  const std::size_t open = context.opens.count_of(call.session->id);
  if (open + more <= kOpensPerSessionMax) return {};
  return fail(Code::kBusy, fmt::format("this program has {} files open, and may have {}", open, kOpensPerSessionMax));
}

Status check_rights(const Call& call, const Opened& opened, std::uint32_t rights, std::string_view what) {
  const Guard guard = guard_of(opened.entry.attributes());
  if ((rights & kMayRead) != 0 && !may(call.who(), guard, kWantRead)) {
    return fail(Code::kPermission, fmt::format("uid {} may not read {}", call.who().uid, what));
  }
  if ((rights & kMayWrite) != 0 && !may(call.who(), guard, kWantWrite)) {
    return fail(Code::kPermission, fmt::format("uid {} may not write {}", call.who().uid, what));
  }
  return {};
}

Status check_conflict(ServerContext& context, const Call& call, std::uint64_t file, std::uint32_t rights, bool hold,
                      std::string_view what) {
  const Holder* other = context.opens.conflict(file, call.session->id, rights, hold);
  if (other == nullptr) return {};
  const Session* holder = context.sessions.find(other->session);
  return fail(Code::kBusy,
              fmt::format("{} is {} by {} (uid {})", what, other->hold ? "held against writing" : "open for writing",
                          holder == nullptr ? "somebody" : holder->program, holder == nullptr ? 0 : holder->who.uid));
}

// Rows that may be old, or are gone, are for who asks for them.
Status check_marks(const proto::StoredEntry& entry, const proto::Open& ask, std::string_view what) {
  if (entry.marks().empty() || ask.stale()) return {};
  const bool lost = std::any_of(entry.marks().begin(), entry.marks().end(),
                                [](const auto& mark) { return mark.kind() == wire::kMarkLost; });
  return fail(Code::kStaleData,
              fmt::format("{}: {} (see `pif stat`); read it all the same with --stale, or put it anew", what,
                          lost ? "rows of it are gone" : "rows of it may be older than others"));
}

// What opening changes in the tables: a file that gets a writer may get components, and gives nobody its owner's rights
// any more; a removed one lives on with its lease.
Status note_open(ServerContext& context, const Requester& who, Opened& opened, std::uint32_t rights) {
  const std::uint64_t id = opened.entry.id();
  if ((rights & kMayWrite) != 0 && opened.row.state() == kCommitted)
    PIF_TRY(drop_privileges(context, who, opened.row.parent(), opened.row.name(), opened.entry));
  if ((opened.row.bare() || opened.row.untouched()) && (rights & kMayWrite) != 0) {
    opened.row.set_bare(false);
    opened.row.set_untouched(false);
    return context.rows.put_file(id, opened.row);
  }
  if (opened.row.state() != kDoomed) return {};
  opened.row.set_expiry(context.wall + kLeaseSeconds);
  PIF_TRY(context.rows.put_file(id, opened.row));
  context.outbox.extend_held(id, opened.row.expiry());
  return {};
}

// A hold is durable before it is answered, with all else that the session has open of the file.
Status lock_input(ServerContext& context, const Call& call, std::uint64_t file, const proto::Open& ask, bool again) {
  const Holder* before = context.opens.find(file, call.session->id);
  Holder holder = before == nullptr ? Holder{.session = call.session->id} : *before;
  if (before == nullptr || !again) ++holder.count;
  holder.rights |= ask.rights();
  holder.hold |= ask.hold();
  return holder.hold ? context.locks.store(file, *call.session, holder) : Status();
}

void take_lease(ServerContext& context, const Call& call, std::uint64_t file, std::uint32_t rights, bool hold,
                bool again) {
  context.opens.add(file, call.session->id, rights, hold, again, context.wall);
  // A lease that goes with a failed turn: nobody learns of it, and it would keep others out.
  if (context.rows.writing() && !again) {
    context.rows.on_abort([&context, file, session = call.session->id] {
      if (context.opens.close(file, session)) context.outbox.release(file);
    });
  }
}

Status open(ServerContext& context, Call& call, const proto::Open& ask, proto::OpenReply& reply) {
  if (ask.rights() == 0 || (ask.rights() & ~kOpenRights) != 0) {
    return fail(Code::kInvalid, "a file is opened for reading, writing, or both");
  }
  PIF_TRY(check_count(context, call, 1));
  const bool has_id = ask.file() != 0;
  const bool again = has_id && !ask.anew();
  const std::string what = has_id ? fmt::format("file {}", ask.file()) : ask.path();
  Reached reached;
  PIF_TRY_VALUE(Opened opened, has_id ? by_id(context, call, ask.file(), reached) : by_path(context, ask, call.who()));
  const std::uint64_t id = opened.entry.id();
  PIF_TRY(check_rights(call, opened, ask.rights(), what));
  if (!again) PIF_TRY(check_marks(opened.entry, ask, what));
  PIF_TRY(check_conflict(context, call, id, ask.rights(), ask.hold(), what));
  PIF_TRY(note_open(context, call.who(), opened, ask.rights()));
  const bool is_counted = again || !call.session->counts(call.request.envelope().id());
  PIF_TRY(lock_input(context, call, id, ask, is_counted));
  take_lease(context, call, id, ask.rights(), ask.hold(), is_counted);
  const std::string& path = ask.path();
  const std::size_t slash = path.find_last_not_of('/');
  const std::string_view trimmed = std::string_view(path).substr(0, slash + 1);
  *reply.mutable_entry() = info_of(opened.entry, has_id ? std::string_view(opened.row.name()) : split(trimmed).name);
  if (opened.entry.placed()) PIF_TRY(context.directory.measure(*reply.mutable_entry()));
  context.registry.describe(opened.entry.layout(), context.now, *reply.mutable_nodes());
  reply.set_capability(capability_for(context, id, call.who().uid, ask.rights(), opened.entry.epoch()));
  reply.set_epoch(opened.entry.epoch());
  reply.set_view(context.registry.views().index());
  return {};
}

bool is_longer(const proto::FileLength& said, const proto::FileLength& known) {
  return said.bytes() >= known.bytes() && said.records() >= known.records() &&
         (said.bytes() > known.bytes() || said.records() > known.records());
}

// Whether the session may say that it wrote to the file. After a restart the server does not know that it has it open.
Result<bool> may_have_written(ServerContext& context, const Call& call, const Replaced& file) {
  Reached reached;
  if (!may(call.who(), guard_of(file.entry.attributes()), kWantWrite)) return false;
  return context.directory.may_reach(file.parent, call.who(), reached);
}

// What a writer says of the file beside its closing: the length that it last heard from the file's sequencer, which
// only ever rises here; and that it wrote.
Status note_written(ServerContext& context, const Call& call, const proto::Close& ask) {
  PIF_TRY_VALUE(const auto found, committed_file(context, ask.length_file()));
  if (!found || found->entry.placed()) return {};
  const Holder* holder = context.opens.find(ask.length_file(), call.session->id);
  const bool is_writer = holder != nullptr && (holder->rights & kMayWrite) != 0;
  proto::StoredEntry entry = found->entry;
  const bool has_grown = is_writer && ask.has_file_length() && is_longer(ask.file_length(), entry.file_length());
  if (!has_grown && ask.wrote() == 0) return {};
  if (!is_writer) {
    PIF_TRY_VALUE(const bool may_say, may_have_written(context, call, *found));
    if (holder != nullptr || !may_say) return {};
  }
  if (has_grown) {
    PIF_TRY(check_file_length(entry.format(), ask.file_length()));
    *entry.mutable_file_length() = ask.file_length();
  }
  note_change(context, ask.wrote() != 0 ? ask.wrote() : context.wall_ns(), *entry.mutable_attributes());
  ++context.weight;
  return context.rows.put_entry(found->parent, found->name, entry);
}

// A fresh capability for one file of the session; empty: it is gone, may not be used any more, or was to be `held` and
// others may have written to it.
Result<std::string> renewed(ServerContext& context, const Call& call, std::uint64_t file, bool held, Reached& reached) {
  PIF_TRY_VALUE(const auto row, context.rows.file(file));
  if (row && row->state() == kPending) {
    const bool is_own = row->session() == call.session->id || call.who().uid == row->entry().attributes().owner();
    if (!is_own || is_dropped(*row, call.session->id)) return std::string();
    return capability_for(context, file, call.who().uid, kMayCreate | kMayRead, row->entry().epoch());
  }
  auto opened = by_id(context, call, file, reached);
  if (!opened && opened.error().code == Code::kStaleFile) return std::string();
  if (!opened) return fail(std::move(opened.error()));
  const Holder* holder = context.opens.find(file, call.session->id);
  if (held && (holder == nullptr || !holder->hold)) return std::string();
  std::uint32_t rights = 0;
  for (const std::uint32_t right : {std::uint32_t{kMayRead}, std::uint32_t{kMayWrite}}) {
    const bool wanted = holder == nullptr || (holder->rights & right) != 0;  // unknown: the server was restarted
    if (wanted && check_rights(call, *opened, right, "") &&
        context.opens.conflict(file, call.session->id, right, false) == nullptr) {
      rights |= right;
    }
  }
  if (rights == 0) return std::string();
  PIF_TRY(note_open(context, call.who(), *opened, rights));
  take_lease(context, call, file, rights, false, true);
  return capability_for(context, file, call.who().uid, rights, opened->entry.epoch());
}

Status close(ServerContext& context, Call& call, const proto::Close& ask) {
  if (ask.length_file() != 0) PIF_TRY(note_written(context, call, ask));
  if (!call.session->counts(call.request.envelope().id())) return {};
  for (const std::uint64_t file : ask.files()) {
    if (context.opens.close(file, call.session->id)) context.outbox.release(file);
  }
  return {};
}

Status renew(ServerContext& context, Call& call, const proto::Renew& ask, proto::RenewReply& reply) {
  const auto& files = ask.files();
  if (files.size() > kRenewFilesMax) {
    return fail(Code::kTooLarge, fmt::format("{} files in one request, the limit is {}", files.size(), kRenewFilesMax));
  }
  // Before anything is written. Those that are gone, or named twice, count too.
  const auto fresh = std::count_if(files.begin(), files.end(), [&](std::uint64_t file) {
    return context.opens.find(file, call.session->id) == nullptr && !context.pending.contains(file);
  });
  PIF_TRY(check_count(context, call, static_cast<std::size_t>(fresh)));
  Reached reached;
  const auto& to_hold = call.request.envelope().renew().held();
  const std::unordered_set<std::uint64_t> held(to_hold.begin(), to_hold.end());
  for (const std::uint64_t file : files) {
    PIF_TRY_VALUE(*reply.add_capabilities(), renewed(context, call, file, held.contains(file), reached));
  }
  context.weight += static_cast<std::size_t>(files.size());
  return {};
}

}  // namespace

Status note_left_open(ServerContext& context) {
  if (context.left_open.empty()) return {};
  const std::vector<std::uint64_t> files = std::exchange(context.left_open, {});
  context.rows.on_abort(
      [&context, files] { context.left_open.insert(context.left_open.end(), files.begin(), files.end()); });
  for (const std::uint64_t file : files) {
    const auto found = committed_file(context, file);
    if (!found || !*found) continue;
    proto::StoredEntry entry = (*found)->entry;
    note_change(context, context.wall_ns(), *entry.mutable_attributes());
    PIF_TRY(context.rows.put_entry((*found)->parent, (*found)->name, entry));
  }
  context.weight += files.size();
  return {};
}

void bind_opening(Operations& operations) {
  operations.bind<open>();
  operations.bind<close>();
  operations.bind<renew>();
}

}  // namespace pif::server
