// Numbers as people type them. Each function is made to be the first transformation of an option that is a number: the
// parsers behind it take signs, blanks, other bases and numbers that do not fit for something. Pure.
#pragma once

#include <string>

namespace pif {

// Digits alone, below 2^64, come back without zeros in front: 0100 means a hundred to whoever types it, and 64 to
// strtol. Anything else comes back as words that are no number, and say so.
std::string whole_number(std::string text);

// The same of digits with a unit behind them, or none: "50MiB", "50M", "50mb" and "52428800" are 52428800. Units are
// powers of 1024: b, k, m, g, t, p, e.
std::string byte_count(std::string text);

}  // namespace pif
