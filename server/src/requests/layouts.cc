#include "requests/layouts.h"

#include <fmt/format.h>

#include <numeric>
#include <unordered_set>

#include "pif/base/limits.h"
#include "pif/parity/layout.h"

namespace pif::server {
namespace {

// The nodes named, after checking each.
Result<std::vector<std::uint32_t>> named_nodes(const proto::Create& ask, const Registry& registry, Time now) {
  std::unordered_set<std::uint32_t> seen;
  for (const std::uint32_t id : ask.nodes()) {
    const Node* node = registry.find(id);
    if (node == nullptr) return fail(Code::kInvalid, fmt::format("there is no node {}: see `pif node list`", id));
    if (!seen.insert(id).second) {
      return fail(Code::kInvalid,
                  fmt::format("node {} ({}) is named twice: each may be there once", id, node->info.name()));
    }
    if (registry.state(*node, now) == kDown) {
      return fail(Code::kUnavailable, fmt::format("node {} ({}) is down", id, node->info.name()));
    }
  }
  return std::vector<std::uint32_t>(ask.nodes().begin(), ask.nodes().end());
}

// Fewer LFSs are up than needed: for the moment, or there are no more.
Error too_few(std::uint64_t needed, std::uint32_t available, std::size_t known, std::string text) {
  if (needed > known) return {Code::kInvalid, std::move(text), {}};
  return {Code::kUnavailable, fmt::format("{}; {} do not answer: see `pif status`", text, known - available), {}};
}

// The width without an explicit one: all that may be used, cut to what one bevy size for all needs.
Result<std::uint32_t> free_width(std::uint32_t bevy, std::uint32_t available, std::size_t known) {
  if (bevy == 0) return available;
  const std::uint64_t pair = std::uint64_t{bevy} * 2;
  if (pair > available)
    return fail(too_few(pair, available, known,
                        fmt::format("bevies of {} need at least {} LFSs, and {} may be used", bevy, pair, available)));
  return static_cast<std::uint32_t>(available / pair * pair);
}

// How wide the file is to be, from `available` nodes (those named, or all that are up) of all that are `known`.
Result<std::uint32_t> width_of(const proto::Create& ask, std::uint32_t bevy, std::uint32_t available,
                               std::size_t known) {
  std::uint64_t width = ask.width();
  if (width == 0 && ask.nodes_size() > 0) width = available;
  if (width == 0 && ask.bevies_size() > 0) {
    width = std::accumulate(ask.bevies().begin(), ask.bevies().end(), std::uint64_t{0});
  }
  if (width == 0) return free_width(bevy, available, known);
  if (ask.nodes_size() > 0 && width != available) {
    return fail(Code::kInvalid, fmt::format("a width of {} with {} nodes named: leave one out, or make them agree",
                                            width, ask.nodes_size()));
  }
  if (width > available)
    return fail(too_few(width, available, known,
                        fmt::format("a width of {} is more than the {} LFSs that are up", width, available)));
  return static_cast<std::uint32_t>(width);
}

Result<std::vector<std::uint32_t>> bevies_of(const proto::Create& ask, std::uint32_t bevy, std::uint32_t width) {
  std::vector<std::uint32_t> bevies(ask.bevies().begin(), ask.bevies().end());
  if (bevy == 0) return bevies;
  if (bevy < 2) return fail(Code::kInvalid, "a bevy has at least 2 LFSs");
  if (width % (std::uint64_t{bevy} * 2) != 0) {
    return fail(Code::kInvalid, fmt::format("bevies of {} need a width that is a multiple of {}, not {}", bevy,
                                            std::uint64_t{bevy} * 2, width));
  }
  bevies.assign(width / bevy, bevy);
  return bevies;
}

}  // namespace

Result<proto::FileLayout> choose_layout(const proto::Create& ask, const Registry& registry, std::uint32_t default_bevy,
                                        Time now) {
  if (ask.bevy() != 0 && ask.bevies_size() > 0) {
    return fail(Code::kInvalid, "give the bevies' sizes, or one size for all, not both");
  }
  const std::uint32_t bevy = ask.bevy() != 0 ? ask.bevy() : ask.bevies_size() > 0 ? 0 : default_bevy;
  std::vector<std::uint32_t> nodes;
  if (ask.nodes_size() > 0) {
    PIF_TRY_VALUE(nodes, named_nodes(ask, registry, now));
  } else {
    nodes = registry.usable(now);
    if (nodes.empty()) return fail(Code::kUnavailable, "no LFS is up: see `pif status`");
    if (nodes.size() > kWidthMax) nodes.resize(kWidthMax);
  }
  if (nodes.size() > kWidthMax) {
    return fail(Code::kInvalid,
                fmt::format("{} nodes are more than the {} that are possible", nodes.size(), kWidthMax));
  }
  PIF_TRY_VALUE(const std::uint32_t width,
                width_of(ask, bevy, static_cast<std::uint32_t>(nodes.size()), registry.size()));
  PIF_TRY_VALUE(std::vector<std::uint32_t> bevies, bevies_of(ask, bevy, width));
  PIF_TRY(parity::Layout::make(width, bevies));
  nodes.resize(width);
  proto::FileLayout layout;
  layout.mutable_nodes()->Add(nodes.begin(), nodes.end());
  layout.mutable_bevies()->Add(bevies.begin(), bevies.end());
  return layout;
}

}  // namespace pif::server
