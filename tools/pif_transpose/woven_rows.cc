#include "woven_rows.h"

#include <algorithm>
#include <cstring>
#include <future>

#include <fmt/format.h>

#include "pif/parity/period.h"
#include "pif/tool/parallel.h"

namespace pif::transpose {
namespace {

constexpr std::uint64_t kWovenBytesMax = 32u << 20;  // rows that are woven at once, where one is not longer

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

// What a core has in its cache, for each thread; a thread has one row at least.
std::uint64_t WovenRows::rows_at_once() const {
  const std::uint64_t each = std::max<std::uint64_t>(plan_.cached_bytes() / weave_.row_room(), 1);
  return std::max<std::uint64_t>(std::min(each * worker_.threads(), kWovenBytesMax / weave_.row_room()), 1);
}

Status WovenRows::write(const Stripe& stripe) {
  const Range rows = output_.layout().rows(output_.index(), stripe.records);
  const std::uint64_t at_once = rows_at_once();
  const std::size_t room = weave_.row_room();
  for (auto& some : rows_) some.resize(std::min(at_once, rows.size()) * room);
  std::future<Status> writing;
  for (std::uint64_t slot = 0, which = 0; slot < rows.size(); slot += at_once, which = 1 - which) {
    const std::uint64_t count = std::min(at_once, rows.size() - slot);
    const std::byte* const woven = rows_[which].data();
    weave(slot, count, rows_[which].data());
    if (writing.valid()) PIF_TRY(writing.get());
    const auto write = [this, first = rows.begin + slot, count, woven, room] {
      return output_.sink().write_rows(first, count, {woven, room});
    };
    if (worker_.threads() == 1) {
      PIF_TRY(write());
    } else {
      writing = worker_.start(write);
    }
  }
  return writing.valid() ? writing.get() : Status();
}

void WovenRows::weave(std::uint64_t slot, std::uint64_t count, std::byte* to) const {
  const std::uint64_t parts = std::min<std::uint64_t>(count, worker_.threads());
  std::vector<const std::byte*> pieces(parts * sources_);  // each thread's, one behind another
  const auto begin_of = [&](std::uint64_t part) { return count * part / parts; };
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    const std::uint64_t source = i % sources_, first = slot + begin_of(i / sources_);
    pieces[i] = window_.bytes().data() + plan_.place_of(static_cast<std::uint32_t>(source), first);
  }
  tool::for_each_part(worker_.threads(), parts, [&](std::uint64_t i) {
    const auto own = std::span(pieces).subspan(i * sources_, sources_);
    const std::size_t room = weave_.row_room();
    weave_.weave(own, plan_.pitch, begin_of(i + 1) - begin_of(i), {to + begin_of(i) * room, room});
  });
}

}  // namespace pif::transpose
