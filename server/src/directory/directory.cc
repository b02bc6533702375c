#include "directory/directory.h"

#include <fmt/format.h>

#include "directory/entry_bytes.h"
#include "directory/names.h"
#include "pif/base/assert.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

constexpr std::size_t kFoldersRemembered = 4096;
constexpr std::size_t kStepsRemembered =
    32 * kFoldersRemembered;      // of all of them, for paths may be thousands of names deep
constexpr int kFoldersTried = 8;  // from a path's end upwards, in memory

constexpr std::size_t kClimbMax = 4096;  // more folders than a path can have names

Error nowhere(std::uint64_t folder) {
  return {Code::kCorrupt, fmt::format("folder {} is nowhere in the directory", folder), {}};
}

}  // namespace

std::string_view kind_name(const proto::StoredEntry& entry) {
  if (entry.type() == proto::FOLDER) return "a folder";
  if (entry.type() != proto::OTHER) return "a file";
  switch (entry.other().kind()) {
    case wire::kOtherLink: return "a symbolic link";
    case wire::kOtherFifo: return "a fifo";
    case wire::kOtherSocket: return "a socket";
    default: return "a device";
  }
}

proto::EntryInfo info_of(const proto::StoredEntry& entry, std::string_view name) {
  proto::EntryInfo info;
  info.set_name(std::string(name));
  info.set_type(entry.type());
  info.set_id(entry.id());
  if (entry.has_attributes()) *info.mutable_attributes() = entry.attributes();
  if (entry.has_format()) *info.mutable_format() = entry.format();
  if (entry.has_layout()) *info.mutable_layout() = entry.layout();
  if (entry.has_file_length()) *info.mutable_file_length() = entry.file_length();
  *info.mutable_marks() = entry.marks();
  if (entry.has_striping()) *info.mutable_striping() = entry.striping();
  info.set_placed(entry.placed());
  info.set_inode(entry.inode());
  if (entry.has_other()) *info.mutable_other() = entry.other();
  return info;
}

// The nearest folder above the path's end that is remembered, if one is not far.
Directory::Walk Directory::nearest(std::string_view path) const {
  for (int tries = 0; tries < kFoldersTried; ++tries) {
    if (const auto known = folders_.find(path); known != folders_.end()) return {known->second, path.size()};
    if (path.empty()) break;
    path = split(path).folder;
  }
  return {nullptr, 0};
}

void Directory::remember(std::string_view path, const FolderRef& folder) {
  if (folders_.contains(path)) return;
  PIF_ASSERT(!folder->chain.empty(), path.size());
  if (folders_.size() >= kFoldersRemembered || steps_ >= kStepsRemembered) forget_folders();
  folders_.emplace(std::string(path), folder);
  steps_ += folder->chain.size();
}

// One step down, to what is at `path`; false if nothing is there.
Result<bool> Directory::enter(Folder& folder, std::uint64_t parent, std::string_view name, std::string_view path) {
  PIF_TRY_VALUE(const auto entry, rows_.entry(parent, name));
  if (!entry) return false;
  if (entry->type() != proto::FOLDER) {
    return fail(Code::kNotDirectory, fmt::format("{} is {}, not a folder", shown(path), kind_name(*entry)));
  }
  folder.chain.push_back({entry->id(), guard_of(entry->attributes())});
  folder.striping = entry->has_striping() ? std::make_shared<proto::Striping>(entry->striping()) : nullptr;
  return true;
}

// From `folder`, where path[0, end) leads, down to the last folder that is there. Reads each row once, whatever the
// path.
Status Directory::descend(std::string_view path, Folder& folder, std::size_t& end) {
  if (folder.chain.empty()) {
    PIF_TRY_VALUE(const bool there, enter(folder, kRootParent, kRootName, {}));
    if (!there) return fail(Code::kNotFound, "there is no folder /");
  }
  while (end < path.size()) {
    const std::size_t next = name_end(path, end);
    PIF_ASSERT(path[end] == '/' && next > end + 1, end, next, path.size());  // the path is checked: no name is empty
    PIF_TRY_VALUE(const bool there,
                  enter(folder, folder.id(), path.substr(end + 1, next - end - 1), path.substr(0, next)));
    if (!there) break;
    end = next;
  }
  return {};
}

