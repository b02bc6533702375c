#include "direct/woven_rows.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/parity/period.h"
#include "pif/tool/parts.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kWovenBytesMax = 64u << 20;  // of rows that threads weave at once

}  // namespace

WovenRows::WovenRows(tool::Worker& worker, tool::Output& output, const parity::Layout& from, const DirectPlan& plan)
    : worker_(worker),
      output_(output),
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

// Threads have whole chunks of the component.
Status WovenRows::write(const Stripe& stripe) {
  const Range rows = output_.layout().rows(output_.index(), stripe.records);
  const Format& format = output_.format();
  const std::uint64_t unit = std::max<std::uint64_t>(component::chunk_bytes_for(format) / format.record_length, 1);
  const std::uint64_t most = std::min<std::uint64_t>(kWovenBytesMax / weave_.row_room(), worker_.threads());
  const tool::Parts parts(rows, {.most = most, .unit = unit});
  return worker_.run_tasks(parts.size(),
                           [&](std::size_t i) { return write_part(parts[i], parts[i].begin - rows.begin); });
}

// slot: of the first row. What is woven is still in the cache when it is written.
Status WovenRows::write_part(Range rows, std::uint64_t slot) {
  const std::size_t room = weave_.row_room();
  const std::uint64_t fit = std::max<std::uint64_t>(plan_.cached_bytes() / room, 1);
  std::vector<std::byte> woven(std::min(fit, rows.size()) * room);
  std::vector<const std::byte*> pieces(sources_);
  for (Row first = rows.begin; first < rows.end; first += fit) {
    const std::uint64_t count = std::min(fit, rows.end - first);
    for (std::uint32_t source = 0; source < sources_; ++source)
      pieces[source] = window_.bytes().data() + plan_.place_of(source, slot + (first - rows.begin));
    weave_.weave(pieces, plan_.pitch, count, {woven.data(), room});
    PIF_TRY(output_.sink().write_rows(first, count, {woven.data(), room}));
  }
  return {};
}

}  // namespace pif::transpose
