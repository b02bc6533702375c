#include "runs/kept_share.h"

#include <algorithm>

namespace pif::sort {
namespace {

constexpr std::uint64_t kPartRecords = 4096;  // fewer are not worth a thread

}  // namespace

Result<std::vector<Pick>> find_share(tool::Worker& worker, const KeyMaker& maker, const parity::Layout& layout,
                                     std::span<const RunView> runs, PositionRange range, bool unique) {
  const std::uint64_t records = range.end - range.begin;
  const std::uint64_t parts = std::clamp<std::uint64_t>(records / kPartRecords, 1, worker.threads());
  const auto begin_of = [&](std::size_t part) { return part == parts ? records : records / parts * part; };
  std::vector<Pick> picks(records);
  std::vector<std::size_t> found(parts);
  PIF_TRY(worker.run_tasks(parts, [&](std::size_t part) -> Status {
    ShareWalk walk(maker, layout, runs, range.begin + begin_of(part), range.begin + begin_of(part + 1), unique);
    Pick* const first = picks.data() + begin_of(part);
    Pick* next = first;
    while (const auto pick = walk.next()) *next++ = *pick;
    found[part] = static_cast<std::size_t>(next - first);
    return {};
  }));
  auto end = picks.begin();
  for (std::size_t part = 0; part < parts; ++part) {
    const auto first = picks.begin() + static_cast<std::ptrdiff_t>(begin_of(part));
    end = std::move(first, first + static_cast<std::ptrdiff_t>(found[part]), end);
  }
  picks.erase(end, picks.end());
  return picks;
}

}  // namespace pif::sort
