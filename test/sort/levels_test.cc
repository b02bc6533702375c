// Keys that are text: runs sorted by chunks, and merged by the codes of their elements.
#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

#include "../../tools/pif_sort/runs/level_sort.h"
#include "../../tools/pif_sort/runs/merge.h"

namespace pif::sort {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}
template <typename T, std::size_t N>
const T& one_of(Random& random, const T (&all)[N]) {
  return all[below(random, N)];
}

// Lines that are alike in front for none to many chunks, and many of which are the same; some begin in another way.
std::vector<std::string> some_lines(Random& random, const std::string& common) {
  constexpr std::size_t kMiddles[] = {0, 0, 3, 11, 12, 40, 2780, 2795, 2810};
  const std::string middle(one_of(random, kMiddles), below(random, 5) == 0 ? '\0' : 'm');
  const std::size_t letters = 1 + below(random, 3);
  const char odd = below(random, 4) == 0 ? '\0' : '\xff';
  const bool zeros = below(random, 4) == 0;
  constexpr std::size_t kCounts[] = {0, 1, 2, 30, 200, 800};
  std::vector<std::string> lines(one_of(random, kCounts));
  for (std::string& line : lines) {
    if (below(random, 12) > 0) line = common;
    if (below(random, 12) > 0) line += middle.substr(0, below(random, 3) > 0 ? middle.size() : below(random, 30));
    for (std::size_t more = below(random, below(random, 4) > 0 ? 4 : 26); more > 0; --more)
      line += below(random, 9) > 0 ? static_cast<char>('a' + below(random, letters)) : odd;
    // Zeros where chunks end, of one LFS in all lines, of the others not in as many.
    if (zeros)
      line = common + std::string(11, 'm') +
             std::string((&line - lines.data()) % 3 == 0 ? 33 : 11 + below(random, 40), '\0') +
             line.substr(0, below(random, 9));
    line += '\n';
  }
  return lines;
}

// The component of one LFS, in the order of its rows, and its sorted elements.
struct Part {
  std::string bytes;
  std::vector<std::uint64_t> ends{0};
  std::vector<Element> elements;
  const KeyMaker* maker = nullptr;

  Bytes record(std::uint32_t row) const {
    return std::as_bytes(std::span(bytes)).subspan(ends[row], ends[row + 1] - ends[row]);
  }
  std::string_view text(std::uint32_t row) const { return maker->text_of(record(row)); }
  void fetch_place(std::uint32_t) const {}
  void fetch(std::uint32_t) const {}
};

struct Sample {
  Sample(Random& random, const KeyMaker& of) : maker(of), order(of, numbers), lines(some_lines(random, of.common())) {
    for (std::size_t n = 0; n < lines.size(); ++n) {
      Part& part = parts[layout.locate(n).lfs];
      part.bytes += lines[n];
      part.ends.push_back(part.bytes.size());
    }
    for (LfsIndex lfs = 0; lfs < parts.size(); ++lfs) sort_part(lfs);
  }

  void sort_part(LfsIndex lfs) {
    Part& part = parts[lfs];
    part.maker = &maker;
    for (std::uint32_t row = 0; row + 1 < part.ends.size(); ++row)
      part.elements.push_back(order.chunk(part.text(row), 0, row));
    const bool has_zeros = part.bytes.find('\0') != std::string::npos;
    LevelSort(order, part, has_zeros).sort(part.elements);
    RunView view;
    view.source = lfs;
    view.elements = part.elements;
    view.records = std::as_bytes(std::span(part.bytes)).data();
    view.ends = part.ends.data();
    view.by_row = view.has_levels = true;
    view.has_zeros = has_zeros;
    if (!part.elements.empty()) views.push_back(view);
  }

  // Of a stable sort: positions of lines, with their keys.
  std::vector<std::pair<std::string_view, std::size_t>> sorted(bool unique) const {
    std::vector<std::pair<std::string_view, std::size_t>> all;
    for (std::size_t n = 0; n < lines.size(); ++n)
      all.emplace_back(maker.text_of(std::as_bytes(std::span(lines[n]))), n);
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return maker.is_reversed() ? b.first < a.first : a.first < b.first;
    });
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (unique) all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
  }

  parity::Layout layout = *parity::Layout::make(3);
  RecordNumbers numbers{layout};
  const KeyMaker& maker;
  Order order;
  std::vector<std::string> lines;
  std::vector<Part> parts = std::vector<Part>(3);
  std::vector<RunView> views;
};

KeyMaker maker_of(Random& random) {
  KeyOptions options;
  const std::vector<std::string> kKeys[] = {{}, {}, {"1.3,1.40"}};
  options.keys = one_of(random, kKeys);
  options.reverse = below(random, 3) == 0;
  KeyMaker maker = *KeyMaker::make(options, Format::lines());
  const std::string kCommon[] = {"", "2026-11-", std::string(30, 'm')};
  if (options.keys.empty()) maker.set_common(one_of(random, kCommon));
  return maker;
}

}  // namespace

TEST_CASE("runs of text that are merged by their codes are a stable sort, from any position to any other one") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const KeyMaker maker = maker_of(random);
    Sample sample(random, maker);
    const bool unique = below(random, 2) == 0;
    const auto all = sample.sorted(false), wanted = sample.sorted(unique);
    const std::size_t begin = below(random, all.size() + 1), end = begin + below(random, all.size() - begin + 1);
    ShareWalk walk(maker, sample.numbers, sample.views, begin, end, unique);
    std::vector<std::size_t> got;
    while (const auto pick = walk.next()) got.push_back(sample.order.number(sample.views[pick->run], pick->index));
    std::vector<std::size_t> expected;
    for (const auto& [text, number] : wanted) {
      const auto at = std::find_if(all.begin(), all.end(), [n = number](const auto& each) { return each.second == n; });
      const auto position = static_cast<std::size_t>(at - all.begin());
      if (position >= begin && position < end) expected.push_back(number);
    }
    REQUIRE(got == expected);
  }
}

}  // namespace pif::sort
