#include "blocks.h"

#include <algorithm>
#include <utility>

#include "pif/base/assert.h"

namespace pif::mpi {
namespace {

constexpr std::size_t kBeforeEvery = 64;

}  // namespace

Blocks::Blocks(std::vector<pif_piece> pieces) : pieces_(std::move(pieces)) {
  PIF_ASSERT(!pieces_.empty());
  before_.reserve(pieces_.size() / kBeforeEvery + 1);
  std::int64_t behind = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const pif_piece& piece = pieces_[i];
    PIF_ASSERT(piece.offset >= 0 && piece.bytes > 0, piece.offset, piece.bytes);
    if (i % kBeforeEvery == 0) before_.push_back(bytes_);
    is_ascending_ = is_ascending_ && piece.offset >= behind;
    behind = piece.offset + static_cast<std::int64_t>(piece.bytes);
    end_ = std::max(end_, behind);
    bytes_ += piece.bytes;
  }
}

std::int64_t Blocks::offset_of(std::uint64_t n) const {
  PIF_ASSERT(n < bytes_, n, bytes_);
  const auto behind = std::upper_bound(before_.begin(), before_.end(), n);
  const auto near = static_cast<std::size_t>(behind - before_.begin() - 1);
  n -= before_[near];
  const pif_piece* piece = &pieces_[near * kBeforeEvery];
  for (; n >= piece->bytes; ++piece) n -= piece->bytes;
  return piece->offset + static_cast<std::int64_t>(n);
}

}  // namespace pif::mpi
