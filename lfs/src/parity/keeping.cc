#include "parity/keeping.h"

#include <fmt/format.h>

#include "pif/base/limits.h"

namespace pif::lfs {

Result<Keeper> keeper_of(const LfsContext& context, const proto::ComponentShape& shape) {
  PIF_TRY(context.check_shape(shape, FileId(shape.file())));
  if (!keeps_parity(shape))
    return fail(Code::kInvalid, fmt::format("file {} is one whose LFSs keep no parity", shape.file()));
  PIF_TRY_VALUE(const auto made, shape_of(shape));
  PIF_TRY_VALUE(const auto layout, layout_of(shape.layout()));
  return Keeper::of(made, layout, shape.index());
}

std::vector<bool> absent_members(const LfsContext& context, const Keeper& keeper, const proto::ComponentShape& shape) {
  std::vector<bool> out;
  for (const LfsIndex lfs : keeper.members.lfs)
    out.push_back(context.view.is_absent(shape.layout().nodes(static_cast<int>(lfs))));
  return out;
}

Status check_file_length(const Format& format, const FileLength& file_length) {
  if (file_length.records > kFileBytesMax || file_length.bytes > kFileBytesMax)
    return fail(Code::kTooLarge, fmt::format("a file of {} records, {} bytes", file_length.records, file_length.bytes));
  if (!format.is_fixed() || is_fixed_file_length(format.record_length, file_length)) return {};
  return fail(Code::kInvalid, fmt::format("a file of {} records of {} bytes cannot have {} bytes", file_length.records,
                                          format.record_length, file_length.bytes));
}

}  // namespace pif::lfs
