#include "requests/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "context/companions.h"
#include "directory/striping.h"
#include "pif/base/assert.h"
#include "pif/base/inheriting.h"
#include "pif/base/limits.h"
#include "pif/parity/layout.h"
#include "pif/wire/convert.h"
#include "pif/wire/values.h"

namespace pif::server {
namespace {

bool names_nodes(const proto::Create& ask) { return ask.nodes_size() > 0; }

Result<const Node*> named_node(std::uint32_t id, const Registry& registry) {
  if (const Node* node = registry.find(id)) return node;
  return fail(Code::kInvalid, fmt::format("there is no node {}: see `pif node list`", id));
}

// The nodes named, after checking each. or_absent: those too that others do without.
Result<std::vector<Candidate>> named_nodes(const proto::Create& ask, const Registry& registry, bool or_absent,
                                           Time now) {
  std::unordered_set<std::uint32_t> seen;
  std::vector<Candidate> nodes;
  for (const std::uint32_t id : ask.nodes()) {
    PIF_TRY_VALUE(const Node* const node, named_node(id, registry));
    if (!seen.insert(id).second) {
      return fail(Code::kInvalid,
                  fmt::format("node {} ({}) is named twice: each may be there once", id, node->info.name()));
    }
    const Candidate candidate = registry.candidate(*node, now);
    const std::uint32_t state = registry.state(*node, now);
    if ((state == kDown || state == kFailing) && !(or_absent && candidate.is_absent)) {
      return fail(Code::kUnavailable, fmt::format("node {} ({}) {}", id, node->info.name(),
                                                  state == kDown ? "is down" : "fails: " + node->info.trouble()));
    }
    nodes.push_back(candidate);
  }
  return nodes;
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
  const auto width = static_cast<std::uint32_t>(available / pair * pair);
  PIF_ASSERT(width >= pair && width <= available, width, pair, available);
  return width;
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
  if (ask.nodes_size() > 0) PIF_TRY(check_width(width, ask.nodes_size()));
  if (width > available)
    return fail(too_few(width, available, known,
                        fmt::format("a width of {} is more than the {} LFSs that are up", width, available)));
  return static_cast<std::uint32_t>(width);
}

// Of all of them; 0: there are none, or their sizes are given.
std::uint32_t size_of_bevies(const proto::Create& ask, std::uint32_t default_bevy) {
  if (ask.bevy() == kNoBevies || ask.bevies_size() > 0) return 0;
  return ask.bevy() != 0 ? ask.bevy() : default_bevy;
}

// Those that may be used for new files; without the full ones, if so many are not `needed`.
std::vector<Candidate> usable_nodes(const std::vector<Candidate>& known, std::size_t needed) {
  std::vector<Candidate> nodes;
  std::copy_if(known.begin(), known.end(), std::back_inserter(nodes),
               [](const Candidate& node) { return node.is_usable; });
  const auto full =
      std::stable_partition(nodes.begin(), nodes.end(), [](const Candidate& node) { return !node.is_full; });
  const auto with_room = static_cast<std::size_t>(full - nodes.begin());
  if (with_room > 0 && with_room >= needed) nodes.erase(full, nodes.end());
  return nodes;
}

template <typename T>
void rotate_by(std::vector<T>& list, std::size_t count, std::uint64_t turn) {
  PIF_ASSERT(count <= list.size(), count, list.size());
  if (count == 0) return;
  const auto begin = list.begin();
  std::rotate(begin, begin + static_cast<std::ptrdiff_t>(turn % count), begin + static_cast<std::ptrdiff_t>(count));
}

// `width` of the nodes, round from the turn's on: those with room first. Without parity.
std::vector<Candidate> in_turn(std::vector<Candidate> nodes, std::uint32_t width, std::uint64_t turn) {
  PIF_ASSERT(width > 0 && width <= nodes.size(), width, nodes.size());
  const auto with_room = std::count_if(nodes.begin(), nodes.end(), [](const Candidate& node) { return !node.is_full; });
  rotate_by(nodes, with_room > 0 ? static_cast<std::size_t>(with_room) : nodes.size(), turn);
  nodes.resize(width);
  return nodes;
}

// ---- with parity ----------------------------------------------------------------------------------------------------

// What the bevies of a file are made of.
struct PairsWanted {
  std::vector<std::uint32_t> sizes;  // of a group's pairs
  std::size_t groups = 0;
  bool or_fewer = false;  // nobody asked for so many
};

PairsWanted pairs_wanted(const proto::Create& ask, const std::vector<std::uint32_t>& bevies) {
  PIF_ASSERT(!bevies.empty() && bevies.size() % 2 == 0, bevies.size());
  const std::size_t pairs = bevies.size() / 2;
  const auto is_alike = [&](std::uint32_t size) { return size == bevies.front(); };
  const bool alike = std::all_of(bevies.begin(), bevies.end(), is_alike);
  if (alike) return {{bevies.front()}, pairs, ask.width() == 0 && ask.bevies_size() == 0};
  return {{bevies.begin(), bevies.begin() + static_cast<std::ptrdiff_t>(pairs)}, 1, false};
}

// Rows go there. One that is absent has copies of its rows elsewhere instead.
bool takes_rows(const Candidate& node) { return node.is_usable && !node.is_absent; }

// What has no bevies does without those that cannot be reached; what has may use one absent LFS of each pair.
std::vector<Candidate> nodes_for_pairs(const std::vector<Candidate>& known, bool or_absent) {
  std::vector<Candidate> nodes;
  std::copy_if(known.begin(), known.end(), std::back_inserter(nodes),
               [or_absent](const Candidate& node) { return takes_rows(node) || (or_absent && node.is_absent); });
  std::stable_partition(nodes.begin(), nodes.end(), [](const Candidate& node) { return !node.is_full; });
  return nodes;
}

using IsGood = bool (*)(const CompanionPair&);
std::vector<PairGroup> only(std::vector<PairGroup> groups, IsGood is_good) {
  std::erase_if(groups, [&](const auto& group) { return !std::all_of(group.begin(), group.end(), is_good); });
  return groups;
}

bool all_in(const CompanionPair& pair, bool (*is_good)(const Candidate&)) {
  return std::all_of(pair.first.begin(), pair.first.end(), is_good) &&
         std::all_of(pair.second.begin(), pair.second.end(), is_good);
}

std::vector<Candidate> absent_of(std::span<const Candidate> bevy, std::span<const Candidate> companion) {
  std::vector<Candidate> absent;
  for (const auto part : {bevy, companion})
    std::copy_if(part.begin(), part.end(), std::back_inserter(absent),
                 [](const Candidate& node) { return node.is_absent; });
  return absent;
}

bool is_present(const CompanionPair& pair) { return all_in(pair, takes_rows); }
bool has_room(const CompanionPair& pair) {
  return all_in(pair, [](const Candidate& node) { return takes_rows(node) && !node.is_full; });
}
// All but at most one, which is absent.
bool is_possible(const CompanionPair& pair) {
  return all_in(pair, [](const Candidate& node) { return takes_rows(node) || node.is_absent; }) &&
         absent_of(pair.first, pair.second).size() <= 1;
}

// Groups for the bevies of a file. Pairs are made of all nodes that are known, whatever their state, so that they stay;
// one of a pair may be absent. Only where that leaves too few are others made of those that may be used: a file keeps
// its companions, and these would need one another across pairs for good. Nothing: there are not so many.
std::vector<PairGroup> find_groups(const std::vector<Candidate>& known, const PairsWanted& wanted, bool apart) {
  const auto enough = [&](const std::vector<PairGroup>& groups) {
    return groups.size() >= wanted.groups || (wanted.or_fewer && !groups.empty());
  };
  const auto all = pair_up(known, wanted.sizes, apart);
  for (const IsGood is_good : {has_room, is_present, is_possible}) {
    if (auto steady = only(all, is_good); enough(steady)) return steady;
  }
  if (auto remade = pair_up(nodes_for_pairs(known, false), wanted.sizes, apart); enough(remade)) return remade;
  auto remade = only(pair_up(nodes_for_pairs(known, true), wanted.sizes, apart), is_possible);
  return enough(remade) ? remade : std::vector<PairGroup>();
}

// The nodes of a file on `count` of the groups, from the turn's on, round. Inside a pair the bevies rotate, and change
// places; who is whose companion never changes.
std::vector<Candidate> arrange(std::vector<PairGroup> groups, std::size_t count, std::uint64_t turn) {
  PIF_ASSERT(count > 0 && count <= groups.size(), count, groups.size());
  rotate_by(groups, groups.size(), turn);
  turn /= groups.size();
  groups.resize(count);
  std::vector<Candidate> first, second;  // bevies a and a + m/2 are companions
  for (PairGroup& group : groups) {
    for (CompanionPair& pair : group) {
      rotate_by(pair.first, pair.first.size(), turn / 2);
      rotate_by(pair.second, pair.second.size(), turn / 2);
      if (turn % 2 != 0) std::swap(pair.first, pair.second);
      first.insert(first.end(), pair.first.begin(), pair.first.end());
      second.insert(second.end(), pair.second.begin(), pair.second.end());
    }
  }
  PIF_ASSERT(first.size() == second.size(), first.size(), second.size());  // companions have one size
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

tl::unexpected<Error> on_one_machine(const std::string& what) {
  return fail(Code::kInvalid,
              fmt::format("{}: a machine that is lost would take both; ask for fewer LFSs or other bevies, "
                          "or accept it with --same-host-ok",
                          what));
}

tl::unexpected<Error> both_absent(const std::vector<Candidate>& absent, const Registry& registry) {
  PIF_ASSERT(absent.size() >= 2, absent.size());
  const auto name = [&](const Candidate& node) { return registry.find(node.node)->info.name(); };
  return fail(Code::kUnavailable,
              fmt::format("{} and {} are both absent, and of two companion bevies one LFS at most may be: bring one "
                          "back, ask for fewer LFSs, or for no bevies (--bevy 0)",
                          name(absent[0]), name(absent[1])));
}

// Why there are no groups: two of a pair are absent, or others are only silent.
tl::unexpected<Error> no_groups(const std::vector<Candidate>& known, const PairsWanted& wanted, bool apart,
                                const Registry& registry) {
  for (const PairGroup& group : pair_up(known, wanted.sizes, apart)) {
    for (const CompanionPair& pair : group) {
      const auto absent = absent_of(pair.first, pair.second);
      if (absent.size() > 1) return both_absent(absent, registry);
    }
  }
  return fail(Code::kUnavailable, "too few LFSs answer for bevies of that size: see `pif status`");
}

// Nodes for the bevies, which are cut to what there is if nobody asked for so many.
Result<std::vector<Candidate>> in_pairs(const proto::Create& ask, const Registry& registry,
                                        const std::vector<Candidate>& known, std::uint64_t turn,
                                        std::vector<std::uint32_t>& bevies) {
  PairsWanted wanted = pairs_wanted(ask, bevies);
  const bool apart = on_several_machines(known);
  std::vector<PairGroup> groups = find_groups(known, wanted, apart);
  if (groups.empty() && apart) {
    groups = find_groups(known, wanted, false);
    if (!groups.empty() && !ask.same_host_ok())
      return on_one_machine("companion bevies do not find enough LFSs on different machines");
  }
  if (groups.empty()) return no_groups(known, wanted, apart, registry);
  wanted.groups = std::min(wanted.groups, groups.size());
  if (wanted.or_fewer) bevies.assign(2 * wanted.groups, bevies.front());
  return arrange(std::move(groups), wanted.groups, turn);
}

// Of the nodes that a user named, in that order.
Status check_companions(const proto::Create& ask, const Registry& registry, std::span<const Candidate> nodes,
                        const std::vector<std::uint32_t>& bevies, const std::vector<Candidate>& known) {
  std::vector<std::span<const Candidate>> parts;
  for (const std::uint32_t size : bevies) {
    PIF_ASSERT(size <= nodes.size(), size, nodes.size());  // the sizes add up to the width
    parts.push_back(nodes.first(size));
    nodes = nodes.subspan(size);
  }
  const bool apart = !ask.same_host_ok() && on_several_machines(known);
  const std::size_t half = parts.size() / 2;
  for (std::size_t at = 0; at < half; ++at) {
    const auto absent = absent_of(parts[at], parts[at + half]);
    if (absent.size() > 1) return both_absent(absent, registry);
    if (apart && share_a_machine(parts[at], parts[at + half])) {
      return on_one_machine(
          fmt::format("bevies {} and {} are companions, and have LFSs on the same machine", at, at + half));
    }
  }
  return {};
}

}  // namespace

Result<proto::FileLayout> choose_layout(const proto::Create& ask, const Registry& registry, std::uint32_t default_bevy,
                                        std::uint64_t turn, Time now) {
  if (ask.bevy() != 0 && ask.bevies_size() > 0) {
    return fail(Code::kInvalid, "give the bevies' sizes, or one size for all, not both");
  }
  const std::uint32_t bevy = size_of_bevies(ask, default_bevy);
  const bool has_bevies = bevy != 0 || ask.bevies_size() > 0;
  const std::vector<Candidate> known = registry.candidates(now);
  std::vector<Candidate> nodes;
  if (names_nodes(ask)) {
    PIF_TRY_VALUE(nodes, named_nodes(ask, registry, has_bevies, now));
  } else {
    nodes = has_bevies ? nodes_for_pairs(known, true) : usable_nodes(known, ask.width());
    if (nodes.empty()) return fail(Code::kUnavailable, "no LFS is up: see `pif status`");
  }
  if (names_nodes(ask) && nodes.size() > kWidthMax) {
    return fail(Code::kInvalid,
                fmt::format("{} nodes are more than the {} that are possible", nodes.size(), kWidthMax));
  }
  const auto available = static_cast<std::uint32_t>(std::min<std::size_t>(nodes.size(), kWidthMax));
  PIF_TRY_VALUE(const std::uint32_t width, width_of(ask, bevy, available, registry.size()));
  std::vector<std::uint32_t> bevies(ask.bevies().begin(), ask.bevies().end());
  if (bevy != 0) {
    PIF_TRY_VALUE(bevies, equal_bevies(bevy, width));
  }
  PIF_TRY(parity::Layout::make(width, bevies));
  if (names_nodes(ask)) {
    PIF_TRY(check_companions(ask, registry, nodes, bevies, known));
  } else if (bevies.empty()) {
    nodes = in_turn(std::move(nodes), width, turn);
  } else {
    PIF_TRY_VALUE(nodes, in_pairs(ask, registry, known, turn, bevies));
  }
  PIF_ASSERT(!nodes.empty() && nodes.size() <= width, nodes.size(), width);
  PIF_ASSERT(nodes.size() == width || !bevies.empty(), nodes.size(), width);
  proto::FileLayout layout;
  for (const Candidate& node : nodes) layout.add_nodes(node.node);
  layout.mutable_bevies()->Add(bevies.begin(), bevies.end());
  if (!bevies.empty()) layout.set_form(wire::kFormParity);
  return layout;
}

proto::Create inherit(const proto::Create& ask, const proto::Striping& striping) {
  proto::Create create = ask;
  if ((ask.inherits() & kInheritsFormat) != 0 && striping.has_format()) *create.mutable_format() = striping.format();
  if ((ask.inherits() & kInheritsNodes) != 0 && (striping.width() != 0 || striping.nodes_size() > 0)) {
    create.set_width(striping.width());
    *create.mutable_nodes() = striping.nodes();
  }
  if ((ask.inherits() & kInheritsBevies) != 0 && striping.has_bevy()) {
    create.clear_bevies();
    create.set_bevy(striping.bevy() == 0 ? kNoBevies : striping.bevy());
  }
  return create;
}

Status check_new_striping(const proto::Striping& striping, const Registry& registry, std::uint32_t default_bevy) {
  if (says_nothing(striping)) return {};
  for (const std::uint32_t node : striping.nodes()) PIF_TRY(named_node(node, registry));
  return check_striping(striping, default_bevy);
}

Status check_file_length(const proto::Format& format, const proto::FileLength& said) {
  PIF_TRY_VALUE(const Format parsed, wire::format_of(format));
  if (!parsed.is_fixed() || is_fixed_file_length(parsed.record_length, wire::file_length_of(said))) return {};
  return fail(Code::kInvalid, fmt::format("{} records of {} bytes cannot have {} bytes", said.records(),
                                          parsed.record_length, said.bytes()));
}

}  // namespace pif::server
