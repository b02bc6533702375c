#include "redo/older_log.h"

#include <fmt/format.h>

namespace pif::lfs {
namespace {

constexpr std::uint32_t kOlderVersion = 1;
constexpr std::uint64_t kFirstEntry = 2 * redo::kHeadBytes;  // rounds alternated between two heads of one file

}  // namespace

Result<std::uint64_t> replay_older_log(component::Storage& storage, const std::string& path,
                                       const RedoLog::Replay& replay) {
  auto file = storage.open(path, component::OpenMode::kRead);
  if (!file && file.error().code == Code::kNotFound) return 0;
  if (!file) return fail(std::move(file.error()));
  PIF_TRY_VALUE(const auto size, (*file)->size());
  std::optional<redo::StoredHead> best;
  for (std::uint64_t slot = 0; slot < 2; ++slot) {
    PIF_TRY_VALUE(const auto head, redo::read_head(**file, path, slot * redo::kHeadBytes, kOlderVersion));
    if (head && (!best || head->round > best->round)) best = head;
  }
  if (!best && size <= kFirstEntry) return 0;
  if (!best)
    return fail(Code::kCorrupt,
                fmt::format("{} has no whole head: overwrites that were acknowledged may be missing", path));
  redo::Reader reader(**file, path, size, kFirstEntry, *best);
  for (;;) {
    PIF_TRY_VALUE(const auto entry, reader.next());
    if (!entry) return reader.number();
    if (entry->type() == LogEntryType::kRequests)
      return fail(Code::kVersion, fmt::format("{} has an entry of a newer release", path));
    PIF_TRY(replay(entry->view(), entry->stored.number));
  }
}

}  // namespace pif::lfs
