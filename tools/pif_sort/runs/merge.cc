#include "runs/merge.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace pif::sort {
namespace {

struct Window {
  std::size_t low = 0, high = 0;
};

// How many records of the run come before record `i` of run `of`, which is known to be inside the window.
std::size_t count_before(const RunView& run, Window window, const RunView& of, std::size_t i, Order& order) {
  while (window.low < window.high) {
    const std::size_t middle = (window.low + window.high) / 2;
    if (order.less(run, middle, of, i)) {
      window.low = middle + 1;
    } else {
      window.high = middle;
    }
  }
  return window.low;
}

}  // namespace

// Each round halves the largest window: its middle element comes before the cut or after it, and so do, in every run,
// those before it or after it.
std::vector<std::size_t> cut_at(std::span<const RunView> runs, std::uint64_t position, Order& order) {
  std::vector<Window> windows;
  for (const RunView& run : runs) windows.push_back({0, run.elements.size()});
  std::vector<std::size_t> before(runs.size());
  while (true) {
    const auto widest = std::max_element(windows.begin(), windows.end(), [](const Window& a, const Window& b) {
      return a.high - a.low < b.high - b.low;
    });
    if (widest == windows.end() || widest->low == widest->high) break;
    const auto pivot = static_cast<std::size_t>(widest - windows.begin());
    const std::size_t middle = (widest->low + widest->high) / 2;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      before[i] = i == pivot ? middle : count_before(runs[i], windows[i], runs[pivot], middle, order);
      total += before[i];
    }
    const bool is_before = total < position;
    for (std::size_t i = 0; i < runs.size(); ++i) (is_before ? windows[i].low : windows[i].high) = before[i];
    if (is_before) ++widest->low;
  }
  std::vector<std::size_t> cut;
  for (const Window& window : windows) cut.push_back(window.low);
  return cut;
}

Merger::Merger(std::span<const RunView> runs, std::vector<std::size_t> begin, std::vector<std::size_t> end,
               Order& order)
    : runs_(runs),
      at_(std::move(begin)),
      end_(std::move(end)),
      asked_(at_),
      ask_at_(runs.size(), SIZE_MAX),
      order_(order),
      has_levels_(std::all_of(runs.begin(), runs.end(), [](const RunView& run) { return run.has_levels; })),
      has_zeros_(std::any_of(runs.begin(), runs.end(), [](const RunView& run) { return run.has_zeros; })) {
  leaves_ = std::bit_ceil(static_cast<std::uint32_t>(std::max<std::size_t>(runs.size(), 1)));
  losers_.resize(leaves_);
  codes_.resize(leaves_);
  for (std::uint32_t run = 0; run < runs.size(); ++run) {
    if (runs[run].window > 0) ask_at_[run] = at_[run];
    load(run, true);
  }
  winner_ = play(1);
}

void Merger::read_ahead(std::uint32_t run) {
  const std::size_t half = std::max<std::size_t>(runs_[run].window / 2, 1);
  while (asked_[run] < end_[run] && asked_[run] <= at_[run] + half) {
    const std::size_t begin = std::exchange(asked_[run], std::min(asked_[run] + half, end_[run]));
    runs_[run].read_ahead(begin, asked_[run]);
  }
  ask_at_[run] = asked_[run] < end_[run] ? asked_[run] - half : SIZE_MAX;
}

// is_first: nothing of the run comes before it in this merge.
void Merger::load(std::uint32_t run, bool is_first) {
  const std::size_t at = at_[run];
  if (at >= ask_at_[run]) read_ahead(run);
  if (at == end_[run]) {
    codes_[run] = {};
    return;
  }
  const Element& element = runs_[run].elements[at];
  const bool is_coded = level_of(element) == 0 || (has_levels_ && !is_first);
  codes_[run] = code_of(is_coded ? element : order_.first_chunk(runs_[run], at));
}

bool Merger::before(std::uint32_t a, std::uint32_t b) {
  const auto by_code = codes_[a] <=> codes_[b];
  return by_code != 0 ? by_code < 0 : settle(a, b);
}

