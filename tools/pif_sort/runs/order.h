// The order of all records, whatever run they are in.
#pragma once

#include <string>

#include "keys/keys.h"
#include "runs/numbers.h"
#include "runs/run_view.h"

namespace pif::sort {

// Bytes that two texts have in common in front; `from` are known to be.
std::size_t common_bytes(std::string_view a, std::string_view b, std::size_t from);

// As numbers.
inline bool is_less(const Element& a, const Element& b) { return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo; }
// By that. Elements in order already cost one look.
void sort_elements(std::span<Element> elements);

// Whether elements of runs have levels: keys are text, and may be longer than a chunk.
bool wants_levels(const KeyMaker& maker);

// By sort key, ties by record number. Not thread-safe: it has memory for two keys.
class Order {
 public:
  // Both outlive it.
  Order(const KeyMaker& maker, const RecordNumbers& numbers);

  // Whether the first chunk is all that a key has.
  bool chunk_is_all() const { return chunk_is_all_; }
  // Whether those with this first chunk have one key.
  bool decides(const Element& chunk) const { return chunk_is_all_ || (maker_->is_value() && last_byte(chunk) == 0); }
  // Keys alone: negative, 0 or positive.
  int compare_keys(Bytes a, Bytes b);
  int compare_keys(const RunView& a, std::size_t i, const RunView& b, std::size_t j);
  // The same where the first chunks are known to be equal.
  int compare_behind_chunk(const RunView& a, std::size_t i, const RunView& b, std::size_t j);
  bool less(const RunView& a, std::size_t i, const RunView& b, std::size_t j);

  // Whether record i of run a has the lower number in the inputs.
  bool is_lower(const RunView& a, std::size_t i, const RunView& b, std::size_t j) const {
    return numbers_->is_lower(a.source, row_of(a.elements[i]), b.source, row_of(b.elements[j]));
  }
  // The number of record i of the run, in the inputs.
  RecordNumber number(const RunView& run, std::size_t i) const;
  // Its element with the first chunk of all.
  Element first_chunk(const RunView& run, std::size_t i);

  // Where a chunk begins in a text that begins as nearly all do (KeyMaker::common).
  std::size_t chunk_begin(std::size_t level) const { return maker_->common().size() + level * kChunkBytes; }
  // Whether texts with this code behind one another may still differ anywhere. They begin in another way than nearly
  // all: the first chunk only says whether they come before all these, or behind. Or there are texts with a byte 0
  // (has_zeros): the chunk does not say whether it is that, or no byte any more.
  bool is_unclear(const OffsetCode& code, bool has_zeros) const {
    const bool is_outside = !maker_->common().empty() && (code == kLowestCode || code == kHighestCode);
    return is_outside || (has_zeros && is_end(static_cast<unsigned>(code.low) & 0xff, code.level()));
  }
  // With levels: chunk `level` of the record's key, for that row.
  Element chunk(std::string_view text, unsigned level, std::uint32_t row) const;
  // Whether a key has no more behind its chunk `level`, which ends with this byte.
  bool is_end(unsigned last_byte, unsigned level) const {
    if (maker_->fixed_length()) return (level + 1) * kChunkBytes >= *maker_->fixed_length();
    return last_byte == (maker_->is_reversed() ? 0xffU : 0U);
  }
  // The first level from `level` on, but `most`, at which this text's code may be unclear because of its own byte 0.
  // Texts that agree there have that level: to know more of one than of others would order them wrongly.
  unsigned level_to_stop(std::string_view text, unsigned level, unsigned most, bool has_zeros) const;
  std::string_view text_of(Bytes record) const { return maker_->text_of(record); }
  // Texts that agree in `same` bytes and no more: negative, 0 or positive.
  int compare_behind(std::string_view a, std::string_view b, std::size_t same) const;

 private:
  const KeyMaker* maker_;
  const RecordNumbers* numbers_;
  bool chunk_is_all_;
  std::string first_, second_;
};

}  // namespace pif::sort
