// What a person decides when a disk or the directory is not what it was: docs/DISKS.md.
#include <map>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/server_context.h"
#include "pif/wire/convert.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

constexpr std::uint32_t kNoMark = 0;  // the marks of that node go
constexpr int kMarkFilesMax = 4096;
constexpr int kAdoptFilesMax = 1000;
constexpr std::uint32_t kHoldMaxMs = 300'000;
constexpr std::uint32_t kLostFoundMode = 0700;
constexpr std::uint32_t kAdoptedMode = 0600;
// More transactions than the lost directory can have made since an LFS that is here was told a moment of it. It is told
// one each second, and without the server nobody appends for longer than a capability is good.
constexpr std::uint64_t kForgottenMax = std::uint64_t{1} << 24;
constexpr std::string_view kLostFound = "lost+found";

void add_mark(proto::StoredEntry& entry, const proto::FileMark& mark) {
  for (auto& known : *entry.mutable_marks()) {
    if (known.node() != mark.node()) continue;
    known.set_kind(std::max(known.kind(), mark.kind()));
    return;
  }
  *entry.add_marks() = mark;
}

void remove_mark(proto::StoredEntry& entry, std::uint32_t node) {
  auto& marks = *entry.mutable_marks();
  for (int i = marks.size(); i > 0; --i) {
    if (marks[i - 1].node() == node) marks.DeleteSubrange(i - 1, 1);
  }
}

Status mark_file(ServerContext& context, std::uint64_t id, const proto::FileMark& mark) {
  PIF_TRY_VALUE(const auto row, context.rows.file(id));
  if (!row || row->state() == kDoomed) return {};
  const bool unmarks = mark.kind() == kNoMark;
  if (row->state() == kPending)  // what it has there may be gone: it must not be committed
    return unmarks ? Status() : abort_pending(context, id);
  PIF_TRY_VALUE(auto entry, context.rows.entry(row->parent(), row->name()));
  if (!entry || entry->id() != id) return {};
  if (unmarks) remove_mark(*entry, mark.node());
  if (!unmarks) add_mark(*entry, mark);
  ++context.weight;
  return context.rows.put_entry(row->parent(), row->name(), *entry);
}

// What it has said of itself is right, whatever was known.
Status take_as_presented(ServerContext& context, Node& node) {
  node.confirmed = node.offered = node.presented.node().incarnation();
  node.number = node.presented.node().number();
  node.known = 0;  // its numbers are given out again
  node.info.clear_trouble();
  node.ask_all = true;
  return context.registry.store(node);
}

// What LFSs were told: the newest moment of each run.
std::map<std::uint64_t, proto::Moment> newest_kept(ServerContext& context) {
  std::map<std::uint64_t, proto::Moment> newest;
  for (const Node* node : context.registry.all()) {
    if (!node->met) continue;
    proto::Moment& known = newest[node->presented.kept().run()];
    if (known.index() <= node->presented.kept().index()) known = node->presented.kept();
  }
  return newest;
}

proto::StoredEntry new_entry(const ServerContext& context, proto::EntryType type, std::uint64_t id, std::uint32_t owner,
                             std::uint32_t mode) {
  proto::StoredEntry entry;
  entry.set_type(type);
  entry.set_id(id);
  entry.mutable_attributes()->set_owner(owner);
  entry.mutable_attributes()->set_group(owner);
  entry.mutable_attributes()->set_mode(mode);
  entry.mutable_attributes()->set_modified(context.wall_ns());
  entry.mutable_attributes()->set_changed(context.wall_ns());
  return entry;
}

Result<std::uint64_t> lost_found(ServerContext& context) {
  PIF_TRY_VALUE(const auto existing, context.rows.entry(kRootFolder, kLostFound));
  if (existing && existing->type() == proto::FOLDER) return existing->id();
  if (existing) return fail(Code::kNotDirectory, "/lost+found is a file: rename it, a folder of that name is needed");
  PIF_TRY_VALUE(const std::uint64_t id, context.numbers.next_id());
  PIF_TRY(context.rows.put_entry(kRootFolder, kLostFound,
                                 new_entry(context, proto::FOLDER, id, context.config.owner_uid, kLostFoundMode)));
  PIF_TRY(context.rows.put_folder(id, kRootFolder, kLostFound));
  context.rows.on_abort([&context] { context.directory.forget_folders(); });
  return id;
}

Status check_adopted(const proto::AdoptFiles::One& one) {
  if (one.file() == 0) return fail(Code::kInvalid, "a file without an id");
  PIF_TRY(wire::format_of(one.format()));
  PIF_TRY(wire::layout_of(one.layout()));
  return {};
}

