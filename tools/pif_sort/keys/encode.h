// The place of a text in the orders of sort(1), as bytes that compare (memcmp, a prefix first) as sort(1) of coreutils
// 9.1 compares the texts with LC_ALL=C. Every function appends to `out`. No encoding is the beginning of another one by
// the same function, so that those of several keys can follow one another. Two things of that program are not here: it
// skips the byte 0x80 between digits, as if it were a separator of thousands, and orders equal NaNs by chance.
//
// The sorter relies on this, where the key of a record is one encoding by add_number, add_general_number,
// add_human_number or add_month, or the complement of one (a reversed key):
//   1. A key of more than kWholeBytes bytes has a byte other than zero at position kWholeBytes - 1.
//   2. Different keys differ in their first kWholeBytes bytes, with zeros where they are shorter, if one of them has a
//      zero at position kWholeBytes - 1. So that zero says: nothing of the key is behind these bytes.
// 2 follows from 1: of two keys that are no longer than that neither is the beginning of the other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pif::sort {

inline constexpr std::size_t kWholeBytes = 11;

// -n: blanks, "-", digits, ".", digits, as many of these as there are; else 0. A byte has the sign and how many whole
// digits there are; then come the digits, two in a byte, without zeros at their end. A number of up to 18 digits, from
// the first that is no leading zero (or the point) to the last that is not zero, has kWholeBytes bytes at most.
void add_number(std::string_view text, std::string& out);
// -g: the longest beginning of the text that strtold(3) takes, in the "C" locale. Texts without one come first, then
// NaNs by their bits, then numbers; 0 and -0 are equal. Always the same number of bytes, less than kWholeBytes where
// a long double has the 64 bits of the x87.
void add_general_number(std::string_view text, std::string& out);
// -h: first by sign and suffix (none, K or k, M, G, T, P, E, Z, Y; that of 0 does not count), then as -n. One byte more
// than that has.
void add_human_number(std::string_view text, std::string& out);
// -M: blanks, then the first three letters of a month's English name in any case; anything else comes before JAN. One
// byte.
void add_month(std::string_view text, std::string& out);
// -V: versions, whose digits count as numbers. A file suffix, (\.[A-Za-z~][A-Za-z0-9~]*)* at the end, counts only where
// all else is equal. Empty texts come first, then ".", "..", and others that begin with a dot.
void add_version(std::string_view text, std::string& out);

// Complements the bytes of `out` from `from` on: that turns an order around.
void complement(std::string& out, std::size_t from);

}  // namespace pif::sort
