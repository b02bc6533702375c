#include "runs/order.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <hwy/contrib/sort/vqsort.h>

#include "pif/base/assert.h"
#include "pif/tool/read_ahead.h"

namespace pif::sort {

std::size_t common_bytes(std::string_view a, std::string_view b, std::size_t from) {
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t at = std::min(from, size);
  for (std::uint64_t x = 0, y = 0; at + sizeof x <= size; at += sizeof x) {
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    if (x != y) return at + static_cast<std::size_t>(std::countr_zero(x ^ y)) / 8;
  }
  while (at < size && a[at] == b[at]) ++at;
  return at;
}

void sort_elements(std::span<Element> elements) {
  if (std::is_sorted(elements.begin(), elements.end(), is_less)) return;
  hwy::Sorter()(elements.data(), elements.size(), hwy::SortAscending());
}

namespace {

bool chunk_is_all(const KeyMaker& maker) { return maker.fixed_length() && *maker.fixed_length() <= kChunkBytes; }

}  // namespace

bool wants_levels(const KeyMaker& maker) { return maker.is_text() && !chunk_is_all(maker); }

void RunView::read_ahead(std::size_t begin, std::size_t end) const {
  PIF_ASSERT(!by_row && begin <= end && end <= elements.size(), by_row, begin, end);
  tool::read_ahead(std::as_bytes(elements.subspan(begin, end - begin)));
  if (ends == nullptr) return tool::read_ahead({records + begin * record_length, (end - begin) * record_length});
  tool::read_ahead(std::as_bytes(std::span(ends + begin, end - begin + 1)));
  tool::read_ahead({records + ends[begin], ends[end] - ends[begin]});
}

Order::Order(const KeyMaker& maker, const RecordNumbers& numbers)
    : maker_(&maker), numbers_(&numbers), chunk_is_all_(sort::chunk_is_all(maker)) {}

RecordNumber Order::number(const RunView& run, std::size_t i) const {
  return numbers_->number(run.source, row_of(run.elements[i]));
}

int Order::compare_keys(Bytes a, Bytes b) {
  if (maker_->is_text()) {
    const std::string_view x = maker_->text_of(a), y = maker_->text_of(b);
    return maker_->is_reversed() ? y.compare(x) : x.compare(y);
  }
  if (a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0)) return 0;
  (void)maker_->make_key(a, first_);  // it was made before, so it can be made
  (void)maker_->make_key(b, second_);
  return first_.compare(second_);
}

Element Order::chunk(std::string_view text, unsigned level, std::uint32_t row) const {
  const std::string& common = maker_->common();
  const int outside = level == 0 && !common.empty() ? text.compare(0, common.size(), common) : 0;
  text.remove_prefix(std::min(chunk_begin(level), text.size()));
  const Element element = outside < 0   ? lowest_element(row)
                          : outside > 0 ? highest_element(row)
                                        : element_of(text, row, level);
  return maker_->is_reversed() ? complement(element) : element;
}

Element Order::first_chunk(const RunView& run, std::size_t i) {
  const Element& element = run.elements[i];
  return level_of(element) == 0 ? element : chunk(text_of(run.record(i)), 0, row_of(element));
}

unsigned Order::level_to_stop(std::string_view text, unsigned level, unsigned most, bool has_zeros) const {
  while (has_zeros && level < most && text[chunk_begin(level + 1) - 1] != '\0') ++level;
  return has_zeros ? level : most;
}

int Order::compare_behind(std::string_view a, std::string_view b, std::size_t same) const {
  int order = 0;
  if (same < a.size() && same < b.size()) {
    order = static_cast<unsigned char>(a[same]) < static_cast<unsigned char>(b[same]) ? -1 : 1;
  } else if (a.size() != b.size()) {
    order = a.size() < b.size() ? -1 : 1;
  }
  return maker_->is_reversed() ? -order : order;
}

int Order::compare_behind_chunk(const RunView& a, std::size_t i, const RunView& b, std::size_t j) {
  return decides(a.elements[i]) ? 0 : compare_keys(a.record(i), b.record(j));
}

int Order::compare_keys(const RunView& a, std::size_t i, const RunView& b, std::size_t j) {
  const OffsetCode x = code_of(first_chunk(a, i)), y = code_of(first_chunk(b, j));
  return x == y ? compare_behind_chunk(a, i, b, j) : x < y ? -1 : 1;
}

bool Order::less(const RunView& a, std::size_t i, const RunView& b, std::size_t j) {
  const int by_key = compare_keys(a, i, b, j);
  return by_key != 0 ? by_key < 0 : is_lower(a, i, b, j);
}

}  // namespace pif::sort