Status adopt(ServerContext& context, std::uint64_t folder, const proto::AdoptFiles::One& one) {
  PIF_TRY(check_adopted(one));
  PIF_TRY_VALUE(const auto known, context.rows.file(one.file()));
  if (known && known->state() != kPending) return {};
  PIF_TRY(context.numbers.take_in(one.file()));
  proto::StoredEntry entry = new_entry(context, proto::FILE_ENTRY, one.file(), one.owner(), kAdoptedMode);
  *entry.mutable_format() = one.format();
  *entry.mutable_layout() = one.layout();
  *entry.mutable_file_length() = one.file_length();
  entry.set_epoch(std::max<std::uint64_t>(one.epoch(), 1));
  *entry.mutable_marks() = one.marks();
  const std::string name = fmt::format("{:016x}", one.file());
  proto::StoredFile row;
  row.set_state(kCommitted);
  row.set_parent(folder);
  row.set_name(name);
  PIF_TRY(context.rows.put_entry(folder, name, entry));
  PIF_TRY(context.rows.put_file(one.file(), row));
  context.rows.on_commit([&context, id = one.file(), layout = one.layout()] { context.outbox.committed(id, layout); });
  ++context.weight;
  return {};
}

Status mark_files(ServerContext& context, Call&, const proto::MarkFiles& ask) {
  if (ask.files_size() > kMarkFilesMax)
    return fail(Code::kTooLarge,
                fmt::format("{} files in one request, the limit is {}", ask.files_size(), kMarkFilesMax));
  if (ask.mark().kind() > wire::kMarkLost) return fail(Code::kInvalid, "a mark of an unknown kind");
  proto::FileMark mark = ask.mark();
  mark.set_since(context.wall);
  for (const std::uint64_t id : ask.files()) PIF_TRY(mark_file(context, id, mark));
  return {};
}

Status accept_stale(ServerContext& context, Call& call, const proto::AcceptStale& ask) {
  PIF_TRY_VALUE(Node * node, known_node(context, ask.node()));
  if (context.registry.state(*node, context.now) != kStale)
    return fail(Code::kInvalid, fmt::format("{} is not stale", node->info.name()));
  if (!node->uuid.empty() && node->presented.node().uuid() != node->uuid)
    return fail(Code::kInvalid, fmt::format("{}: {}", node->info.name(), node->info.trouble()));
  spdlog::warn("{} is taken as it is, at change {} of {}, by uid {}'s word", node->info.name(),
               node->presented.node().number(), node->number, call.who().uid);
  return take_as_presented(context, *node);
}

Status replace_node(ServerContext& context, Call& call, const proto::ReplaceNode& ask) {
  PIF_TRY_VALUE(Node * node, known_node(context, ask.node()));
  if (node->uuid == ask.uuid()) return {};  // asked again
  const std::uint32_t state = context.registry.state(*node, context.now);
  if (node->ever && (state == kUp || state == kFailing))
    return fail(Code::kBusy,
                fmt::format("{0} runs: only the root of an LFS that does not run can be replaced (pif node "
                            "lost {0} ends it)",
                            node->info.name()));
  spdlog::warn("{} is an empty root from now on, by uid {}'s word", node->info.name(), call.who().uid);
  if (!context.config.root_uuids.empty()) context.config.root_uuids[ask.node()] = ask.uuid();
  return context.registry.replace(*node, ask.uuid());
}

Status adopt_files(ServerContext& context, Call& call, const proto::AdoptFiles& ask) {
  if (ask.files_size() > kAdoptFilesMax)
    return fail(Code::kTooLarge,
                fmt::format("{} files in one request, the limit is {}", ask.files_size(), kAdoptFilesMax));
  if (ask.files_size() > 0) {
    PIF_TRY_VALUE(const std::uint64_t folder, lost_found(context));
    for (const auto& one : ask.files()) PIF_TRY(adopt(context, folder, one));
  }
  if (!ask.done() || context.standing != Standing::kBehind) return {};
  for (const auto& [run, kept] : newest_kept(context)) PIF_TRY(context.numbers.accept(kept));
  for (Node* node : context.registry.all()) {
    if (!node->met) continue;
    // Rows were appended under incarnations that it has forgotten: none is given out again.
    context.numbers.raise_above(std::max(node->presented.kept().index(), node->presented.node().incarnation()) +
                                kForgottenMax);
    PIF_TRY(take_as_presented(context, *node));
  }
  // They may have adopted views that this directory does not have.
  for (Node* node : context.registry.all()) {
    if (node->met) PIF_TRY(context.registry.start_over(*node));
  }
  spdlog::warn("this directory is kept though LFSs have seen a newer one, by uid {}'s word", call.who().uid);
  context.rows.on_commit([&context] {
    begin_admitting(context);
    context.behind.clear();
    context.behind_since = 0;
  });
  return {};
}

Status hold(ServerContext& context, Call& call, const proto::Hold& ask) {
  if (ask.for_ms() > kHoldMaxMs)
    return fail(Code::kTooLarge, fmt::format("commits can be held for {} s at most", kHoldMaxMs / 1000));
  if (context.held.by != 0 && context.held.by != call.request.peer)
    return fail(Code::kBusy, "somebody else holds the commits");
  context.held = ask.for_ms() == 0
                     ? HeldCommits()
                     : HeldCommits{call.request.peer, context.now + std::chrono::milliseconds(ask.for_ms())};
  context.admission.notify();
  return {};
}

}  // namespace

void bind_rescue(Operations& operations) {
  operations.bind<mark_files>(kWhileBehind);
  operations.bind<accept_stale>();
  operations.bind<replace_node>();
  operations.bind<adopt_files>(kWhileBehind);
  operations.bind<hold>(kWhileHeld);
}

}  // namespace pif::server
