// Transposing a part of a matrix in memory, on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pif/matrix/transpose.h"

namespace pif::transpose {

// The output of column c of the rows goes to places[c], as matrix::transpose() has it, on up to `threads` threads.
void transpose_columns(unsigned threads, matrix::ConstRows in, std::uint64_t rows, std::span<std::byte* const> places,
                       matrix::Element element);

}  // namespace pif::transpose
