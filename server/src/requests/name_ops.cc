// Folders, names and attributes.
#include <fmt/format.h>

#include "context/server_context.h"
#include "directory/names.h"
#include "directory/striping.h"
#include "pif/base/assert.h"
#include "requests/layouts.h"
#include "requests/new_entries.h"
#include "requests/replacing.h"

namespace pif::server {
namespace {

// striping: null or empty: none.
proto::StoredEntry folder_entry(std::uint64_t id, const proto::Attributes& attributes,
                                const proto::Striping* striping) {
  PIF_ASSERT(id != 0, attributes.owner());
  proto::StoredEntry entry;
  entry.set_type(proto::FOLDER);
  entry.set_id(id);
  *entry.mutable_attributes() = attributes;
  if (striping != nullptr && !says_nothing(*striping)) *entry.mutable_striping() = *striping;
  return entry;
}

// What is asked for, else that of the folder above; null: none.
const proto::Striping* striping_below(const Folder& above, const proto::MakeFolder& ask) {
  return ask.has_striping() ? &ask.striping() : above.striping.get();
}

// The folder that was made in this one.
Result<Folder::Step> make_one(ServerContext& context, const Call& call, const Folder::Step& in, std::string_view name,
                              const proto::Striping* striping) {
  PIF_TRY_VALUE(
      const proto::Attributes attributes,
      new_attributes(context, call.who(), in.guard, wanted_of(call.request.envelope().make_folder()), proto::FOLDER));
  PIF_TRY_VALUE(const std::uint64_t id, context.numbers.next_id());
  PIF_TRY(context.rows.put_entry(in.id, name, folder_entry(id, attributes, striping)));
  ++context.weight;
  PIF_TRY(context.rows.put_folder(id, in.id, name));
  return Folder::Step{id, guard_of(attributes)};
}

// Everything is checked at the topmost missing folder; below it the requester owns what it makes.
Status make_missing(ServerContext& context, const Call& call, std::string_view path) {
  PIF_TRY_VALUE(const Directory::Walk walked, context.directory.walk(path, call.who()));
  if (walked.end == path.size()) return {};
  PIF_TRY(context.directory.place_to_change(path.substr(0, name_end(path, walked.end)), call.who()));
  const proto::Striping* const striping = striping_below(*walked.folder, call.request.envelope().make_folder());
  Folder::Step parent = walked.folder->chain.back();
  context.changed_folders.insert(parent.id);
  for (std::size_t end = walked.end; end < path.size();) {
    const std::size_t next = name_end(path, end);
    PIF_ASSERT(path[end] == '/' && next > end + 1, end, next, path.size());
    PIF_TRY_VALUE(parent, make_one(context, call, parent, path.substr(end + 1, next - end - 1), striping));
    end = next;
  }
  return {};
}

Status make_folder(ServerContext& context, Call& call, const proto::MakeFolder& ask) {
  PIF_TRY_VALUE(const std::string_view path, check_path(ask.path()));
  if (ask.has_striping()) PIF_TRY(check_new_striping(ask.striping(), context.registry, context.config.default_bevy));
  // Folders made in this turn must not be remembered if it fails.
  context.rows.on_abort([&context] { context.directory.forget_folders(); });
  if (ask.parents()) return make_missing(context, call, path);
  PIF_TRY_VALUE(const Place at, context.directory.place_to_change(path, call.who()));
  if (at.is_fork()) return fail(Code::kInvalid, fmt::format("{}: a file has forks, and no folders", path));
  PIF_TRY_VALUE(const auto existing, context.rows.entry(at.folder->id(), at.name));
  if (existing) return fail(Code::kExists, fmt::format("{} exists already", path));
  context.changed_folders.insert(at.folder->id());
  PIF_TRY(make_one(context, call, at.folder->chain.back(), at.name, striping_below(*at.folder, ask)));
  return {};
}

bool contains(const Folder& folder, std::uint64_t id) {
  for (const Folder::Step& step : folder.chain) {
    if (step.id == id) return true;
  }
  return false;
}

Result<bool> is_empty(ServerContext& context, std::uint64_t folder) {
  bool empty = true;
  const std::string prefix = entry_key(folder, {});
  PIF_TRY(context.rows.scan(kEntries, prefix, [&](std::string_view key, std::string_view) {
    empty = key.substr(0, prefix.size()) != prefix;
    return false;
  }));
  return empty;
}

// Whether `moved` may take the place of `target`.
Status check_replace(ServerContext& context, const proto::StoredEntry& moved, const proto::StoredEntry& target,
                     std::string_view path) {
  const bool folder = moved.type() == proto::FOLDER;
  if (!folder && target.type() == proto::FOLDER) return fail(Code::kIsDirectory, fmt::format("{} is a folder", path));
  if (!folder) return {};
  if (target.type() != proto::FOLDER)
    return fail(Code::kNotDirectory, fmt::format("{} is {}, not a folder", path, kind_name(target)));
  PIF_TRY_VALUE(const bool empty, is_empty(context, target.id()));
  if (!empty) return fail(Code::kNotEmpty, fmt::format("the folder {} is not empty", path));
  return {};
}

Status put_moved(ServerContext& context, const Place& to, const proto::StoredEntry& entry) {
  PIF_TRY(context.rows.put_entry(to.folder->id(), to.name, entry));
  if (entry.type() == proto::FOLDER) return context.rows.put_folder(entry.id(), to.folder->id(), to.name);
  PIF_TRY_VALUE(auto row, context.rows.file(entry.id()));
  if (!row) return fail(Code::kCorrupt, fmt::format("the directory has no row for {}: run `pif fsck`", to.path));
  row->set_parent(to.folder->id());
  row->set_name(std::string(to.name));
  return context.rows.put_file(entry.id(), *row);
}

// A fork may get another name, and stays where it is.
Status check_forks(const Place& from, const Place& to) {
  if (!from.is_fork() && !to.is_fork()) return {};
  if (from.folder->id() == to.folder->id() && from.fork_node == to.fork_node) return {};
  return fail(Code::kInvalid,
              fmt::format("{} cannot become {}: a fork stays in its subfile; copy it", from.path, to.path));
}

Status rename(ServerContext& context, Call& call, const proto::Rename& ask) {
  PIF_TRY_VALUE(const Place from, context.directory.place_to_change(ask.from(), call.who()));
  PIF_TRY_VALUE(const Place to, context.directory.place_to_change(ask.to(), call.who()));
  PIF_TRY(check_forks(from, to));
  PIF_TRY_VALUE(auto moved, context.rows.entry(from.folder->id(), from.name));
  if (!moved) return fail(Code::kNotFound, fmt::format("there is no {}", from.path));
  PIF_TRY_VALUE(const auto target, context.rows.entry(to.folder->id(), to.name));
  if (!target && moved->type() != proto::FOLDER && means_folder(ask.to()))
    return fail(Code::kNotDirectory,
                fmt::format("there is no folder {}, and {} is {}", to.path, from.path, kind_name(*moved)));
  PIF_TRY(Directory::check_may_take_away(from, *moved, call.who()));
  if (target && ask.no_replace()) return fail(Code::kExists, fmt::format("{} exists already", to.path));
  if (target && target->id() == moved->id()) return {};
  if (moved->type() == proto::FOLDER && contains(*to.folder, moved->id())) {
    return fail(Code::kInvalid, fmt::format("the folder {} cannot be moved into itself", from.path));
  }
  if (target) PIF_TRY(Directory::check_may_take_away(to, *target, call.who()));
  if (target) PIF_TRY(check_replace(context, *moved, *target, to.path));
  if (moved->type() == proto::FOLDER) context.directory.forget_folders();
  if (target && target->type() == proto::FOLDER) PIF_TRY(context.rows.erase_folder(target->id()));
  if (target && target->type() != proto::FOLDER) PIF_TRY(doom(context, to.folder->id(), to.name, *target));
  moved->mutable_attributes()->set_changed(context.wall_ns());
  PIF_TRY(context.rows.erase_entry(from.folder->id(), from.name));
  context.weight += 2;
  context.changed_folders.insert({from.folder->id(), to.folder->id()});
  context.rows.on_abort([&context] { context.directory.forget_folders(); });
  return put_moved(context, to, *moved);
}

Status change_owner(const Call& call, const proto::SetAttributes& ask, proto::Attributes& attributes) {
  const Requester& who = call.who();
  if (ask.has_owner() && ask.owner() != attributes.owner()) {
    if (!who.all_powerful) return fail(Code::kPermission, "only root and the file system's owner may give a file away");
    attributes.set_owner(ask.owner());
  }
  if (ask.has_group() && ask.group() != attributes.group()) {
    if (!who.all_powerful && !(who.uid == attributes.owner() && is_member(who, ask.group()))) {
      return fail(Code::kPermission,
                  fmt::format("uid {} may not give {} to group {}", who.uid, ask.path(), ask.group()));
    }
    attributes.set_group(ask.group());
  }
  return {};
}

Status change_striping(const ServerContext& context, const proto::SetAttributes& ask, proto::StoredEntry& entry) {
  if (entry.type() != proto::FOLDER)
    return fail(Code::kNotDirectory, fmt::format("{} is {}: only a folder has striping", ask.path(), kind_name(entry)));
  PIF_TRY(check_new_striping(ask.striping(), context.registry, context.config.default_bevy));
  entry.clear_striping();
  if (!says_nothing(ask.striping())) *entry.mutable_striping() = ask.striping();
  return {};
}

Status set_attributes(ServerContext& context, Call& call, const proto::SetAttributes& ask) {
  PIF_TRY_VALUE(Directory::Found found, context.directory.find(ask.path(), call.who()));
  proto::Attributes& attributes = *found.entry.mutable_attributes();
  const bool owns = call.who().all_powerful || call.who().uid == attributes.owner();
  if ((ask.has_mode() || ask.has_striping() || ask.has_modified()) && !owns)
    return fail(Code::kPermission, fmt::format("uid {} does not own {}", call.who().uid, ask.path()));
  if (ask.has_modified()) {
    attributes.set_modified(ask.modified());
    attributes.set_modified_set(ask.at() != 0 ? ask.at() : context.wall_ns());
  }
  if (ask.has_striping()) PIF_TRY(change_striping(context, ask, found.entry));
  if (ask.named_size() > 0 && !owns && !may(call.who(), guard_of(attributes), kWantWrite)) {
    return fail(Code::kPermission, fmt::format("uid {} may not write {}", call.who().uid, ask.path()));
  }
  PIF_TRY(change_owner(call, ask, attributes));
  if ((ask.has_owner() || ask.has_group()) && found.entry.type() != proto::FOLDER)
    attributes.set_mode(without_privileges(attributes.mode()));
  if (ask.has_mode()) attributes.set_mode(mode_by(call.who(), attributes.group(), ask.mode()));
  for (const auto& [name, value] : ask.named()) {
    if (value.empty()) {
      attributes.mutable_named()->erase(name);
    } else {
      (*attributes.mutable_named())[name] = value;
    }
  }
  PIF_TRY(check_named(attributes.named()));
  attributes.set_changed(context.wall_ns());
  if (found.entry.type() == proto::FOLDER) {
    context.directory.forget_folders();
    context.rows.on_abort([&context] { context.directory.forget_folders(); });
  }
  ++context.weight;
  const std::uint64_t parent = found.place.folder ? found.place.folder->id() : kRootParent;
  return context.rows.put_entry(parent, found.place.name, found.entry);
}

}  // namespace

// Forks come and go in files, whose times are those of their bytes.
Status store_folder_times(ServerContext& context) {
  for (const std::uint64_t id : context.changed_folders) {
    proto::StoredFile place;
    place.set_parent(kRootParent);
    place.set_name(std::string(kRootName));
    if (id != kRootFolder) {
      PIF_TRY_VALUE(const auto found, context.rows.folder(id));
      if (!found) continue;  // it is a file, or went in this turn, too
      place = *found;
    }
    PIF_TRY_VALUE(auto folder, context.rows.entry(place.parent(), place.name()));
    if (!folder || folder->id() != id) continue;
    note_change(context, context.wall_ns(), *folder->mutable_attributes());
    PIF_TRY(context.rows.put_entry(place.parent(), place.name(), *folder));
  }
  return {};
}

void bind_names(Operations& operations) {
  operations.bind<make_folder>();
  operations.bind<rename>();
  operations.bind<set_attributes>();
}

}  // namespace pif::server
