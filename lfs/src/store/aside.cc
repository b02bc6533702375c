#include "store/aside.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/component.h"
#include "pif/component/names.h"
#include "store/convert.h"

namespace pif::lfs {
namespace {

constexpr std::int64_t kDaySeconds = 24 * 3600;

std::string aside_folder(const std::string& root) { return root + "/aside"; }

std::string folder_of(const std::string& root, std::int64_t since) {
  return fmt::format("{}/{}", aside_folder(root), since);
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool parse_since(const std::string& name, std::int64_t& since) {
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), since);
  return error == std::errc() && end == name.data() + name.size();
}

}  // namespace

Result<std::int64_t> free_moment(component::Storage& storage, const std::string& root, std::int64_t now) {
  const auto taken = storage.list(aside_folder(root));
  if (!taken && taken.error().code == Code::kNotFound) return now;
  if (!taken) return fail(taken.error());
  while (std::find(taken->begin(), taken->end(), std::to_string(now)) != taken->end()) ++now;
  return now;
}

Result<bool> put_aside(component::Storage& storage, const std::string& root, const AsideCopy& copy) {
  PIF_ASSERT(copy.file.value != 0, copy.since);
  const std::string folder = folder_of(root, copy.since);
  bool any = false;
  for (const std::string& path : component::possible_names(component::stem(root, copy.file))) {
    PIF_TRY_VALUE(const auto stored, storage.stored_bytes(path));
    if (!stored) continue;
    if (!any) PIF_TRY(storage.make_folder(folder));
    any = true;
    PIF_TRY(storage.rename(path, folder + "/" + name_in(path)));
  }
  return any;
}

Status sync_aside(component::Storage& storage, const std::string& root, std::int64_t since) {
  PIF_TRY(storage.sync_folder(folder_of(root, since)));
  PIF_TRY(storage.sync_folder(aside_folder(root)));
  return storage.sync_folder(root);
}

Result<std::optional<AsideCopy>> put_aside_now(component::Storage& storage, const std::string& root, FileId file,
                                               std::int64_t now) {
  PIF_TRY_VALUE(const std::int64_t since, free_moment(storage, root, now));
  PIF_TRY_VALUE(const bool any, put_aside(storage, root, {file, since}));
  if (!any) return std::nullopt;
  PIF_TRY(sync_aside(storage, root, since));
  return std::optional(AsideCopy{file, since});
}

std::uint64_t row_bytes(component::Storage& storage, const std::string& root, const AsideCopy& copy) {
  std::uint64_t bytes = 0;
  for (const std::string& path : component::possible_names(component::stem(root, copy.file))) {
    if (!path.ends_with(".dat") && !path.ends_with(".idx")) continue;
    const auto stored = storage.stored_bytes(folder_of(root, copy.since) + "/" + name_in(path));
    bytes += stored ? stored->value_or(0) : 1;
  }
  return bytes;
}

Status remove_aside(component::Storage& storage, const std::string& root, const AsideCopy& copy) {
  PIF_ASSERT(copy.file.value != 0, copy.since);
  const std::string folder = folder_of(root, copy.since);
  for (const std::string& path : component::possible_names(component::stem(root, copy.file)))
    PIF_TRY(storage.remove(folder + "/" + name_in(path)));
  const auto left = storage.list(folder);
  if (left) return left->empty() ? storage.remove_tree(folder) : Status();
  return left.error().code == Code::kNotFound ? Status() : Status(fail(left.error()));
}

Status Aside::load(component::Storage& storage, const std::string& root) {
  const auto folders = storage.list(aside_folder(root));
  if (!folders) return folders.error().code == Code::kNotFound ? Status() : Status(fail(folders.error()));
  for (const std::string& folder : *folders) {
    AsideCopy copy;
    if (!parse_since(folder, copy.since)) continue;
    PIF_TRY_VALUE(const auto names, storage.list(aside_folder(root) + "/" + folder));
    for (const std::string& name : names)
      if (parse_file_name(name, copy.file)) add(copy);
  }
  return {};
}

bool Aside::has(FileId file) const {
  const auto found = copies_.lower_bound({file, std::numeric_limits<std::int64_t>::min()});
  return found != copies_.end() && found->file == file;
}

bool Aside::has_rows(component::Storage& storage, const std::string& root, FileId file) const {
  return has(file) && std::any_of(copies_.begin(), copies_.end(), [&](const AsideCopy& copy) {
           return copy.file == file && row_bytes(storage, root, copy) > 0;
         });
}

void Aside::learn(FileId file, Word word) {
  PIF_ASSERT(has(file), file.value);
  Word& known = words_[file];
  const bool is_over = known == Word::kGone || (known == Word::kPending && word == Word::kCommitted);
  known = is_over ? Word::kGone : word;
}

void Aside::forget(const AsideCopy& copy) {
  PIF_ASSERT(copies_.contains(copy), copy.file.value, copy.since);
  copies_.erase(copy);
  if (!has(copy.file)) words_.erase(copy.file);
}

std::vector<AsideCopy> Aside::over(const Moment& moment, std::size_t most,
                                   const std::function<bool(FileId)>& is_here) const {
  std::vector<AsideCopy> out;
  for (const AsideCopy& copy : copies_) {
    if (out.size() >= most) break;
    const auto found = words_.find(copy.file);
    const Word word = found == words_.end() ? Word::kNone : found->second;
    const bool is_late = moment.is_short || moment.now - copy.since > kDaySeconds;
    const bool may_end = word == Word::kUnknown || (word == Word::kNone && !moment.has_server) ||
                         (word == Word::kCommitted && is_here(copy.file));
    if (word == Word::kGone || (may_end && is_late)) out.push_back(copy);
  }
  PIF_ASSERT(out.size() <= std::min(most, copies_.size()), out.size(), most);
  return out;
}

}  // namespace pif::lfs
