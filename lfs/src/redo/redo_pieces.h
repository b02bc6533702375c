// The entry of the redo log that has only those bytes of its chunks that change (docs/FORMAT.md "Redo log"). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pif/component/component.h"
#include "pif/pattern/runs.h"

namespace pif::lfs {

// Which bytes of some chunks change. Thread-safety: none.
class ChangedBytes {
 public:
  explicit ChangedBytes(std::size_t bytes) : bytes_(bytes), words_((bytes + 63) / 64) {}

  // Bytes [offset, offset + size) change, perhaps once more. They are inside.
  void add(std::size_t offset, std::size_t size);
  // Stretches that change, as long as can be: the first at `from` or behind it; empty: there is none.
  Range next(std::size_t from) const;

 private:
  // The first byte at `from` or behind it that changes, or does not; the end if there is none.
  std::size_t find(std::size_t from, bool changes) const;

  const std::size_t bytes_;
  std::vector<std::uint64_t> words_;  // a bit for each byte
};

// The entry's data for chunks from first_chunk on, which are so now. Nothing: a whole image is hardly longer.
std::optional<std::vector<std::byte>> encode_changes(const component::Shape& shape, std::uint64_t first_chunk,
                                                     std::span<const std::byte> image, const ChangedBytes& changed);

// The content of such an entry. It points into the entry's data.
struct Changes {
  std::uint64_t bytes = 0;                   // of the chunks
  std::span<const std::byte> sums;           // 8 bytes for each chunk: that of a whole image of it
  std::optional<patterns::RunDecoder> runs;  // in the chunks' bytes; never nothing
  std::span<const std::byte> data;           // of all runs

  std::uint64_t sum(std::uint64_t chunk) const;  // counted from the first one
  // image: as many of the chunks' bytes as there are.
  void apply(std::span<std::byte> image) const;
};
// kCorrupt: data is not what encode_changes() gives.
[[nodiscard]] Result<Changes> decode_changes(std::span<const std::byte> data, std::uint32_t chunk_bytes);

}  // namespace pif::lfs
