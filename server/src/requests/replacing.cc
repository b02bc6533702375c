#include "requests/replacing.h"

#include <fmt/format.h>

#include <algorithm>

#include "directory/names.h"
#include "pif/base/assert.h"
#include "pif/base/inheriting.h"
#include "requests/layouts.h"

namespace pif::server {
namespace {

tl::unexpected<Error> gone(std::uint64_t file) {
  return fail(Code::kStaleFile, fmt::format("file {} was removed, or replaced", file));
}

Status check_no_forks(ServerContext& context, const Replaced& replaced) {
  const std::string prefix = entry_key(replaced.entry.id(), {});
  bool has_forks = replaced.entry.placed();
  PIF_TRY(context.rows.scan(kEntries, prefix, [&](std::string_view key, std::string_view) {
    has_forks |= key.starts_with(prefix);
    return false;
  }));
  if (!has_forks) return {};
  return fail(Code::kUnsupported,
              fmt::format("{} has forks, which belong to this version of it: it is not replaced", replaced.name));
}

// The same LFSs in the same order; where one of them is not there, others, and of a width that can be.
Result<proto::Create> with_layout(const ServerContext& context, proto::Create like, const proto::FileLayout& layout) {
  const auto is_possible = [&](const proto::Create& ask) {
    return choose_layout(ask, context.registry, context.config.default_bevy, 0, context.now);
  };
  like.set_same_host_ok(true);  // it was accepted for the first version
  *like.mutable_nodes() = layout.nodes();
  *like.mutable_bevies() = layout.bevies();
  if (layout.bevies().empty()) like.set_bevy(kNoBevies);
  if (is_possible(like)) return like;
  like.clear_nodes();
  like.set_width(static_cast<std::uint32_t>(layout.nodes_size()));
  if (is_possible(like)) return like;
  like.clear_width();
  if (!layout.bevies().empty()) like.set_bevy(layout.bevies(0));
  like.clear_bevies();
  PIF_TRY(is_possible(like));
  return like;
}

}  // namespace

Result<std::optional<Replaced>> committed_file(ServerContext& context, std::uint64_t file) {
  PIF_TRY_VALUE(const auto row, context.rows.file(file));
  if (!row || row->state() != kCommitted) return std::optional<Replaced>();
  PIF_TRY_VALUE(auto entry, context.rows.entry(row->parent(), row->name()));
  if (!entry || entry->id() != file || entry->type() != proto::FILE_ENTRY) return std::optional<Replaced>();
  return std::optional<Replaced>({row->parent(), row->name(), std::move(*entry)});
}

Result<Replaced> file_to_replace(ServerContext& context, std::uint64_t file) {
  PIF_TRY_VALUE(auto found, committed_file(context, file));
  if (!found) return gone(file);
  PIF_ASSERT(found->entry.id() == file && found->parent != kRootParent, found->entry.id(), file, found->parent);
  PIF_TRY(check_no_forks(context, *found));
  return std::move(*found);
}

Status check_may_replace(ServerContext& context, const Call& call, const Replaced& replaced) {
  const std::uint64_t file = replaced.entry.id();
  if (context.opens.find(file, call.session->id) == nullptr) {
    std::unordered_map<std::uint64_t, bool> known;
    PIF_TRY_VALUE(const bool reaches, context.directory.may_reach(replaced.parent, call.who(), known));
    if (!reaches) return gone(file);
  }
  if (may(call.who(), guard_of(replaced.entry.attributes()), kWantWrite)) return {};
  return fail(Code::kPermission, fmt::format("uid {} may not write {}", call.who().uid, replaced.name));
}

Status drop_privileges(ServerContext& context, const Requester& who, std::uint64_t parent, std::string_view name,
                       proto::StoredEntry& entry) {
  const std::uint32_t mode = without_privileges(entry.attributes().mode());
  if (who.all_powerful || mode == entry.attributes().mode()) return {};
  entry.mutable_attributes()->set_mode(mode);
  return context.rows.put_entry(parent, name, entry);
}

Result<proto::Create> create_like(const ServerContext& context, const Replaced& replaced) {
  proto::Create like;
  *like.mutable_format() = replaced.entry.format();
  *like.mutable_named() = replaced.entry.attributes().named();
  like.set_mode(replaced.entry.attributes().mode());
  return with_layout(context, std::move(like), replaced.entry.layout());
}

std::uint64_t inode_of(const proto::StoredEntry& entry) { return entry.inode() != 0 ? entry.inode() : entry.id(); }

void take_over(const proto::StoredEntry& replaced, proto::StoredEntry& entry) {
  PIF_ASSERT(replaced.id() != entry.id() && replaced.type() == entry.type(), replaced.id(), replaced.type());
  *entry.mutable_attributes() = replaced.attributes();
  entry.set_inode(inode_of(replaced));
}

void note_change(const ServerContext& context, std::int64_t written, proto::Attributes& attributes) {
  attributes.set_changed(context.wall_ns());
  if (attributes.modified_set() != 0 && written <= attributes.modified_set()) return;
  attributes.set_modified(attributes.changed());
  attributes.clear_modified_set();
}

}  // namespace pif::server
