// Sorting elements whose keys are text (element.h): by the first chunk, then those that tie by the chunk in which they
// differ, and so on. Each record is looked at once for each chunk that decides, and not where the first one does.
#pragma once

#include <algorithm>
#include <span>

#include "runs/order.h"

namespace pif::sort {

// Texts: text(row) is the key's text; fetch_place(row) and
// fetch(row) fetch what that will look at, and then the text, into the cache.
template <typename Texts>
class LevelSort {
 public:
  // Both outlive it. has_zeros: some texts of variable length have a byte 0.
  LevelSort(const Order& order, const Texts& texts, bool has_zeros)
      : order_(order), texts_(texts), has_zeros_(has_zeros) {}

  // elements: with their first chunks. Afterwards in order, and each as a run has it.
  void sort(std::span<Element> elements) { sort(elements, 0); }

  // The same for elements that all have this chunk, `level`, in the order of their rows.
  void settle(std::span<Element> same, unsigned level) {
    const bool is_unclear = order_.is_unclear(code_of(same[0]), has_zeros_);
    if (is_unclear ? are_same_texts(same) : order_.is_end(last_byte(same[0]), level)) {
      for (Element& element : same.subspan(1)) element = same_key(element);
      return;
    }
    if (is_unclear) return sort_by_texts(same, same[0], 0);
    const unsigned next = next_level(same, level);
    if (next > kLevelMax) {
      const Element tie = order_.chunk(texts_.text(row_of(same[0])), kLevelMax, 0);
      return sort_by_texts(same, tie, order_.chunk_begin(kLevelMax + 1));
    }
    const Element first = same[0];
    for (std::size_t i = 0; i < same.size(); ++i) {
      fetch_ahead(same, i);
      same[i] = order_.chunk(texts_.text(row_of(same[i])), next, row_of(same[i]));
    }
    sort(same, next);
    same[0] = with_row(first, row_of(same[0]));
  }

 private:
  static constexpr std::size_t kFewElements = 48;  // are sorted faster by comparing
  static constexpr std::size_t kFarAhead = 64;     // elements that are passed over take little time

  void sort(std::span<Element> group, unsigned level) {
    if (group.size() < kFewElements) {
      std::sort(group.begin(), group.end(), is_less);
    } else {
      sort_elements(group);
    }
    settle_ties(group, level);
  }

  void settle_ties(std::span<Element> group, unsigned level) {
    const auto ties = [&](std::size_t i) { return i + 1 < group.size() && is_same_chunk(group[i], group[i + 1]); };
    const auto has_tie = [&](std::size_t i) { return ties(i) || (i > 0 && i < group.size() && ties(i - 1)); };
    std::size_t looked_at = 0;
    for (std::size_t begin = 0; begin < group.size();) {
      for (; looked_at < begin + kFarAhead; ++looked_at) {
        if (has_tie(looked_at + kFarAhead)) texts_.fetch_place(row_of(group[looked_at + kFarAhead]));
        if (has_tie(looked_at)) texts_.fetch(row_of(group[looked_at]));
      }
      std::size_t end = begin + 1;
      while (ties(end - 1)) ++end;
      if (end - begin > 1) settle(group.subspan(begin, end - begin), level);
      begin = end;
      looked_at = std::max(looked_at, begin);
    }
  }

  void fetch_ahead(std::span<const Element> elements, std::size_t i) const {
    if (i + 2 * kAhead < elements.size()) texts_.fetch_place(row_of(elements[i + 2 * kAhead]));
    if (i + kAhead < elements.size()) texts_.fetch(row_of(elements[i + kAhead]));
  }

  bool are_same_texts(std::span<const Element> same) const {
    const std::string_view first = texts_.text(row_of(same[0]));
    for (std::size_t i = 1; i < same.size(); ++i) {
      fetch_ahead(same, i);
      if (texts_.text(row_of(same[i])) != first) return false;
    }
    return true;
  }

  // The first one in which two of them differ, or a lower one: of many that differ soon not all are looked at.
  unsigned next_level(std::span<const Element> same, unsigned level) const {
    const std::size_t from = order_.chunk_begin(level + 1);
    std::size_t common = common_of(same.first(std::min(same.size(), kFewElements)), SIZE_MAX, from);
    if (common >= from + kChunkBytes) common = common_of(same, common, from);
    const std::size_t first = (std::max(common, from) - order_.chunk_begin(0)) / kChunkBytes;
    const auto most = static_cast<unsigned>(std::min<std::size_t>(first, kLevelMax + 1));
    return order_.level_to_stop(texts_.text(row_of(same[0])), level + 1, most, has_zeros_);
  }

  // Bytes in which they all agree, of `most`; `from` are known to be.
  std::size_t common_of(std::span<const Element> same, std::size_t most, std::size_t from) const {
    const std::string_view first = texts_.text(row_of(same[0]));
    std::size_t common = std::min(first.size(), most);
    for (std::size_t i = 1; i < same.size() && common > from; ++i) {
      fetch_ahead(same, i);
      common = std::min(common, common_bytes(first.substr(0, common), texts_.text(row_of(same[i])), from));
    }
    return common;
  }

  // Elements do not tell them apart. tie: what those get whose text is not that of the one before; `from` bytes are
  // known to be common.
  void sort_by_texts(std::span<Element> same, const Element& tie, std::size_t from) {
    const Element first = same[0];
    const auto compare = [&](const Element& a, const Element& b) {
      const std::string_view x = texts_.text(row_of(a)), y = texts_.text(row_of(b));
      return order_.compare_behind(x, y, common_bytes(x, y, from));
    };
    std::sort(same.begin(), same.end(), [&](const Element& a, const Element& b) {
      const int by_key = compare(a, b);
      return by_key != 0 ? by_key < 0 : row_of(a) < row_of(b);
    });
    for (std::size_t i = same.size() - 1; i > 0; --i) {
      const bool is_same = compare(same[i - 1], same[i]) == 0;
      same[i] = is_same ? same_key(same[i]) : with_row(tie, row_of(same[i]));
    }
    same[0] = with_row(first, row_of(same[0]));
  }

  static Element same_key(const Element& element) {
    Element same{};
    return with_row(with_level(same, kSameKey), row_of(element));
  }

  const Order& order_;
  const Texts& texts_;
  const bool has_zeros_;
};

}  // namespace pif::sort
