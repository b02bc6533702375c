// Where the pieces of a request come from: a turn at a time, so that a request may have any number of them, and takes
// so much memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pieces/piece_split.h"
#include "pif/client/client.h"
#include "pif/component/extents.h"
#include "pif/pattern/zip.h"

namespace pif::client {

// Pieces of one turn. A read that is waited for has more pieces in a turn, for then each window has more of them; of
// started requests many may be under way.
inline constexpr std::size_t kPiecesAtOnce = 32768;
inline constexpr std::size_t kPiecesReadAtOnce = 262144;
inline constexpr std::uint64_t kBytesAtOnce = 32u << 20;

// Adds the next turn's pieces; none: there are no more. Returns the end of that of their bytes which is last in the
// file.
template <typename Extent>
using Fill = std::function<std::uint64_t(PieceSplit<Extent>&)>;

template <typename Extent>
bool has_room(const PieceSplit<Extent>& pieces) {
  return pieces.count < pieces.count_max && pieces.bytes < kBytesAtOnce;
}
// The most bytes that a piece added to these may have; there is room.
template <typename Extent>
std::uint64_t bytes_max(const PieceSplit<Extent>& pieces) {
  return std::min(kBytesAtOnce, (pieces.count_max - pieces.count) * pieces.length);
}

// Both sides of a request, ready to be walked.
struct Walks {
  std::shared_ptr<const patterns::Compiled> file;
  std::shared_ptr<const patterns::Compiled> memory;
  std::uint64_t bytes = 0;

  // is_blocking: `wanted`, which may have millions of pieces, outlives this; else patterns that are not compiled are
  // copied. kInvalid, kTooLarge: of the patterns; memory that is not there.
  static Result<Walks> make(const File::Pieces& wanted, std::size_t memory_bytes, bool is_blocking);
  [[nodiscard]] Result<patterns::Zip> zip(const File::Pieces& wanted) const;
};

// The pieces of a walk. Those past file_end are left out, and so is all that comes behind the first of them.
template <typename Extent>
class WalkedPieces {
 public:
  using At = decltype(Extent::at);
  [[nodiscard]] static Result<Fill<Extent>> make(Walks walks, const File::Pieces& wanted, At memory,
                                                 std::uint64_t file_end) {
    const auto pieces = std::make_shared<WalkedPieces>(std::move(walks), memory, file_end);
    PIF_TRY_VALUE(pieces->zip_, pieces->walks_.zip(wanted));
    return Fill<Extent>([pieces](PieceSplit<Extent>& to) { return pieces->fill(to); });
  }
  WalkedPieces(Walks walks, At memory, std::uint64_t file_end)
      : walks_(std::move(walks)), memory_(memory), file_end_(file_end) {}

 private:
  std::uint64_t fill(PieceSplit<Extent>& to) {
    std::uint64_t end = 0;
    while (!is_short_ && has_room(to)) {
      const auto run = zip_->next_run(bytes_max(to), to.count_max - to.count);
      if (!run) break;
      end = std::max(end, add(to, *run));
    }
    return end;
  }

  // Returns where they end in the file.
  std::uint64_t add(PieceSplit<Extent>& to, const patterns::RunPair& run) {
    const auto offset = static_cast<std::uint64_t>(run.file_offset);
    const std::uint64_t last = offset + (run.count - 1) * static_cast<std::uint64_t>(run.file_stride);
    const std::uint64_t end = std::max(offset, last) + run.size;
    if (end <= file_end_) {
      to.add_run(offset, run.size, memory_ + run.memory_offset, run.count, run.file_stride, run.memory_stride);
      return end;
    }
    return add_short(to, run);
  }

  // One by one, up to the first that is past the file's end.
  std::uint64_t add_short(PieceSplit<Extent>& to, const patterns::RunPair& run) {
    std::uint64_t end = 0, offset = static_cast<std::uint64_t>(run.file_offset);
    std::int64_t in_memory = run.memory_offset;
    for (std::uint64_t i = 0; i < run.count && !is_short_; ++i) {
      const std::uint64_t there = offset >= file_end_ ? 0 : std::min(run.size, file_end_ - offset);
      is_short_ = there < run.size;
      to.add(offset, there, memory_ + in_memory);
      end = std::max(end, offset + there);
      offset += static_cast<std::uint64_t>(run.file_stride);
      in_memory += run.memory_stride;
    }
    return end;
  }

  const Walks walks_;
  std::optional<patterns::Zip> zip_;  // walks over walks_
  const At memory_;
  const std::uint64_t file_end_;
  bool is_short_ = false;
};

// Consecutive bytes of the file, from `offset` on.
template <typename Extent, typename Byte>
Fill<Extent> fill_from(std::uint64_t offset, std::span<Byte> memory) {
  return [offset, memory](PieceSplit<Extent>& to) mutable {
    while (!memory.empty() && has_room(to)) {
      const std::size_t size = std::min<std::uint64_t>(memory.size(), bytes_max(to));
      to.add(offset, size, memory.data());
      offset += size;
      memory = memory.subspan(size);
    }
    return offset;
  };
}

// Pieces of the byte view, in any order.
inline Fill<component::ExtentRun> fill_from_list(std::vector<component::Extent> list) {
  return [list = std::move(list), next = std::size_t{0}](PieceSplit<component::ExtentRun>& to) mutable {
    std::uint64_t end = 0;
    while (next < list.size() && has_room(to)) {
      component::Extent& piece = list[next];
      const std::size_t size = std::min<std::uint64_t>(piece.size, bytes_max(to));
      to.add(piece.offset, size, piece.at);
      end = std::max(end, piece.offset + size);
      piece = {piece.offset + size, piece.size - size, piece.at + size};
      if (piece.size == 0) ++next;
    }
    return end;
  };
}

}  // namespace pif::client
