#include "store/covered.h"

#include <algorithm>
#include <vector>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

struct Entry {
  Range pages;
  std::uint64_t generation = 0;
};

std::vector<Entry> entries_of(const proto::ComponentState& state) {
  std::vector<Entry> out;
  for (const auto& one : state.covered()) out.push_back({{one.first(), one.first() + one.count()}, one.generation()});
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.pages.begin < b.pages.begin; });
  return out;
}

void set_entries(const std::vector<Entry>& entries, proto::ComponentState& state) {
  state.clear_covered();
  for (const Entry& entry : entries) {
    if (entry.pages.empty()) continue;
    auto* const last = state.covered_size() > 0 ? state.mutable_covered(state.covered_size() - 1) : nullptr;
    if (last != nullptr && last->generation() == entry.generation &&
        last->first() + last->count() == entry.pages.begin) {
      last->set_count(last->count() + entry.pages.size());
      continue;
    }
    auto& added = *state.add_covered();
    added.set_first(entry.pages.begin);
    added.set_count(entry.pages.size());
    added.set_generation(entry.generation);
  }
}

}  // namespace

void begin_parity_generation(const Keeper& keeper, std::uint64_t generation, const FileLength& base,
                             proto::ComponentState& state) {
  if (generation <= state.parity_generation()) return;
  const std::uint64_t published = keeper.pages(base);
  auto entries = entries_of(state);
  // Appends of one generation are one entry, of which the first may have been published, and the rest not.
  for (Entry& entry : entries) entry.pages.end = std::min(entry.pages.end, published);
  set_entries(entries, state);
  state.set_parity_generation(generation);
  state.mutable_parity_base()->set_records(base.records);
  state.mutable_parity_base()->set_bytes(base.bytes);
}

void add_covered(Range pages, std::uint64_t generation, proto::ComponentState& state) {
  if (pages.empty()) return;
  std::vector<Entry> out;
  for (const Entry& entry : entries_of(state)) {  // the new ones count where both are
    out.push_back({{entry.pages.begin, std::min(entry.pages.end, pages.begin)}, entry.generation});
    out.push_back({{std::max(entry.pages.begin, pages.end), entry.pages.end}, entry.generation});
  }
  out.push_back({pages, generation});
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.pages.begin < b.pages.begin; });
  set_entries(out, state);
}

void set_pages(std::uint64_t pages, proto::ComponentState& state) {
  PIF_ASSERT(pages >= state.pages(), pages, state.pages());
  auto entries = entries_of(state);
  for (Entry& entry : entries) entry.pages.begin = std::max(entry.pages.begin, pages);
  set_entries(entries, state);
  state.set_pages(pages);
}

bool has_page(const proto::ComponentState& state, std::uint64_t page) {
  if (page < state.pages()) return true;
  return std::any_of(state.covered().begin(), state.covered().end(), [page](const auto& entry) {
    return page >= entry.first() && page - entry.first() < entry.count();
  });
}

std::deque<Range> missing_pages(const proto::ComponentState& state, Range range) {
  std::deque<Range> out;
  std::uint64_t from = std::max(range.begin, state.pages());
  for (const Entry& entry : entries_of(state)) {
    if (entry.pages.end <= from) continue;
    if (entry.pages.begin >= range.end) break;
    if (entry.pages.begin > from) out.push_back({from, entry.pages.begin});
    from = entry.pages.end;
  }
  if (from < range.end) out.push_back({from, range.end});
  return out;
}

std::uint64_t end_of_pages(const proto::ComponentState& state) {
  std::uint64_t end = state.pages();
  for (const Entry& entry : entries_of(state)) {
    if (entry.pages.begin > end) break;
    end = std::max(end, entry.pages.end);
  }
  return end;
}

std::uint64_t behind_pages(const proto::ComponentState& state) {
  std::uint64_t end = state.pages();
  for (const Entry& entry : entries_of(state)) end = std::max(end, entry.pages.end);
  return end;
}

}  // namespace pif::lfs
