#include "pif/matrix/transpose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include <hwy/cache_control.h>

#include "tile.h"

namespace pif::matrix {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kTilesAcross =
    4;  // side by side, before the tiles below them: longer pieces of few rows, not lines of many
constexpr std::uint64_t kCacheBytes = 256u << 10;                         // a result that is larger goes past the cache
constexpr std::uint64_t kStagedBytes = 8u << 20;                          // a matrix that is larger comes from memory
constexpr std::size_t kTileBytesMax = 8 * kTileRowBytes * kTileRowBytes;  // of one of bits
constexpr std::size_t kStageBytesMax = 2 * kTilesAcross * kTileBytesMax;  // two bands, where the matrix is from memory

// The tiles of a matrix that is at most kTilesAcross of them wide.
class Tiles {
 public:
  Tiles(ConstRows in, std::uint64_t rows, std::uint64_t columns, RowPlaces out, Element element)
      : in_(in), rows_(rows), columns_(columns), out_(out), element_(element), size_(tile_elements(element)) {}

  // stage: two bands of kTilesAcross tiles, or nothing.
  void run(bool past_cache, std::span<std::byte> stage) {
    const auto is_line = [this](const std::byte* begin) {
      return (reinterpret_cast<std::uintptr_t>(begin) + out_.offset) % kTileRowBytes == 0;
    };
    past_cache_ = past_cache && std::all_of(out_.begins.begin(), out_.begins.end(), is_line);
    const std::uint64_t whole = stage.empty() ? 0 : rows_ / size_ * size_;
    if (whole > 0) run_staged(whole, stage);
    for (std::uint64_t row = whole; row < rows_; row += size_) {
      for (std::uint64_t column = 0; column < columns_; column += size_) transpose_at(row, column);
    }
  }

 private:
  // Bands of whole tiles: each is copied while the one above it is put out.
  void run_staged(std::uint64_t rows, std::span<std::byte> stage) {
    const auto across = static_cast<std::uint32_t>(columns_ / size_);
    const std::size_t half = stage.size() / 2;
    const auto band_at = [&](std::uint64_t row) {
      return Fetch{in_.base + row * in_.pitch, in_.pitch, stage.data() + row / size_ % 2 * half, across,
                   static_cast<std::uint32_t>(size_)};
    };
    if (across > 0) copy_band(band_at(0));
    for (std::uint64_t row = 0; row < rows; row += size_) {
      Fetch next = band_at(row + size_);
      for (std::uint32_t i = 0; i < across; ++i) {
        const std::byte* const in = band_at(row).to + i * size_ * kTileRowBytes;
        Tile tile = tile_of({in, kTileRowBytes}, size_, &out_.begins[i * size_], out_.offset + element_.bytes_of(row));
        tile.to_next = size_ * kTileRowBytes;
        if (row + size_ < rows) tile.fetch = &next;
        transpose_tile(tile);
      }
      if (across * size_ < columns_) transpose_at(row, across * size_);
    }
  }

  static void copy_band(const Fetch& band) {
    for (std::uint32_t row = 0; row < band.height; ++row) {
      const std::byte* const from = band.from + row * band.pitch;
      for (std::uint32_t i = 0; i < band.across; ++i)
        std::memcpy(band.to + (std::size_t{i} * band.height + row) * kTileRowBytes, from + i * kTileRowBytes,
                    kTileRowBytes);
    }
  }

  void transpose_at(std::uint64_t row, std::uint64_t column) {
    const std::uint64_t height = std::min(size_, rows_ - row), width = std::min(size_, columns_ - column);
    const ConstRows in{in_.base + row * in_.pitch + element_.bytes_of(column), in_.pitch};
    const std::size_t offset = out_.offset + element_.bytes_of(row);
    if (height == size_ && width == size_) {
      transpose_tile(tile_of(in, height, &out_.begins[column], offset));
    } else {
      transpose_edge(in, height, out_.begins.subspan(column, width), offset);
    }
  }

  Tile tile_of(ConstRows in, std::uint64_t height, std::byte* const* out, std::size_t offset) const {
    const std::uint32_t flip = element_.order == BitOrder::kMsb ? element_.per_byte() - 1 : 0;
    const auto blocks = static_cast<std::uint32_t>((height + element_.per_word() - 1) / element_.per_word());
    return {in, kTileRowBytes, blocks, out, offset, element_.bits, flip, nullptr, past_cache_};
  }

  // A tile that is not all there goes through copies that are.
  void transpose_edge(ConstRows in, std::uint64_t height, std::span<std::byte* const> out, std::size_t offset) {
    alignas(64) std::array<std::byte, kTileBytesMax> from{}, to;
    std::array<std::byte*, 8 * kTileRowBytes> places;
    for (std::uint64_t i = 0; i < size_; ++i) places[i] = to.data() + i * kTileRowBytes;
    const std::size_t in_bytes = element_.bytes_of(out.size()), out_bytes = element_.bytes_of(height);
    for (std::uint64_t r = 0; r < height; ++r)
      std::memcpy(from.data() + r * kTileRowBytes, in.base + r * in.pitch, in_bytes);
    Tile tile = tile_of({from.data(), kTileRowBytes}, height, places.data(), 0);
    tile.past_cache = false;
    transpose_tile(tile);
    for (std::uint64_t c = 0; c < out.size(); ++c) std::memcpy(out[c] + offset, places[c], out_bytes);
  }

  const ConstRows in_;
  const std::uint64_t rows_, columns_;
  const RowPlaces out_;
  const Element element_;
  const std::uint64_t size_;
  bool past_cache_ = false;
};

// Stretches of columns that are kTilesAcross tiles wide; places_of(first, count): where the rows go that become of one.
template <typename F>
void transpose_stretches(ConstRows in, std::uint64_t rows, std::uint64_t columns, Element element, const F& places_of) {
  const std::uint64_t bytes = columns * element.bytes_of(rows), most = kTilesAcross * tile_elements(element);
  alignas(64) std::array<std::byte, kStageBytesMax> stage;
  const std::span<std::byte> bands(stage.data(), bytes > kStagedBytes ? 2 * most * kTileRowBytes : 0);
  for (std::uint64_t first = 0; first < columns; first += most) {
    const std::uint64_t count = std::min(most, columns - first);
    Tiles({in.base + element.bytes_of(first), in.pitch}, rows, count, places_of(first, count), element)
        .run(bytes > kCacheBytes, bands);
  }
  hwy::FlushStream();  // what went past the cache is seen by others before what is written after it
}

}  // namespace

void transpose(ConstRows in, std::uint64_t rows, std::uint64_t columns, RowPlaces out, Element element) {
  transpose_stretches(in, rows, columns, element, [&](std::uint64_t first, std::uint64_t count) {
    return RowPlaces{out.begins.subspan(first, count), out.offset};
  });
}

void transpose(ConstRows in, std::uint64_t rows, std::uint64_t columns, Rows out, Element element) {
  std::vector<std::byte*> places;
  transpose_stretches(in, rows, columns, element, [&](std::uint64_t first, std::uint64_t count) {
    places.resize(count);
    for (std::uint64_t c = 0; c < count; ++c) places[c] = out.base + (first + c) * out.pitch;
    return RowPlaces{places, 0};
  });
}

}  // namespace pif::matrix
