#include "directory/striping.h"

#include <fmt/format.h>

#include <unordered_set>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/parity/layout.h"
#include "pif/wire/convert.h"

namespace pif::server {
namespace {

Status check_nodes(const proto::Striping& striping) {
  std::unordered_set<std::uint32_t> seen;
  for (const std::uint32_t node : striping.nodes()) {
    if (!seen.insert(node).second)
      return fail(Code::kInvalid, fmt::format("node {} is named twice: each may be there once", node));
  }
  return striping.nodes_size() > 0 ? check_width(striping.width(), striping.nodes_size()) : Status();
}

// The width that files have, or without one the smallest that they can have.
std::uint64_t width_of(const proto::Striping& striping, std::uint32_t bevy) {
  if (striping.nodes_size() > 0) return static_cast<std::uint64_t>(striping.nodes_size());
  if (striping.width() > 0) return striping.width();
  return bevy > 0 ? 2 * std::uint64_t{bevy} : 1;
}

}  // namespace

bool says_nothing(const proto::Striping& striping) {
  return !striping.has_format() && striping.width() == 0 && striping.nodes_size() == 0 && !striping.has_bevy();
}

Status check_width(std::uint64_t width, int nodes) {
  if (width == 0 || width == static_cast<std::uint64_t>(nodes)) return {};
  return fail(Code::kInvalid,
              fmt::format("a width of {} with {} nodes named: leave one out, or make them agree", width, nodes));
}

Result<std::vector<std::uint32_t>> equal_bevies(std::uint32_t bevy, std::uint32_t width) {
  PIF_ASSERT(width <= kWidthMax, width);
  if (bevy == 0) return std::vector<std::uint32_t>();
  if (bevy < 2) return fail(Code::kInvalid, "a bevy has at least 2 LFSs");
  if (width % (std::uint64_t{bevy} * 2) != 0) {
    return fail(Code::kInvalid, fmt::format("bevies of {} need a width that is a multiple of {}, not {}", bevy,
                                            std::uint64_t{bevy} * 2, width));
  }
  return std::vector<std::uint32_t>(width / bevy, bevy);
}

Status check_striping(const proto::Striping& striping, std::uint32_t default_bevy) {
  if (striping.has_format()) PIF_TRY(wire::format_of(striping.format()));
  PIF_TRY(check_nodes(striping));
  const std::uint32_t bevy = striping.has_bevy() ? striping.bevy() : default_bevy;
  const std::uint64_t width = width_of(striping, bevy);
  if (width > kWidthMax) {
    return fail(Code::kInvalid,
                fmt::format("a file would need {} LFSs, and has at most {}: ask for a smaller width, or "
                            "smaller bevies",
                            width, kWidthMax));
  }
  PIF_TRY_VALUE(auto bevies, equal_bevies(bevy, static_cast<std::uint32_t>(width)));
  PIF_TRY(parity::Layout::make(static_cast<std::uint32_t>(width), std::move(bevies)));
  return {};
}

}  // namespace pif::server
