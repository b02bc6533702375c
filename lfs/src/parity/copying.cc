#include "parity/copying.h"

#include <fmt/format.h>

#include "parity/copied_rows.h"
#include "store/published_tickets.h"

namespace pif::lfs {

Copying::Copying(Keeping& keeping, Gathering& gathering, Covering& covering)
    : context_(keeping.context), gathering_(gathering), covering_(covering) {
  context_.operations.bind<&Copying::copy_rows>(*this);
}

Status Copying::check(const Request& request, const Keeper& keeper) {
  const auto& asked = request.envelope().copy_rows();
  PIF_TRY(context_.check_takes(asked.shape()));
  PIF_TRY(context_.check_view(asked.view()));
  if (asked.generation() != 0) {
    if (!asked.has_base()) return fail(Code::kInvalid, "CopyRows lacks `base`, as Reserve gave it");
    PIF_TRY(check_file_length(keeper.format(), file_length_of(asked.base())));
    PIF_TRY(check_generation(asked.generation()));
  }
  if (asked.index() >= keeper.layout.width())
    return fail(Code::kInvalid, fmt::format("file {} has no LFS {}", asked.shape().file(), asked.index()));
  const auto node = asked.shape().layout().nodes(static_cast<int>(asked.index()));
  if (!context_.view.is_absent(node))
    return fail(Code::kInvalid, fmt::format("LFS {} of file {} is not absent: it takes its rows itself", asked.index(),
                                            asked.shape().file()));
  return context_.check_space(request.packet.body.size());
}

Status Copying::copy_rows(const Request& request, const proto::CopyRows& asked) {
  PIF_TRY_VALUE(const Keeper keeper, keeper_of(context_, asked.shape()));
  PIF_TRY(check(request, keeper));
  PIF_TRY_VALUE(const auto rows, take_copied_rows(keeper, asked, request.packet.body.span()));
  if (asked.generation() == 0) return gathering_.copy(request, keeper, rows);
  return covering_.copy(request, keeper, *rows);
}

}  // namespace pif::lfs