// The codes do not decide. The loser's will say how it comes behind the winner.
bool Merger::settle(std::uint32_t a, std::uint32_t b) {
  if (is_empty(a) || is_empty(b)) return is_empty(b) && !is_empty(a);
  OffsetCode loser = codes_[a];
  int order = 0;
  if (!has_levels_) {
    order = order_.compare_behind_chunk(runs_[a], at_[a], runs_[b], at_[b]);
  } else if (loser != kSameCode) {
    order = compare_texts(a, b, loser);
  }
  const bool is_before = order != 0 ? order < 0 : order_.is_lower(runs_[a], at_[a], runs_[b], at_[b]);
  codes_[is_before ? b : a] = loser;
  return is_before;
}

// Behind the chunk that both have. loser: its code, behind the other one.
int Merger::compare_texts(std::uint32_t a, std::uint32_t b, OffsetCode& loser) {
  const unsigned level = loser.level();
  const bool is_unclear = order_.is_unclear(loser, has_zeros_);
  if (!is_unclear && order_.is_end(static_cast<unsigned>(loser.low) & 0xff, level)) {
    loser = kSameCode;
    return 0;
  }
  const std::string_view x = order_.text_of(runs_[a].record(at_[a])), y = order_.text_of(runs_[b].record(at_[b]));
  const std::size_t same = common_bytes(x, y, is_unclear ? 0 : order_.chunk_begin(level + 1));
  const int order = order_.compare_behind(x, y, same);
  if (order == 0) {
    loser = kSameCode;
  } else if (!is_unclear) {
    const std::size_t first = (same - order_.chunk_begin(0)) / kChunkBytes;
    const auto most = static_cast<unsigned>(std::min<std::size_t>(first, kLevelMax));
    const unsigned differs = order_.level_to_stop(x, std::min(level + 1, most), most, has_zeros_);
    loser = code_of(order_.chunk(order < 0 ? y : x, differs, 0));
  }
  return order;
}

// Who wins below `node`; the losers stay there.
std::uint32_t Merger::play(std::uint32_t node) {
  if (node >= leaves_) return node - leaves_;
  const std::uint32_t left = play(2 * node), right = play(2 * node + 1);
  const bool right_wins = before(right, left);
  losers_[node] = right_wins ? left : right;
  return right_wins ? right : left;
}

void Merger::advance() {
  ++at_[winner_];
  load(winner_, false);
  for (std::uint32_t node = (winner_ + leaves_) / 2; node > 0; node /= 2) {
    if (before(losers_[node], winner_)) std::swap(losers_[node], winner_);
  }
}

ShareWalk::ShareWalk(const KeyMaker& maker, const RecordNumbers& numbers, std::span<const RunView> runs,
                     std::uint64_t begin, std::uint64_t end, bool unique)
    : runs_(runs),
      unique_(unique),
      order_(maker, numbers),
      cut_(cut_at(runs, begin, order_)),
      last_(unique ? last_before_cut() : std::nullopt),
      merge_(runs, std::move(cut_), cut_at(runs, end, order_), order_) {}

std::optional<Pick> ShareWalk::last_before_cut() {
  std::optional<Pick> last;
  for (std::uint32_t run = 0; run < runs_.size(); ++run) {
    if (cut_[run] == 0) continue;
    const Pick pick{run, static_cast<std::uint32_t>(cut_[run] - 1)};
    if (!last || order_.less(runs_[last->run], last->index, runs_[run], pick.index)) last = pick;
  }
  return last;
}

// Whether its key is that of the record before.
bool ShareWalk::is_again(Pick pick) {
  if (!unique_ || !last_) return is_first_ = false;
  if (merge_.has_levels() && !std::exchange(is_first_, false)) return merge_.is_same_key();
  return order_.compare_keys(runs_[last_->run], last_->index, runs_[pick.run], pick.index) == 0;
}

std::optional<Pick> ShareWalk::next() {
  for (; !merge_.is_done(); merge_.advance()) {
    const Pick pick = merge_.peek();
    if (is_again(pick)) continue;
    last_ = pick;
    merge_.advance();
    return pick;
  }
  return std::nullopt;
}

}  // namespace pif::sort