// Rights are checked before anything is said of what comes next: who may not search a folder must not learn what is in
// it.
Result<Directory::Walk> Directory::walk(std::string_view path, const Requester& who) {
  Walk walked = nearest(path);
  Status descended;
  if (walked.folder == nullptr || walked.end < path.size()) {
    auto folder = walked.folder == nullptr ? std::make_shared<Folder>() : std::make_shared<Folder>(*walked.folder);
    descended = descend(path, *folder, walked.end);
    walked.folder = folder;
    if (!folder->chain.empty()) remember(path.substr(0, walked.end), walked.folder);
  }
  std::size_t end = 0;
  for (const Folder::Step& step : walked.folder->chain) {
    if (!may(who, step.guard, kWantSearch)) {
      return fail(Code::kPermission,
                  fmt::format("uid {} may not search the folder {}", who.uid, shown(path.substr(0, end))));
    }
    end = name_end(path, end);
  }
  if (!descended) return fail(std::move(descended.error()));
  PIF_ASSERT(!walked.folder->chain.empty() && walked.end <= path.size(), walked.end, path.size());
  return walked;
}

Result<FolderRef> Directory::folder(std::string_view path, const Requester& who) {
  PIF_TRY_VALUE(Walk walked, walk(path, who));
  if (walked.end == path.size()) return std::move(walked.folder);
  return fail(Code::kNotFound, fmt::format("there is no folder {}", path.substr(0, name_end(path, walked.end))));
}

Result<Place> Directory::place(std::string_view path, const Requester& who) {
  PIF_TRY_VALUE(const std::string_view checked, check_path(path));
  if (checked.empty()) return fail(Code::kInvalid, "that cannot be done to the root folder /");
  const Split parts = split(checked);
  PIF_ASSERT(!parts.name.empty() && parts.folder.size() + 1 + parts.name.size() == checked.size(), checked.size());
  auto in = folder(parts.folder, who);
  std::optional<Place> found;
  if (in) found = Place{std::move(*in), parts.name, checked};
  if (!in && in.error().code == Code::kNotDirectory) {
    PIF_TRY_VALUE(found, fork_by_path(checked, who));
  }
  if (!found) return fail(std::move(in.error()));
  if (means_folder(path)) PIF_TRY(check_no_file(*found));
  return std::move(*found);
}

Status Directory::check_no_file(const Place& at) {
  PIF_TRY_VALUE(const auto entry, rows_.entry(at.folder->id(), at.name));
  if (!entry || entry->type() == proto::FOLDER) return {};
  return fail(Code::kNotDirectory, fmt::format("{} is {}, not a folder", at.path, kind_name(*entry)));
}

Result<Place> Directory::place_to_change(std::string_view path, const Requester& who) {
  PIF_TRY_VALUE(Place at, place(path, who));
  PIF_TRY(check_may_change(at, who));
  return at;
}

Status Directory::check_may_change(const Place& at, const Requester& who) {
  if (may(who, at.folder->guard(), kWantWrite | kWantSearch)) return {};
  if (at.is_fork())
    return fail(Code::kPermission, fmt::format("uid {} may not write the file of the fork {}", who.uid, at.path));
  return fail(Code::kPermission,
              fmt::format("uid {} may not write in the folder {}", who.uid, shown(split(at.path).folder)));
}

Status Directory::check_may_take_away(const Place& at, const proto::StoredEntry& entry, const Requester& who) {
  if (may_take_away(who, at.folder->guard(), entry.attributes().owner())) return {};
  return fail(Code::kPermission,
              fmt::format("uid {} owns neither {} nor its folder, which is sticky", who.uid, at.path));
}

Result<Guard> Directory::guard_of_folder(std::uint64_t folder) {
  PIF_TRY_VALUE(const Above found, above(folder));
  return found.guard;
}

Result<Directory::Found> Directory::find(std::string_view path, const Requester& who) {
  PIF_TRY_VALUE(const std::string_view checked, check_path(path));
  Found found;
  std::uint64_t parent = kRootParent;
  found.place = {nullptr, kRootName, checked};
  if (!checked.empty()) {
    PIF_TRY_VALUE(found.place, place(path, who));
    parent = found.place.folder->id();
  }
  PIF_TRY_VALUE(auto entry, rows_.entry(parent, found.place.name));
  if (!entry) return fail(Code::kNotFound, fmt::format("there is no {}", shown(checked)));
  found.entry = std::move(*entry);
  return found;
}

