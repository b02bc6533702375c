#include "pif/matrix/transpose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "tile.h"

namespace pif::matrix {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array kAll = {Instructions::kPortable, Instructions::kAvx2, Instructions::kAvx512};

#ifdef PIF_MATRIX_X86
std::size_t count_available() {
  if (!__builtin_cpu_supports("avx2")) return 1;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") ? 3 : 2;
}

TileFunction function_of(Instructions instructions) {
  if (instructions == Instructions::kAvx512) return transpose_tile_avx512;
  return instructions == Instructions::kAvx2 ? transpose_tile_avx2 : transpose_tile_portable;
}
#else
std::size_t count_available() { return 1; }
TileFunction function_of(Instructions) { return transpose_tile_portable; }
#endif

constexpr std::uint64_t kTilesAcross =
    4;  // side by side, before the tiles below them: longer pieces of few rows, not lines of many
constexpr std::uint64_t kCacheBytes = 256u << 10;                         // a result that is larger goes past the cache
constexpr std::uint64_t kStagedBytes = 8u << 20;                          // a matrix that is larger comes from memory
constexpr std::size_t kTileBytesMax = 8 * kTileRowBytes * kTileRowBytes;  // of one of bits

// What went past the cache is seen by others before what is written after it.
void finish_stores() {
#ifdef PIF_MATRIX_X86
  __builtin_ia32_sfence();
#endif
}

// The tiles of a matrix that is at most kTilesAcross of them wide.
class Tiles {
 public:
  Tiles(ConstRows in, std::uint64_t rows, std::uint64_t columns, RowPlaces out, Element element,
        Instructions instructions)
      : in_(in),
        rows_(rows),
        columns_(columns),
        out_(out),
        element_(element),
        size_(tile_elements(element)),
        transpose_tile_(function_of(instructions)) {}

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
        transpose_tile_(tile);
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
      transpose_tile_(tile_of(in, height, &out_.begins[column], offset));
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
    transpose_tile_(tile);
    for (std::uint64_t c = 0; c < out.size(); ++c) std::memcpy(out[c] + offset, places[c], out_bytes);
  }

  const ConstRows in_;
  const std::uint64_t rows_, columns_;
  const RowPlaces out_;
  const Element element_;
  const std::uint64_t size_;
  const TileFunction transpose_tile_;
  bool past_cache_ = false;
};

// Room for two bands of tiles, if the matrix comes from memory.
class Stage {
 public:
  Stage(std::uint64_t result_bytes, Element element) {
    if (result_bytes <= kStagedBytes) return;
    const std::size_t bytes = 2 * kTilesAcross * tile_elements(element) * kTileRowBytes;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes + kTileRowBytes);
    const std::size_t skip = -reinterpret_cast<std::uintptr_t>(memory_.get()) % kTileRowBytes;
    bytes_ = {memory_.get() + skip, bytes};
  }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::span<std::byte> bytes_;
};

// Stretches of columns that are kTilesAcross tiles wide; places_of(first, count): where the rows go that become of one.
template <typename F>
void transpose_stretches(ConstRows in, std::uint64_t rows, std::uint64_t columns, Element element,
                         Instructions instructions, const F& places_of) {
  const std::uint64_t bytes = columns * element.bytes_of(rows), most = kTilesAcross * tile_elements(element);
  const Stage stage(bytes, element);
  for (std::uint64_t first = 0; first < columns; first += most) {
    const std::uint64_t count = std::min(most, columns - first);
    Tiles({in.base + element.bytes_of(first), in.pitch}, rows, count, places_of(first, count), element, instructions)
        .run(bytes > kCacheBytes, stage.bytes());
  }
  finish_stores();
}

}  // namespace

std::span<const Instructions> available_instructions() {
  static const std::size_t kCount = count_available();
  return std::span(kAll).first(kCount);
}

const char* name_of(Instructions instructions) {
  switch (instructions) {
    case Instructions::kPortable: return "portable";
    case Instructions::kAvx2: return "AVX2";
    case Instructions::kAvx512: return "AVX-512";
  }
  return "unknown";
}

void transpose(ConstRows in, std::uint64_t rows, std::uint64_t columns, RowPlaces out, Element element,
               Instructions instructions) {
  transpose_stretches(in, rows, columns, element, instructions, [&](std::uint64_t first, std::uint64_t count) {
    return RowPlaces{out.begins.subspan(first, count), out.offset};
  });
}

void transpose(ConstRows in, std::uint64_t rows, std::uint64_t columns, Rows out, Element element,
               Instructions instructions) {
  std::vector<std::byte*> places;
  transpose_stretches(in, rows, columns, element, instructions, [&](std::uint64_t first, std::uint64_t count) {
    places.resize(count);
    for (std::uint64_t c = 0; c < count; ++c) places[c] = out.base + (first + c) * out.pitch;
    return RowPlaces{places, 0};
  });
}

void transpose(ConstRows in, std::uint64_t rows, std::uint64_t columns, Rows out, Element element) {
  transpose(in, rows, columns, out, element, available_instructions().back());
}

}  // namespace pif::matrix
