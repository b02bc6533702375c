// Create, commit, abort, and the end of files: docs/ARCHITECTURE.md "The life of a file".
#include <fmt/format.h>

#include "context/server_context.h"
#include "directory/names.h"
#include "pif/base/assert.h"
#include "pif/base/inheriting.h"
#include "pif/wire/convert.h"
#include "pif/wire/values.h"
#include "requests/layouts.h"
#include "requests/new_entries.h"
#include "requests/replacing.h"

namespace pif::server {
namespace {

constexpr std::size_t kCreatingPerSessionMax = 65536;
constexpr std::uint64_t kFirstEpoch = 1;

// Whether a file may get the name that `existing` has.
Status check_target(const std::optional<proto::StoredEntry>& existing, std::string_view path, bool exclusive) {
  if (!existing) return {};
  if (exclusive) return fail(Code::kExists, fmt::format("{} exists already", path));
  if (existing->type() == proto::FOLDER) return fail(Code::kIsDirectory, fmt::format("{} is a folder", path));
  return {};
}

proto::StoredEntry new_entry(const proto::Create& ask, const proto::Attributes& attributes, std::uint64_t id,
                             proto::FileLayout layout) {
  PIF_ASSERT(id != 0 && layout.nodes_size() > 0, id, layout.nodes_size());
  proto::StoredEntry entry;
  entry.set_type(proto::FILE_ENTRY);
  entry.set_id(id);
  *entry.mutable_attributes() = attributes;
  *entry.mutable_attributes()->mutable_named() = ask.named();
  *entry.mutable_format() = ask.format();
  *entry.mutable_layout() = std::move(layout);
  entry.set_epoch(kFirstEpoch);
  entry.set_placed(ask.placed());
  return entry;
}

// What is asked for has a place already.
Status check_fork(const proto::Create& ask, const Place& at) {
  PIF_ASSERT(at.is_fork(), at.fork_node);
  const bool elsewhere = ask.nodes_size() > 0 && (ask.nodes_size() != 1 || ask.nodes(0) != at.fork_node);
  const bool has_bevies = ask.bevies_size() > 0 || (ask.bevy() != 0 && ask.bevy() != kNoBevies);
  if (!elsewhere && !has_bevies && ask.width() <= 1 && !ask.placed()) return {};
  return fail(Code::kInvalid,
              fmt::format("{}: a fork is on the LFS of its subfile alone, without bevies: give it no layout", at.path));
}

// ask, with what is decided for it: by the folder where it leaves that open; of a fork, and of a placed file, what
// cannot be otherwise.
Result<proto::Create> decided(const proto::Create& ask, const Place& at) {
  if (ask.placed() && (ask.bevies_size() > 0 || (ask.bevy() != 0 && ask.bevy() != kNoBevies))) {
    return fail(Code::kInvalid, fmt::format("{}: a placed file has no bevies, for what is in its subfiles has no rows "
                                            "that belong together",
                                            at.path));
  }
  proto::Create whole = ask;
  if (at.is_fork()) {
    PIF_TRY(check_fork(ask, at));
    whole.set_inherits(ask.inherits() | kInheritsNodes | kInheritsBevies);
    whole.clear_nodes();
    whole.clear_bevies();
    whole.clear_width();
    whole.clear_bevy();
  }
  if (whole.inherits() != 0 && at.folder->striping != nullptr) whole = inherit(whole, *at.folder->striping);
  if (ask.placed()) whole.set_bevy(kNoBevies);
  return whole;
}

// What does not fit may be what the folder decides, which the requester did not write.
Result<proto::FileLayout> layout_at(const ServerContext& context, const Place& at, const proto::Create& ask) {
  auto layout = choose_layout(ask, context.registry, context.config.default_bevy, context.layouts_chosen, context.now);
  const bool inherits = (ask.inherits() & (kInheritsNodes | kInheritsBevies)) != 0;
  if (layout || !inherits || at.folder->striping == nullptr) return layout;
  Error error = std::move(layout.error());
  const std::string_view folder = shown(split(at.path).folder);
  error.text += fmt::format(" (the folder {0} decides what is not said: see `pif stat {0}`)", folder);
  return fail(std::move(error));
}

Status put_committed(ServerContext& context, std::uint64_t parent, std::string_view name,
                     const proto::StoredEntry& entry, bool bare) {
  PIF_TRY(context.rows.put_entry(parent, name, entry));
  proto::StoredFile row;
  row.set_state(kCommitted);
  row.set_parent(parent);
  row.set_name(std::string(name));
  row.set_bare(bare);
  row.set_untouched(!bare);
  return context.rows.put_file(entry.id(), row);
}

// instead_of: whose place it takes; 0: whoever has the name.
Status put_pending(ServerContext& context, const Call& call, std::uint64_t parent, std::string_view name,
                   const proto::StoredEntry& entry, std::uint64_t instead_of) {
  proto::StoredFile row;
  row.set_state(kPending);
  row.set_parent(parent);
  row.set_name(std::string(name));
  *row.mutable_entry() = entry;
  row.set_exclusive(instead_of == 0 && call.request.envelope().create().exclusive());
  row.set_instead_of(instead_of);
  row.set_session(call.session->id);
  row.set_view(context.registry.views().index());
  PIF_TRY(context.rows.put_file(entry.id(), row));
  context.rows.on_commit([&context, id = entry.id(), session = call.session->id] {
    const bool is_new = context.pending.emplace(id, session).second;
    PIF_ASSERT(is_new, id, session);
    if (Session* creator = context.sessions.find(session)) creator->creating.insert(id);
  });
  return {};
}

void forget_pending(ServerContext& context, std::uint64_t file) {
  const auto found = context.pending.find(file);
  if (found == context.pending.end()) return;
  if (Session* creator = context.sessions.find(found->second)) creator->creating.erase(file);
  for (const std::uint64_t member : context.shared.members(file)) {
    if (Session* session = context.sessions.find(member)) session->creating.erase(file);
  }
  context.shared.forget(file);
  context.pending.erase(found);
}

// aborted: it was never committed, as far as this directory knows. LFSs are told that, not that it is removed: should
// the directory be an old one, they may know better.
Status put_doomed(ServerContext& context, std::uint64_t file, proto::StoredFile row, bool aborted) {
  const bool held = context.opens.is_open(file);
  row.set_state(kDoomed);
  row.set_aborted(aborted);
  row.set_expiry(held ? context.wall + kLeaseSeconds : 0);
  *row.mutable_waiting() = row.entry().layout().nodes();
  PIF_TRY(context.rows.put_file(file, row));
  context.rows.on_commit([&context, file, aborted, layout = row.entry().layout()] {
    context.outbox.doomed(file, layout, aborted, context.opens.is_open(file));
  });
  return {};
}

// They go with their file, in the same turn.
Status doom_forks(ServerContext& context, std::uint64_t file) {
  std::vector<std::pair<std::string, proto::StoredEntry>> forks;
  const std::string prefix = entry_key(file, {});
  PIF_TRY(context.rows.scan(kEntries, prefix, [&](std::string_view key, std::string_view stored) {
    if (!key.starts_with(prefix)) return false;
    auto& [name, entry] = forks.emplace_back(key.substr(prefix.size()), proto::StoredEntry());
    entry.ParseFromArray(stored.data(), static_cast<int>(stored.size()));
    return true;
  }));
  for (const auto& [name, entry] : forks) {
    PIF_TRY(doom(context, file, name, entry));
    PIF_TRY(context.rows.erase_entry(file, name));
  }
  context.weight += forks.size();
  return {};
}

// What whoever creates the file must know of it.
void describe_created(const ServerContext& context, const Call& call, const proto::StoredEntry& entry,
                      proto::CreateReply& reply) {
  reply.set_file(entry.id());
  context.registry.describe(entry.layout(), context.now, *reply.mutable_nodes());
  reply.set_capability(capability_for(context, entry.id(), call.who().uid, kMayCreate | kMayRead, kFirstEpoch));
}

void describe_layout(const ServerContext& context, const proto::StoredEntry& entry, proto::CreateReply& reply) {
  reply.set_file(entry.id());
  reply.set_epoch(kFirstEpoch);
  reply.set_view(context.registry.views().index());
  *reply.mutable_layout() = entry.layout();
}

// `empty`, which is committed now, and what will take its place.
Status create_now(ServerContext& context, const Call& call, const Place& at, const proto::StoredEntry& empty,
                  proto::CreateReply& reply) {
  PIF_ASSERT(!at.is_fork() && !empty.placed(), at.fork_node, empty.id());
  context.changed_folders.insert(at.folder->id());
  PIF_TRY(put_committed(context, at.folder->id(), at.name, empty, true));
  *reply.mutable_entry() = info_of(empty, at.name);
  proto::StoredEntry created = empty;
  PIF_TRY_VALUE(const std::uint64_t id, context.numbers.next_id());
  created.set_id(id);
  created.set_inode(empty.id());
  created.mutable_attributes()->set_owner(call.who().uid);  // whose it is to commit
  describe_created(context, call, created, reply);
  return put_pending(context, call, at.folder->id(), at.name, created, empty.id());
}

// ask: with what the folder decides.
Status create_at(ServerContext& context, Call& call, const Place& at, const proto::Create& ask,
                 proto::CreateReply& reply) {
  PIF_TRY_VALUE(const auto existing, context.rows.entry(at.folder->id(), at.name));
  PIF_TRY(check_target(existing, at.path, ask.exclusive()));
  if (existing) PIF_TRY(Directory::check_may_take_away(at, *existing, call.who()));
  PIF_TRY_VALUE(const proto::Attributes attributes,
                new_attributes(context, call.who(), at.folder->guard(), wanted_of(ask), proto::FILE_ENTRY));
  PIF_TRY_VALUE(proto::FileLayout layout, layout_at(context, at, ask));
  PIF_TRY(check_creating(*call.session));
  PIF_TRY_VALUE(const std::uint64_t id, context.numbers.next_id());
  if (ask.nodes_size() == 0) ++context.layouts_chosen;
  const proto::StoredEntry entry = new_entry(ask, attributes, id, std::move(layout));
  describe_layout(context, entry, reply);
  if (ask.inherits() != 0) *reply.mutable_format() = entry.format();
  ++context.weight;
  if ((ask.empty() || ask.now()) && existing) PIF_TRY(doom(context, at.folder->id(), at.name, *existing));
  if (ask.now()) return create_now(context, call, at, entry, reply);
  if (ask.empty()) {
    context.changed_folders.insert(at.folder->id());
    return put_committed(context, at.folder->id(), at.name, entry, true);
  }
  describe_created(context, call, entry, reply);
  return put_pending(context, call, at.folder->id(), at.name, entry, 0);
}

// Its owner is for now who creates it, as of any file being created.
Status create_instead_of(ServerContext& context, const Call& call, std::uint64_t file, proto::CreateReply& reply) {
  PIF_TRY_VALUE(Replaced replaced, file_to_replace(context, file));
  PIF_TRY(check_may_replace(context, call, replaced));
  PIF_TRY(check_creating(*call.session));
  PIF_TRY_VALUE(const proto::Create like, create_like(context, replaced));
  PIF_TRY_VALUE(proto::FileLayout layout, choose_layout(like, context.registry, context.config.default_bevy,
                                                        context.layouts_chosen, context.now));
  PIF_TRY_VALUE(const std::uint64_t id, context.numbers.next_id());
  if (like.nodes_size() == 0) ++context.layouts_chosen;
  PIF_TRY_VALUE(const proto::Attributes attributes,
                new_attributes(context, call.who(), {}, wanted_of(like), proto::FILE_ENTRY));
  proto::StoredEntry entry = new_entry(like, attributes, id, std::move(layout));
  entry.set_inode(inode_of(replaced.entry));
  describe_layout(context, entry, reply);
  describe_created(context, call, entry, reply);
  *reply.mutable_format() = entry.format();
  *reply.mutable_named() = like.named();
  ++context.weight;
  PIF_TRY(drop_privileges(context, call.who(), replaced.parent, replaced.name, replaced.entry));
  return put_pending(context, call, replaced.parent, replaced.name, entry, file);
}

// A committed entry as that of a file of which no LFS has a component.
Status create_other(ServerContext& context, const Call& call, const Place& at, const proto::Create& ask,
                    proto::CreateReply& reply) {
  PIF_TRY_VALUE(const wire::OtherKind kind, wire::other_kind_of(ask.other()));
  if (at.is_fork()) return fail(Code::kInvalid, fmt::format("{}: a file has forks, and nothing else", at.path));
  const bool is_device = kind == wire::kOtherCharacterDevice || kind == wire::kOtherBlockDevice;
  if (is_device) PIF_TRY(require_owner(call.who()));
  PIF_TRY_VALUE(const auto existing, context.rows.entry(at.folder->id(), at.name));
  if (existing) return fail(Code::kExists, fmt::format("{} exists already", at.path));
  PIF_TRY_VALUE(const proto::Attributes attributes,
                new_attributes(context, call.who(), at.folder->guard(), wanted_of(ask), proto::OTHER));
  PIF_TRY_VALUE(const std::uint64_t id, context.numbers.next_id());
  proto::StoredEntry entry;
  entry.set_type(proto::OTHER);
  entry.set_id(id);
  *entry.mutable_attributes() = attributes;
  *entry.mutable_attributes()->mutable_named() = ask.named();
  *entry.mutable_other() = ask.other();
  reply.set_file(id);
  ++context.weight;
  context.changed_folders.insert(at.folder->id());
  return put_committed(context, at.folder->id(), at.name, entry, true);
}

// What says nothing together.
Status check_create(const proto::Create& ask) {
  if (ask.now() && (ask.placed() || ask.fork_of() != 0))
    return fail(Code::kInvalid, "forks, and files that have nothing else, have no name before they are committed");
  if (ask.instead_of() != 0 && (!ask.path().empty() || ask.now() || ask.empty() || ask.fork_of() != 0))
    return fail(Code::kInvalid, "what takes another file's place has that one's name");
  return {};
}

Status create(ServerContext& context, Call& call, const proto::Create& ask, proto::CreateReply& reply) {
  PIF_TRY(check_create(ask));
  if (ask.instead_of() != 0) return create_instead_of(context, call, ask.instead_of(), reply);
  if (!ask.has_other()) PIF_TRY(wire::format_of(ask.format()));
  PIF_TRY(check_named(ask.named()));
  PIF_TRY_VALUE(const Place at, ask.fork_of() != 0
                                    ? context.directory.fork_to_change(ask.fork_of(), ask.path(), call.who())
                                    : context.directory.place_to_change(ask.path(), call.who()));
  if (ask.fork_of() == 0 && means_folder(ask.path()))
    return fail(Code::kNotDirectory,
                fmt::format("there is no folder {}, and no file's name ends with a slash", at.path));
  if (ask.now() && at.is_fork())
    return fail(Code::kInvalid, fmt::format("{}: a fork has no name before it is committed", at.path));
  if (ask.has_other()) return create_other(context, call, at, ask, reply);
  const bool decides = ask.inherits() != 0 && at.folder->striping != nullptr;
  if (!decides && !at.is_fork() && !ask.placed()) return create_at(context, call, at, ask, reply);
  PIF_TRY_VALUE(const proto::Create whole, decided(ask, at));
  return create_at(context, call, at, whole, reply);
}

// Whoever has not committed a fork of it has forgotten that.
Status check_placed(ServerContext& context, const Call& call, const proto::Commit& ask) {
  if (ask.file_length().records() > 0 || ask.file_length().bytes() > 0)
    return fail(Code::kInvalid, "a placed file has nothing but forks");
  for (const std::uint64_t other : call.session->creating) {
    PIF_TRY_VALUE(const auto row, context.rows.file(other));
    if (row && row->state() == kPending && row->parent() == ask.file()) {
      return fail(Code::kBusy,
                  fmt::format("its fork {} is still being created: commit or abort it first", row->name()));
    }
  }
  return {};
}

// That there is a folder for it still, or the file whose fork it is.
Status check_parent(ServerContext& context, const proto::StoredFile& row) {
  if (row.parent() == kRootFolder) return {};
  PIF_TRY_VALUE(const auto folder, context.rows.folder(row.parent()));
  if (folder) return {};
  PIF_TRY_VALUE(const auto file, context.rows.file(row.parent()));
  if (file && file->state() != kDoomed) return {};
  return fail(Code::kNotFound, fmt::format("the folder (or file) that {} was to be in has been removed", row.name()));
}

// The name that the file gets, and who has it now.
struct Target {
  std::uint64_t parent = 0;
  std::string name;
  std::optional<proto::StoredEntry> existing;
};

// What is there may have come since the file was begun.
Result<Target> target_of(ServerContext& context, const Requester& who, const proto::StoredFile& row) {
  PIF_TRY(check_parent(context, row));
  PIF_TRY_VALUE(auto existing, context.rows.entry(row.parent(), row.name()));
  PIF_TRY(check_target(existing, row.name(), row.exclusive()));
  if (existing) {
    PIF_TRY_VALUE(const Guard folder, context.directory.guard_of_folder(row.parent()));
    if (!may_take_away(who, folder, existing->attributes().owner()))
      return fail(Code::kPermission,
                  fmt::format("uid {} owns neither {} nor its folder, which is sticky", who.uid, row.name()));
  }
  return Target{row.parent(), row.name(), std::move(existing)};
}

// Of two that rewrite one file the last commit wins: the other's version has the name by then. Who said what he read
// (if_length) has not read that one.
Result<std::uint64_t> newest_version(ServerContext& context, const proto::StoredFile& row, const proto::Commit& ask) {
  PIF_TRY_VALUE(const auto known, committed_file(context, row.instead_of()));
  if (known || ask.has_if_length()) return row.instead_of();
  PIF_TRY_VALUE(const auto named, context.rows.entry(row.parent(), row.name()));
  const bool is_version = named && named->type() == proto::FILE_ENTRY && inode_of(*named) == row.entry().inode() &&
                          row.entry().inode() != 0;
  return is_version ? named->id() : row.instead_of();
}

Result<Target> target_instead_of(ServerContext& context, const proto::StoredFile& row, const proto::Commit& ask) {
  PIF_TRY_VALUE(const std::uint64_t file, newest_version(context, row, ask));
  PIF_TRY_VALUE(Replaced replaced, file_to_replace(context, file));
  const proto::FileLength& now = replaced.entry.file_length();
  if (ask.has_if_length() && (ask.if_length().records() != now.records() || ask.if_length().bytes() != now.bytes())) {
    return fail(Code::kRetry, fmt::format("{} has {} bytes by now, not {}: what was to take its place is of another",
                                          replaced.name, now.bytes(), ask.if_length().bytes()));
  }
  return Target{replaced.parent, std::move(replaced.name), std::move(replaced.entry)};
}

// made: as it was begun.
proto::StoredEntry committed_entry(const ServerContext& context, const proto::StoredFile& row, const Target& target,
                                   const proto::Commit& ask) {
  PIF_ASSERT(row.state() == kPending && (row.instead_of() == 0 || target.existing), row.state(), row.instead_of());
  proto::StoredEntry entry = row.entry();
  if (row.instead_of() != 0) take_over(*target.existing, entry);
  *entry.mutable_file_length() = ask.file_length();
  proto::Attributes& attributes = *entry.mutable_attributes();
  note_change(context, ask.written(), attributes);
  if (ask.has_modified()) {
    attributes.set_modified(ask.modified());
    attributes.clear_modified_set();
  }
  return entry;
}

Status commit(ServerContext& context, Call& call, const proto::Commit& ask) {
  PIF_TRY_VALUE(auto row, context.rows.file(ask.file()));
  if (!row || row->state() == kDoomed) {
    return fail(Code::kStaleFile,
                fmt::format("file {} is not being created any more: it was aborted, or removed", ask.file()));
  }
  const proto::StoredEntry& made = row->entry();
  if (row->state() == kCommitted) return {};
  if (!call.who().all_powerful && call.who().uid != made.attributes().owner()) {
    return fail(Code::kPermission,
                fmt::format("{} is being created by uid {}", row->name(), made.attributes().owner()));
  }
  PIF_TRY(check_view(context, row->members().empty() ? ask.view() : row->view(), *row));
  PIF_TRY(check_file_length(made.format(), ask.file_length()));
  PIF_TRY(check_members(context, *row, ask.file_length()));
  if (made.placed()) PIF_TRY(check_placed(context, call, ask));
  PIF_TRY_VALUE(const Target target,
                row->instead_of() != 0 ? target_instead_of(context, *row, ask) : target_of(context, call.who(), *row));
  const proto::StoredEntry entry = committed_entry(context, *row, target, ask);
  ++context.weight;
  if (row->instead_of() == 0) context.changed_folders.insert(target.parent);
  if (target.existing) PIF_TRY(doom(context, target.parent, target.name, *target.existing));
  PIF_TRY(put_committed(context, target.parent, target.name, entry, false));
  context.rows.on_commit([&context, id = ask.file(), layout = entry.layout()] {
    forget_pending(context, id);
    context.outbox.committed(id, layout);
  });
  return {};
}

Status abort_create(ServerContext& context, Call& call, const proto::Abort& ask) {
  PIF_TRY_VALUE(const auto row, context.rows.file(ask.file()));
  if (!row || row->state() == kDoomed) return {};
  if (row->state() == kCommitted) {
    return fail(Code::kInvalid, fmt::format("{} is committed: it can be removed, not aborted", row->name()));
  }
  if (!call.who().all_powerful && call.who().uid != row->entry().attributes().owner()) {
    return fail(Code::kPermission,
                fmt::format("{} is being created by uid {}", row->name(), row->entry().attributes().owner()));
  }
  return abort_pending(context, ask.file());
}

}  // namespace

void bind_lifecycle(Operations& operations) {
  operations.bind<create>();
  operations.bind<commit>();
  operations.bind<abort_create>();
}

Status check_creating(const Session& session) {
  if (session.creating.size() < kCreatingPerSessionMax) return {};
  return fail(Code::kBusy, fmt::format("{} files are being created by this program already", session.creating.size()));
}

Status check_view(const ServerContext& context, std::uint64_t view, const proto::StoredFile& row) {
  const std::uint64_t newest = context.registry.views().index();
  const bool has_parity = row.entry().layout().form() == wire::kFormParity;
  if (!has_parity || view == 0 || view == newest) return {};
  return fail(Code::kOldView,
              fmt::format("{} was written in view {}, and {} is the newest: write it again", row.name(), view, newest));
}

Status abort_pending(ServerContext& context, std::uint64_t file) {
  PIF_TRY_VALUE(auto row, context.rows.file(file));
  context.rows.on_commit([&context, file] { forget_pending(context, file); });
  if (!row || row->state() != kPending) return {};
  ++context.weight;
  PIF_TRY(doom_forks(context, file));
  row->clear_members();
  row->clear_incarnations();
  row->clear_view();
  return put_doomed(context, file, std::move(*row), true);
}

Status doom(ServerContext& context, std::uint64_t parent, std::string_view name, const proto::StoredEntry& entry) {
  PIF_TRY(doom_forks(context, entry.id()));
  PIF_TRY_VALUE(const auto row, context.rows.file(entry.id()));
  if (row && row->bare()) return context.rows.erase_file(entry.id());
  proto::StoredFile doomed;
  doomed.set_parent(parent);
  doomed.set_name(std::string(name));
  *doomed.mutable_entry() = entry;
  return put_doomed(context, entry.id(), std::move(doomed), false);
}

bool is_open_still(const ServerContext& context, std::uint64_t file, const proto::StoredFile& row) {
  return row.state() == kDoomed && !row.aborted() && context.outbox.is_held(file, row, context.wall);
}

}  // namespace pif::server
