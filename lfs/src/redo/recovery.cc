#include "redo/recovery.h"

#include <map>
#include <set>
#include <unordered_set>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "redo/in_place.h"
#include "redo/older_log.h"
#include "store/aside.h"
#include "store/catalogue.h"
#include "store/convert.h"
#include "store/root.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kPutsMax = 1024;  // per transaction

// Replays entries, one after another, and remembers what they changed.
class Replayer {
 public:
  Replayer(component::Storage& storage, kv::Store& catalogue, std::string root)
      : storage_(storage), catalogue_(catalogue), root_(std::move(root)) {}

  // False: it was in place already.
  Result<bool> replay(const LogEntry& entry, std::uint64_t number);
  Status finish();  // in-place data durable, then the sums of their tails

 private:
  Result<proto::ComponentState*> state_of(FileId file);
  Result<bool> replay_chunks(const LogEntry& entry, std::uint64_t number);

  component::Storage& storage_;
  kv::Store& catalogue_;
  std::string root_;
  std::map<std::uint64_t, std::optional<proto::ComponentState>> states_;  // nothing: not in the catalogue, or damaged
  std::map<std::uint64_t, component::Shape> changed_;
};

Result<proto::ComponentState*> Replayer::state_of(FileId file) {
  auto at = states_.find(file.value);
  if (at == states_.end()) {
    auto state = catalogue::get(catalogue_, file);
    if (!state && state.error().code != Code::kCorrupt) return fail(std::move(state.error()));
    if (!state) spdlog::error("redo log: {}", state.error().text);  // a damaged component; others go on
    at = states_.emplace(file.value, state ? std::move(*state) : std::nullopt).first;
  }
  return at->second ? &*at->second : nullptr;
}

Result<bool> Replayer::replay(const LogEntry& entry, std::uint64_t number) {
  switch (entry.type) {
    case LogEntryType::kChunks:
    case LogEntryType::kChanges: return replay_chunks(entry, number);
    case LogEntryType::kRequests: break;
  }
  return fail(Code::kVersion, fmt::format("redo log, entry {}: of an unknown type", number));  // RedoLog said so before
}

Result<bool> Replayer::replay_chunks(const LogEntry& entry, std::uint64_t number) {
  PIF_TRY_VALUE(auto* state, state_of(entry.file));
  if (state == nullptr) return true;  // nobody asks for it any more
  if (number <= state->log_applied()) return false;
  PIF_TRY_VALUE(const auto shape, shape_of(state->shape()));
  if (shape.chunk_bytes != entry.chunk_bytes)
    return fail(Code::kCorrupt, fmt::format("redo log, entry {}: chunks of {} bytes, file {} has {}", number,
                                            entry.chunk_bytes, name_of(entry.file), shape.chunk_bytes));
  auto files =
      component::open_files(storage_, component::stem(root_, entry.file), shape.format, component::OpenMode::kWrite);
  if (!files && files.error().code == Code::kNotFound) {
    spdlog::error("redo log, entry {}: {}", number, files.error().text);  // a damaged component; others go on
    states_[entry.file.value].reset();
    changed_.erase(entry.file.value);
    return true;
  }
  if (!files) return fail(std::move(files.error()));
  auto tail = tail_of(*state);
  if (entry.type == LogEntryType::kChunks) {
    PIF_TRY(write_in_place(shape, *files, entry.first_chunk, entry.data, tail));
  } else {
    PIF_TRY_VALUE(const Changes changes, decode_changes(entry.data, entry.chunk_bytes));
    PIF_TRY(change_in_place(shape, *files, entry.first_chunk, changes, tail));
  }
  set_tail(*state, tail);
  state->set_log_applied(number);
  changed_.emplace(entry.file.value, shape);
  return true;
}

Status Replayer::finish() {
  std::vector<const proto::ComponentState*> changed;
  for (const auto& [id, shape] : changed_) {
    PIF_ASSERT(states_.contains(id) && states_.at(id), id);
    PIF_TRY_VALUE(auto files, component::open_files(storage_, component::stem(root_, FileId(id)), shape.format,
                                                    component::OpenMode::kWrite));
    PIF_TRY(sync_data_and_sums(files));
    changed.push_back(&*states_.at(id));
  }
  for (std::size_t begin = 0; begin < changed.size(); begin += kPutsMax) {
    PIF_TRY_VALUE(auto transaction, catalogue_.write());
    for (std::size_t i = begin; i < std::min(changed.size(), begin + kPutsMax); ++i)
      PIF_TRY(catalogue::put(*transaction, *changed[i]));
    PIF_TRY(transaction->commit());
  }
  return {};
}

// The new log has no overwrite before this is durable: an older log is always the older one.
Status remove_older_log(component::Storage& storage, const std::string& root) {
  PIF_TRY(storage.remove(older_log_path(root)));
  return storage.sync_folder(log_folder(root));
}

}  // namespace

Status replay_log(component::Storage& storage, kv::Store& catalogue, const std::string& root, RedoLog& log) {
  std::uint64_t applied_max = 0;
  PIF_TRY(catalogue::each(catalogue, FileId(0), [&](FileId, Result<proto::ComponentState> state) {
    if (state) applied_max = std::max(applied_max, state->log_applied());
    return true;
  }));
  Replayer replayer(storage, catalogue, root);
  std::uint64_t entries = 0;
  const auto replay = [&](const LogEntry& entry, std::uint64_t number) {
    ++entries;
    return replayer.replay(entry, number);
  };
  PIF_TRY_VALUE(const auto older, replay_older_log(storage, older_log_path(root), replay));
  PIF_TRY(log.open(replay));
  if (entries > 0) spdlog::info("{} entries of the redo log replayed", entries);
  PIF_TRY(replayer.finish());
  PIF_TRY_VALUE(const auto numbers, catalogue::numbers(catalogue));
  // They never go back, even behind what a lost log had given out.
  PIF_TRY(log.confirm(std::max({applied_max, numbers.number(), older})));
  return remove_older_log(storage, root);
}

Status clear_leftovers(component::Storage& storage, kv::Store& catalogue, const std::string& root, std::int64_t now) {
  std::unordered_set<std::uint64_t> known;
  PIF_TRY(catalogue::each(catalogue, FileId(0), [&](FileId file, const Result<proto::ComponentState>&) {
    known.insert(file.value);
    return true;
  }));
  PIF_TRY(catalogue::each_quarantined(catalogue, FileId(0), [&](FileId file, const proto::StoredQuarantine&) {
    known.insert(file.value);
    return true;
  }));
  std::set<FileId> unowned;
  std::set<std::string> folders;
  PIF_TRY(each_data_file(storage, root, [&](const std::string& folder, const std::string& name) -> Status {
    FileId file;
    if (!parse_file_name(name, file) || known.contains(file.value)) return {};
    unowned.insert(file);
    folders.insert(folder);
    return {};
  }));
  if (!unowned.empty()) {
    PIF_TRY_VALUE(const std::int64_t since, free_moment(storage, root, now));
    for (const FileId file : unowned) PIF_TRY(put_aside(storage, root, {file, since}));
    PIF_TRY(sync_aside(storage, root, since));
    for (const std::string& folder : folders) PIF_TRY(storage.sync_folder(folder));  // else they come back
    spdlog::info("files of {} components that the catalogue does not know put aside", unowned.size());
  }
  PIF_TRY(storage.remove_tree(programs_folder(root)));
  PIF_TRY(storage.remove_tree(scratch_folder(root)));
  return storage.make_folder(scratch_folder(root));
}

}  // namespace pif::lfs
