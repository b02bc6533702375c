#include "pif/pattern/builders.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

namespace pif::patterns {
namespace {

using Wide = __int128;  // sums and products of 64 bits do not overflow it

Result<std::int64_t> offset_of(Wide value) {
  if (value < std::numeric_limits<std::int64_t>::min() || value > std::numeric_limits<std::int64_t>::max())
    return fail(Code::kTooLarge, "an offset of the request has more than 64 bits");
  return static_cast<std::int64_t>(value);
}

// One of the levels that a vector of batches becomes, and where it is.
struct Placed {
  Level level;
  std::int64_t begin = 0;  // of its first repetition, from offset 0 of the request
  std::int64_t end = 0;    // behind its last byte
};

std::int64_t origin_of(const Batch& batch, std::int64_t outer, const Placed* before) {
  switch (batch.origin) {
    case Origin::kAbsolute: return 0;
    case Origin::kPrevious: return before == nullptr ? outer : before->begin;
    case Origin::kPreviousEnd: break;
  }
  return before == nullptr ? outer : before->end;
}

struct PlacedLevels {
  std::vector<Level> levels;
  std::int64_t end = 0;  // behind the last byte
};

Result<PlacedLevels> place_all(std::span<const Batch> batches, std::int64_t outer, unsigned depth);

// outer: where the first repetition of the enclosing batch is.
Result<Placed> place(const Batch& batch, std::int64_t outer, const Placed* before, unsigned depth) {
  if (batch.quantity == 0) return fail(Code::kInvalid, "a batch has no repetitions");
  Placed out;
  PIF_TRY_VALUE(out.begin, offset_of(Wide{origin_of(batch, outer, before)} + batch.offset));
  PIF_TRY_VALUE(const std::int64_t offset, offset_of(Wide{out.begin} - outer));
  out.level = {offset, batch.quantity, batch.stride, batch.size, {}};
  Wide first_end = Wide{out.begin} + batch.size;
  if (!batch.inner.empty()) {
    PIF_TRY_VALUE(PlacedLevels inner, place_all(batch.inner, out.begin, depth + 1));
    out.level.inner = std::move(inner.levels);
    first_end = inner.end;
  }
  PIF_TRY_VALUE(out.end, offset_of(first_end + (Wide{batch.quantity} - 1) * batch.stride));
  return out;
}

Result<PlacedLevels> place_all(std::span<const Batch> batches, std::int64_t outer, unsigned depth) {
  if (depth > kDepthMax)
    return fail(Code::kTooLarge, fmt::format("the request has over {} batches inside one another", kDepthMax));
  PlacedLevels out;
  Placed before;
  for (const Batch& batch : batches) {
    PIF_TRY_VALUE(before, place(batch, outer, out.levels.empty() ? nullptr : &before, depth));
    out.levels.push_back(std::move(before.level));
  }
  out.end = before.end;
  return out;
}

}  // namespace

Pattern range(std::int64_t offset, std::uint64_t bytes) { return {{{offset, 1, 0, bytes, {}}}, {}}; }

Pattern simple_strided(std::int64_t offset, std::uint64_t record_size, std::int64_t stride, std::uint64_t quantity) {
  return {{{offset, quantity, stride, record_size, {}}}, {}};
}

Result<Pattern> nested_strided(std::int64_t offset, std::uint64_t record_size,
                               std::span<const Stride> innermost_first) {
  if (innermost_first.size() > kDepthMax)
    return fail(Code::kTooLarge, fmt::format("the request has over {} strides inside one another", kDepthMax));
  if (innermost_first.empty()) return range(offset, record_size);
  Level level{0, innermost_first[0].quantity, innermost_first[0].stride, record_size, {}};
  for (const Stride& outer : innermost_first.subspan(1)) {
    Level next{0, outer.quantity, outer.stride, 0, {}};
    next.inner.push_back(std::move(level));
    level = std::move(next);
  }
  level.offset = offset;
  Pattern out;
  out.levels.push_back(std::move(level));
  return out;
}

Result<Pattern> nested_batched(std::span<const Batch> batches) {
  PIF_TRY_VALUE(PlacedLevels placed, place_all(batches, 0, 1));
  return Pattern{std::move(placed.levels), {}};
}

Pattern list(std::span<const Piece> pieces) {
  Pattern out;
  out.levels.reserve(pieces.size());
  for (const Piece& piece : pieces) out.levels.push_back({piece.offset, 1, 0, piece.size, {}});
  return out;
}

Pattern partition(std::int64_t offset, std::uint64_t group_size, std::int64_t stride) {
  return {{{offset, 1, 0, group_size, {}}}, stride};
}

Pattern view(std::int64_t displacement, Pattern filetype) {
  Pattern out;
  out.extent = filetype.extent;
  out.levels.push_back({displacement, 1, 0, 0, std::move(filetype.levels)});
  return out;
}

Result<Pattern> member_of(std::uint64_t member, std::uint64_t members, std::uint64_t record_size,
                          std::uint64_t position) {
  if (member >= members)
    return fail(Code::kInvalid, fmt::format("member {} of {}: they count from 0", member, members));
  std::uint64_t first = 0, offset = 0, extent = 0;
  const bool overflows = __builtin_add_overflow(position, member, &first) ||
                         __builtin_mul_overflow(first, record_size, &offset) ||
                         __builtin_mul_overflow(members, record_size, &extent);
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (overflows || offset > kMax || extent > kMax)
    return fail(Code::kTooLarge, "the member's records are further away than offsets of 64 bits reach");
  return partition(static_cast<std::int64_t>(offset), record_size, static_cast<std::int64_t>(extent));
}

}  // namespace pif::patterns
