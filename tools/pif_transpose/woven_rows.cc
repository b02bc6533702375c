#include "woven_rows.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/parity/period.h"

namespace pif::transpose {

WovenRows::WovenRows(tool::Output& output, const parity::Layout& from, const DirectPlan& plan)
    : output_(output),
      plan_(plan),
      sources_(from.width()),
      weave_(plan.shape.element, plan.shape.row_count(), from.width(), parity::period_of(from),
             [&](std::uint64_t i) { return from.locate(plan.shape.rows.begin + i).lfs; }) {}

Status WovenRows::open() {
  PIF_TRY_VALUE(window_, tool::SharedMemory::make(plan_.window_bytes(sources_)));
  return {};
}

std::uint64_t WovenRows::slots_of(const Stripe& stripe) const {
  return output_.layout().rows(output_.index(), stripe.records).size();
}

Status WovenRows::accept(const Stripe& stripe, LfsIndex source, std::uint64_t offset, std::uint64_t bytes,
                         std::span<const std::byte> pieces) {
  const std::uint64_t slots = slots_of(stripe);
  const bool fits =
      source < sources_ && offset <= plan_.pitch && bytes <= plan_.pitch - offset && pieces.size() == slots * bytes;
  if (!fits)
    return fail(Code::kInvalid, fmt::format("{}: pieces came that are not of this matrix", output_.file().path));
  for (std::uint64_t slot = 0; slot < slots; ++slot)
    std::memcpy(window_.bytes().data() + plan_.place_of(source, slot) + offset, pieces.data() + slot * bytes, bytes);
  return {};
}

Status WovenRows::write(const Stripe& stripe) {
  const Range rows = output_.layout().rows(output_.index(), stripe.records);
  const std::uint64_t at_once = std::max<std::uint64_t>(plan_.cached_bytes() / weave_.row_room(), 1);
  for (std::uint64_t slot = 0; slot < rows.size(); slot += at_once)
    PIF_TRY(write_run(rows.begin + slot, slot, std::min(at_once, rows.size() - slot)));
  return {};
}

Status WovenRows::write_run(Row first, std::uint64_t slot, std::uint64_t count) {
  const std::size_t room = weave_.row_room();
  rows_.resize(std::max(rows_.size(), count * room));
  std::vector<const std::byte*> pieces(sources_);
  for (std::uint32_t source = 0; source < sources_; ++source)
    pieces[source] = window_.bytes().data() + plan_.place_of(source, slot);
  weave_.weave(pieces, plan_.pitch, count, {rows_.data(), room});
  return output_.sink().write_rows(first, count, {rows_.data(), room});
}

}  // namespace pif::transpose
