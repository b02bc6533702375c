// How words are put together from fields, and who does it, with the best instructions that the machine has.
#pragma once

#include "pif/matrix/transpose.h"

namespace pif::matrix {

// The bits of one part in one word: at most 32 bits, so that they are in one word wherever they begin.
struct Field {
  std::uint32_t part = 0;
  std::uint16_t within = 0;  // bits of the byte that come before it
  std::uint16_t bits = 0;
  std::uint64_t offset = 0;  // byte of the part, counted from the beginning of the pattern
  std::uint64_t places = 0;  // in the word, whose bits are in the order of elements, perhaps from the top
};

// Which bits of a field move by 32, 16, .. 1.
struct Moves {
  std::uint64_t by[6] = {};
};

// A pattern of words; every part has a whole number of bytes in it.
struct WeavePlan {
  const Field* fields = nullptr;
  const Moves* moves = nullptr;               // of each field
  const std::uint32_t* field_ends = nullptr;  // of each word, in `fields`
  std::uint64_t words = 0;
  const std::uint64_t* part_bytes = nullptr;  // of each part, in a pattern
  std::uint64_t parts = 0;
  bool msb = false;  // words are stored with their highest byte first
  // Two, four or eight parts have the same places in every word, and whole bytes of each of them: as many fields as
  // parts.
  bool is_even = false;
};

// `words` words of one row. at: where each part begins; moved on by the patterns that are done.
void weave_row(const WeavePlan& plan, const std::byte** at, std::uint64_t words, std::byte* out);

}  // namespace pif::matrix
