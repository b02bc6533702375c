#include "runs/kept_share.h"

#include <algorithm>

#include "pif/tool/parts.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kPartRecords = 4096;  // fewer are not worth a thread

}  // namespace

Result<std::vector<Pick>> find_share(tool::Worker& worker, const KeyMaker& maker, const parity::Layout& layout,
                                     std::span<const RunView> runs, Range range, bool unique) {
  const tool::Parts parts(range, {.most = worker.threads(), .least = kPartRecords});
  std::vector<Pick> picks(range.size());
  const auto picks_of = [&](std::size_t i) { return std::span(picks).subspan(parts[i].begin - range.begin); };
  std::vector<std::size_t> found(parts.size());
  PIF_TRY(worker.run_tasks(parts.size(), [&](std::size_t i) -> Status {
    ShareWalk walk(maker, layout, runs, parts[i].begin, parts[i].end, unique);
    Pick* const first = picks_of(i).data();
    Pick* next = first;
    while (const auto pick = walk.next()) *next++ = *pick;
    found[i] = static_cast<std::size_t>(next - first);
    return {};
  }));
  auto end = picks.begin();
  for (std::size_t i = 0; i < parts.size(); ++i) end = std::ranges::move(picks_of(i).first(found[i]), end).out;
  picks.erase(end, picks.end());
  return picks;
}

}  // namespace pif::sort
