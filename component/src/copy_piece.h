// One short piece from memory to memory.
#pragma once

#include <cstddef>
#include <cstring>

namespace pif::component {

// Pieces are mostly short and of one length.
inline void copy_piece(std::byte* to, const std::byte* from, std::size_t size) {
  switch (size) {
    case 8: std::memcpy(to, from, 8); return;
    case 16: std::memcpy(to, from, 16); return;
    case 32: std::memcpy(to, from, 32); return;
    case 64: std::memcpy(to, from, 64); return;
    case 128: std::memcpy(to, from, 128); return;
    default: std::memcpy(to, from, size);
  }
}

}  // namespace pif::component
