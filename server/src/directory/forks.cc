// Forks: files whose folder is a file (docs/PROTOCOL.md "Forks").
#include <fmt/format.h>

#include "directory/directory.h"
#include "directory/names.h"
#include "pif/base/assert.h"
#include "pif/base/fork.h"
#include "pif/base/format.h"

namespace pif::server {
namespace {

std::shared_ptr<const proto::Striping> striping_of(const proto::StoredEntry& file, std::uint32_t node) {
  auto striping = std::make_shared<proto::Striping>();
  if (file.placed()) *striping->mutable_format() = file.format();
  striping->set_width(1);
  striping->add_nodes(node);
  striping->set_bevy(0);
  return striping;
}

Error gone(std::uint64_t file) { return {Code::kStaleFile, fmt::format("file {} was removed or replaced", file), {}}; }

}  // namespace

// Who may read a file may look for its forks.
Guard guard_of_forks(const proto::Attributes& file) {
  constexpr std::uint32_t kRead = 0444, kReadAndWrite = 0666;
  Guard guard = guard_of(file);
  guard.mode = (guard.mode & kReadAndWrite) | (guard.mode & kRead) / kWantRead * kWantSearch;
  return guard;
}

Result<Place> Directory::fork_at(const Folder& above, const proto::StoredEntry& file, std::string_view text,
                                 std::string_view path, const Requester& who) {
  PIF_TRY_VALUE(const ForkName fork, parse_fork(text));
  const auto width = static_cast<std::uint32_t>(file.layout().nodes_size());
  if (fork.subfile >= width) {
    return fail(Code::kInvalid,
                fmt::format("{}: there is no subfile {}: the file has {}, from 0 on", path, fork.subfile, width));
  }
  auto folder = std::make_shared<Folder>(above);
  const Guard guard = guard_of_forks(file.attributes());
  if (!may(who, guard, kWantSearch))
    return fail(Code::kPermission, fmt::format("uid {} may not read the file of the fork {}", who.uid, path));
  folder->chain.push_back({file.id(), guard});
  const std::uint32_t node = file.layout().nodes(static_cast<int>(fork.subfile));
  folder->striping = striping_of(file, node);
  return Place{std::move(folder), text, path, node};
}

Result<std::optional<Place>> Directory::fork_by_path(std::string_view path, const Requester& who) {
  if (!may_be_fork(path)) return std::optional<Place>();
  const std::string_view file = split(split(path).folder).folder;
  const Split parts = split(file);
  const auto in = folder(parts.folder, who);
  if (!in) return std::optional<Place>();
  PIF_TRY_VALUE(const auto entry, rows_.entry((*in)->id(), parts.name));
  if (!entry || entry->type() != proto::FILE_ENTRY) return std::optional<Place>();
  PIF_TRY_VALUE(Place fork, fork_at(**in, *entry, path.substr(file.size() + 1), path, who));
  return std::optional<Place>(std::move(fork));
}

Result<proto::StoredEntry> Directory::file_with_forks(std::uint64_t file, const Requester& who) {
  PIF_TRY_VALUE(const auto row, rows_.file(file));
  if (!row || row->state() == kDoomed) return fail(gone(file));
  if (row->state() == kPending) {
    const std::uint32_t owner = row->entry().attributes().owner();
    if (!who.all_powerful && who.uid != owner) return fail(gone(file));
    return row->entry();
  }
  std::unordered_map<std::uint64_t, bool> known;
  PIF_TRY_VALUE(const bool reaches, may_reach(row->parent(), who, known));
  if (!reaches) return fail(gone(file));
  PIF_TRY_VALUE(auto entry, rows_.entry(row->parent(), row->name()));
  if (!entry || entry->id() != file) return fail(gone(file));
  return std::move(*entry);
}

Result<Place> Directory::fork_of(std::uint64_t file, std::string_view text, const Requester& who) {
  PIF_TRY_VALUE(const proto::StoredEntry entry, file_with_forks(file, who));
  PIF_TRY_VALUE(const auto row, rows_.file(file));
  if (row && row->name().find('/') != std::string::npos)
    return fail(Code::kInvalid, fmt::format("{} is a fork, and has no forks of its own", row->name()));
  return fork_at(Folder(), entry, text, text, who);
}

Result<Place> Directory::fork_to_change(std::uint64_t file, std::string_view text, const Requester& who) {
  PIF_TRY_VALUE(Place at, fork_of(file, text, who));
  PIF_TRY(check_may_change(at, who));
  return at;
}

Status Directory::measure(proto::EntryInfo& placed) {
  PIF_ASSERT(placed.placed(), placed.id());
  FileLength sum;
  const auto width = static_cast<std::uint32_t>(placed.layout().nodes_size());
  for (std::uint32_t subfile = 0; subfile < width; ++subfile) {
    PIF_TRY_VALUE(const auto fork, rows_.entry(placed.id(), fork_text(subfile, kForkData)));
    if (!fork) continue;
    sum.records += fork->file_length().records();
    sum.bytes += fork->file_length().bytes();
  }
  placed.mutable_file_length()->set_records(sum.records);
  placed.mutable_file_length()->set_bytes(sum.bytes);
  return {};
}

}  // namespace pif::server
