// Short pieces from memory to memory.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Where pieces of one size go, and where they come from; bytes to the next.
struct CopyRun {
  std::byte* to;
  std::ptrdiff_t to_stride;
  const std::byte* from;
  std::ptrdiff_t from_stride;
};

template <std::size_t kSize>
void copy_pieces_of(CopyRun run, std::uint64_t count) {
  for (; count > 0; --count, run.to += run.to_stride, run.from += run.from_stride) std::memcpy(run.to, run.from, kSize);
}

inline void copy_pieces(CopyRun run, std::size_t size, std::uint64_t count) {
  switch (size) {
    case 8: return copy_pieces_of<8>(run, count);
    case 16: return copy_pieces_of<16>(run, count);
    case 32: return copy_pieces_of<32>(run, count);
    case 64: return copy_pieces_of<64>(run, count);
    case 128: return copy_pieces_of<128>(run, count);
    default:
      for (; count > 0; --count, run.to += run.to_stride, run.from += run.from_stride)
        std::memcpy(run.to, run.from, size);
  }
}

}  // namespace pif::component
