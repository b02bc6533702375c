// Rows put together from parts: element j of a row is the next element of the part that it belongs to, as rows of an
// interleaved file have their elements from p LFSs after they were transposed there. Word by word of the result: what
// each part gives to it is a field of bits, which is spread to its places (PDEP, or Hacker's Delight 7-5). Many parts
// that are dealt round give many short fields to a word. They are woven in steps, through the cache: every b-th of them
// to one of b streams, and these to the row.
//
// Pure. Const calls from several threads are fine.
#pragma once

#include <functional>
#include <memory>

#include "pif/matrix/transpose.h"

namespace pif::matrix {

class Weave {
 public:
  using PartOf = std::function<std::uint32_t(std::uint64_t)>;

  // Rows of `elements` elements. element: a width that Element::is_width() allows. part_of(j): which of `parts` parts
  // element j < elements is of, in a pattern that repeats every `period` elements.
  Weave(Element element, std::uint64_t elements, std::uint32_t parts, std::uint64_t period, const PartOf& part_of);
  Weave(Weave&&) noexcept;  // moved from, it may only be destroyed
  ~Weave();

  // Bytes that a row takes: whole words.
  std::size_t row_room() const { return words_of_row() * sizeof(std::uint64_t); }
  // Row i < rows from its parts, of which part k begins at parts[k] + i * pitch; up to 7 bytes behind its end are read,
  // and need not be zero. Writes row_room() bytes for each row; the bits behind the last element are zero.
  void weave(std::span<const std::byte* const> parts, std::size_t pitch, std::uint64_t rows, Rows out) const;

 private:
  struct Plan;
  struct Split;
  struct Room;
  std::uint64_t words_of_row() const { return (elements_ + element_.per_word() - 1) / element_.per_word(); }
  bool is_msb() const { return element_.order == BitOrder::kMsb && element_.bits < 8; }
  void plan_word(std::uint64_t word, const PartOf& part_of);
  void plan_fields(std::uint32_t part, std::uint64_t places);
  void clear_padding(std::byte* row) const;
  void split(std::uint32_t streams, const PartOf& part_of);
  std::uint64_t unit_words() const;
  void make_room(Room& room) const;
  void weave_words(const std::byte** at, std::uint64_t words, std::byte* out, Room& room) const;

  Element element_;
  std::uint64_t elements_;
  std::uint32_t parts_;
  std::uint64_t period_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Split> split_;  // or this
};

}  // namespace pif::matrix