Result<std::size_t> Directory::stat(std::string_view path, const Requester& who, std::string& info) {
  PIF_TRY_VALUE(const std::string_view checked, check_path(path));
  std::uint64_t parent = kRootParent;
  std::string_view name = kRootName;
  if (!checked.empty()) {
    PIF_TRY_VALUE(const Place at, place(path, who));
    parent = at.folder->id();
    name = at.name;
  }
  PIF_TRY_VALUE(const auto stored, rows_.get(kEntries, entry_key(parent, name)));
  if (!stored) return fail(Code::kNotFound, fmt::format("there is no {}", shown(checked)));
  return show(*stored, name, info);
}

Result<std::size_t> Directory::show(std::string_view stored, std::string_view name, std::string& info) {
  info.clear();
  const Copied copied = append_info(stored, name, info);
  if (copied == Copied::kWhole) return 1;
  proto::EntryInfo placed;
  if (copied == Copied::kNoMessage || !placed.ParseFromString(info))
    return fail(Code::kCorrupt, fmt::format("the directory's entry of {} is no message", name));
  if (placed.placed()) PIF_TRY(measure(placed));
  info = placed.SerializeAsString();
  return 1 + static_cast<std::size_t>(placed.layout().nodes_size());
}

// A folder's place, or that of a file that has forks.
Result<proto::StoredFile> Directory::where(std::uint64_t folder) {
  PIF_TRY_VALUE(auto found, rows_.folder(folder));
  if (found) return std::move(*found);
  PIF_TRY_VALUE(found, rows_.file(folder));
  if (!found || found->state() == kDoomed) return fail(nowhere(folder));
  return std::move(*found);
}

// Forks of a file that is being created are its owner's alone.
Result<Directory::Above> Directory::above(std::uint64_t folder) {
  Above found{.parent = kRootParent};
  std::string name(kRootName);
  if (folder != kRootFolder) {
    PIF_TRY_VALUE(auto place, where(folder));
    if (place.state() == kPending) {
      constexpr std::uint32_t kOwnerOnly = 0700;
      found.guard = {place.entry().attributes().owner(), place.entry().attributes().group(), kOwnerOnly};
      return found;
    }
    found.parent = place.parent();
    name = std::move(*place.mutable_name());
  }
  PIF_TRY_VALUE(const auto entry, rows_.entry(found.parent, name));
  if (!entry || entry->id() != folder) return fail(nowhere(folder));
  const bool is_file = entry->type() == proto::FILE_ENTRY;
  found.guard = is_file ? guard_of_forks(entry->attributes()) : guard_of(entry->attributes());
  return found;
}

Result<bool> Directory::may_reach(std::uint64_t folder, const Requester& who,
                                  std::unordered_map<std::uint64_t, bool>& known) {
  if (who.all_powerful) return true;
  std::vector<std::uint64_t> climbed;
  bool reaches = true;
  std::uint64_t at = folder;
  while (reaches && at != kRootParent && !known.contains(at)) {
    if (climbed.size() > kClimbMax) return fail(nowhere(folder));
    PIF_TRY_VALUE(const Above step, above(at));
    climbed.push_back(at);
    reaches = may(who, step.guard, kWantSearch);
    at = step.parent;
  }
  if (reaches && at != kRootParent) reaches = known.at(at);
  for (const std::uint64_t id : climbed) known[id] = reaches;
  return reaches;
}

Result<std::string> Directory::path_of(std::uint64_t folder, std::unordered_map<std::uint64_t, std::string>& known) {
  std::vector<std::pair<std::uint64_t, std::string>> climbed;  // id and name, lowest first
  std::string path;
  for (std::uint64_t at = folder; at != kRootFolder;) {
    if (const auto memory = known.find(at); memory != known.end()) {
      path = memory->second;
      break;
    }
    PIF_TRY_VALUE(auto place, where(at));
    if (climbed.size() > kClimbMax) return fail(nowhere(at));
    climbed.emplace_back(at, std::move(*place.mutable_name()));
    at = place.parent();
  }
  for (auto step = climbed.rbegin(); step != climbed.rend(); ++step) {
    path += "/" + step->second;
    known[step->first] = path;
  }
  return path;
}

}  // namespace pif::server
