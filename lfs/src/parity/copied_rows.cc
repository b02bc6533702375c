#include "parity/copied_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::lfs {
namespace {

// The rows that are meant: first, first + members, ... of a member.
Status place(const Keeper& keeper, const proto::CopyRows& asked, CopiedRows& out) {
  const auto& members = keeper.members.lfs;
  const auto found = std::find(members.begin(), members.end(), asked.index());
  if (found == members.end())
    return fail(Code::kInvalid, fmt::format("LFS {} of file {} keeps no parity of rows of its LFS {}", keeper.index,
                                            asked.shape().file(), asked.index()));
  out.member = static_cast<std::size_t>(found - members.begin());
  if (asked.count() == 0) return fail(Code::kInvalid, "a copy of no rows");
  const std::uint64_t rows_max = kFileBytesMax / keeper.layout.width();
  if (asked.first() > rows_max || asked.count() > (rows_max - asked.first()) / keeper.size() + 1)
    return fail(Code::kTooLarge,
                fmt::format("{} rows from row {} on are past what a file can hold", asked.count(), asked.first()));
  if (asked.first() % keeper.size() != keeper.members.offsets[out.member])
    return fail(Code::kInvalid, fmt::format("LFS {} of file {} does not keep the parity of row {} of its LFS {}",
                                            keeper.index, asked.shape().file(), asked.first(), asked.index()));
  const std::uint64_t first = asked.first() / keeper.size();
  out.parity_rows = {first, first + asked.count()};
  PIF_ASSERT(keeper.shape.row_of(out.member, first) == asked.first(), first, asked.first());
  return {};
}

}  // namespace

// The last row may be short: of a file that is being created only the gather knows how long it is, and looks.
Result<CopiedRowsPtr> take_copied_rows(const Keeper& keeper, const proto::CopyRows& asked,
                                       std::span<const std::byte> body) {
  auto out = std::make_shared<CopiedRows>();
  PIF_TRY(place(keeper, asked, *out));
  out->generation = asked.generation();
  if (keeper.format().is_fixed()) {
    const std::uint32_t length = keeper.format().record_length;
    PIF_TRY_VALUE(const std::uint32_t last, last_row_bytes(body.size(), asked.count(), length));
    out->lengths.assign(asked.count(), length);
    out->lengths.back() = last;
    out->bytes.assign(body.begin(), body.end());
  } else {
    PIF_TRY_VALUE(auto rows, parse_variable(body, asked.count()));
    out->lengths = std::move(rows.lengths);
    out->bytes.assign(rows.data.begin(), rows.data.end());
  }
  return CopiedRowsPtr(std::move(out));
}

Status add_copies(const Keeper& keeper, const CopiedRows& rows, component::ParityFiles& files, std::uint64_t& end,
                  std::vector<component::Frame>& written) {
  PIF_ASSERT(rows.lengths.size() == rows.parity_rows.size(), rows.lengths.size(), rows.parity_rows.size());
  std::vector<component::NewFrame> frames;
  std::span<const std::byte> rest = rows.bytes;
  for (std::size_t i = 0; i < rows.lengths.size(); ++i) {
    const RecordNumber record = keeper.record(rows.member, rows.parity_rows.begin + i);
    frames.push_back({record, rows.generation, 0, rest.first(rows.lengths[i])});
    rest = rest.subspan(rows.lengths[i]);
  }
  PIF_ASSERT(rest.empty(), rest.size());
  return add_frames(keeper.shape.file, files, frames, end, written);
}

}  // namespace pif::lfs
