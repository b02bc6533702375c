#include "pif/pattern/compiled.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "wrapping.h"

namespace pif::patterns {
namespace {

using Node = Compiled::Node;
using Wide = __int128;  // sums and products of 64 bits do not overflow it

// What is repeated: consecutive nodes, or a piece.
struct Item {
  std::size_t first = 0;
  std::size_t count = 0;  // none: a piece
  std::uint64_t bytes = 0;
  Bounds bounds;  // from where the repetition is
  bool is_rising = true;
};

bool fits(Wide value) {
  return value >= std::numeric_limits<std::int64_t>::min() && value <= std::numeric_limits<std::int64_t>::max();
}

tl::unexpected<Error> too_far() {
  return fail(Code::kTooLarge, "the pattern reaches further than offsets of 64 bits with sign");
}

// From `lowest` to `highest`, `count` times: first moved by `offset`, then each time by `stride` more.
Result<Bounds> repeated(Bounds bounds, Wide offset, std::uint64_t count, std::int64_t stride) {
  const Wide last = offset + (Wide{count} - 1) * stride;
  const Wide lowest = std::min(offset, last) + bounds.lowest;
  const Wide highest = std::max(offset, last) + bounds.highest;
  if (!fits(lowest) || !fits(highest)) return too_far();
  return Bounds{static_cast<std::int64_t>(lowest), static_cast<std::int64_t>(highest)};
}

bool rises(const Item& item, std::uint64_t count, std::int64_t stride) {
  return item.is_rising && (count == 1 || stride >= Wide{item.bounds.highest} - item.bounds.lowest);
}

// Adds what comes behind `sum` in the order of the walk.
Status add(Item& sum, const Item& more) {
  const bool is_first = sum.bytes == 0;
  if (more.bytes > kBytesMax - sum.bytes) return fail(Code::kTooLarge, "the pattern has over 2^62 bytes");
  sum.is_rising = more.is_rising && (is_first || (sum.is_rising && more.bounds.lowest >= sum.bounds.highest));
  sum.bounds.lowest = is_first ? more.bounds.lowest : std::min(sum.bounds.lowest, more.bounds.lowest);
  sum.bounds.highest = is_first ? more.bounds.highest : std::max(sum.bounds.highest, more.bounds.highest);
  sum.bytes += more.bytes;
  return {};
}

// A piece that its repetitions continue is one longer piece.
Node simplified(Node node) {
  if (node.is_piece() && node.count > 1 && wrapping(node.stride) == node.bytes) {
    node.bytes *= node.count;
    node.count = 1;
  }
  if (node.count == 1) node.stride = 0;
  return node;
}

// `count` times `child`, as one level; nothing if it takes two.
std::optional<Node> merged(const Level& outer, Node child) {
  std::int64_t all = 0;  // of the child's repetitions together
  const bool overflows = __builtin_mul_overflow(child.count, child.stride, &all);
  if (child.count == 1) {
    child.count = outer.count;
    child.stride = outer.stride;
  } else if (outer.count > 1) {
    if (overflows || outer.stride != all) return std::nullopt;
    child.count *= outer.count;
  }
  child.offset = moved(child.offset, outer.offset);
  return simplified(child);
}

bool continues(const Node& before, const Node& node) {
  const bool are_pieces = before.is_piece() && node.is_piece() && before.count == 1 && node.count == 1;
  return are_pieces && wrapping(before.offset) + before.bytes == wrapping(node.offset);
}

void append(std::vector<Node>& siblings, const Node& node) {
  if (!siblings.empty() && continues(siblings.back(), node))
    siblings.back().bytes += node.bytes;
  else
    siblings.push_back(node);
}

// Turns levels into nodes, the inner ones first, so that siblings are consecutive. The nodes of an item that was just
// made are the last ones: merging takes them off again.
class Compiler {
 public:
  Result<Item> add_levels(const std::vector<Level>& levels, unsigned depth) {
    if (depth > kDepthMax)
      return fail(Code::kTooLarge, fmt::format("the pattern has over {} levels inside one another", kDepthMax));
    Item sum;
    std::vector<Node> siblings;
    for (std::span<const Level> rest = levels; !rest.empty();) {
      const std::span<const Level> next = rest.first(std::max<std::size_t>(1, pieces_in_front(rest)));
      rest = rest.subspan(next.size());
      if (next.size() >= kListPiecesMin) {
        PIF_TRY(add_list(next, siblings, sum));
        continue;
      }
      for (const Level& level : next) PIF_TRY(add_level(level, depth, siblings, sum));
    }
    sum.first = nodes_.size();
    sum.count = siblings.size();
    append_siblings(siblings);
    return sum;
  }

  // `level` says how often the item, which is the last one made, is repeated.
  void append_repeated(const Level& level, const Item& item, std::vector<Node>& siblings) {
    PIF_ASSERT(item.count == 0 || item.first + item.count == nodes_.size(), item.first, item.count, nodes_.size());
    if (item.count == 0) {
      append(siblings, simplified({level.offset, level.count, level.stride, item.bytes}));
    } else if (const auto one = item.count == 1 ? merged(level, nodes_.back()) : std::nullopt) {
      nodes_.pop_back();
      append(siblings, *one);
    } else if (level.count == 1) {
      splice(level.offset, item.first, siblings);
    } else {
      append(siblings, {level.offset, level.count, level.stride, item.bytes, 0, item.first, item.count});
    }
  }

  void append_siblings(std::vector<Node>& siblings) {
    std::uint64_t begin = 0;
    for (Node& node : siblings) {
      node.begin = begin;
      begin += node.count * node.bytes;
      nodes_.push_back(node);
    }
  }

  std::vector<Node> take() { return std::move(nodes_); }
  std::vector<Compiled::List> take_lists() { return std::move(lists_); }

 private:
  static std::size_t pieces_in_front(std::span<const Level> levels) {
    const auto is_other = [](const Level& level) { return level.count != 1 || !level.inner.empty(); };
    return static_cast<std::size_t>(std::find_if(levels.begin(), levels.end(), is_other) - levels.begin());
  }

  Status add_list(std::span<const Level> pieces, std::vector<Node>& siblings, Item& sum) {
    Item all;
    Compiled::List list{pieces.data(), pieces.data() + pieces.size(), {}};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i % Compiled::List::kBeginEvery == 0) list.begins.push_back(all.bytes);
      PIF_TRY(add_piece(pieces[i], all));
    }
    if (all.bytes == 0) return {};
    Node node;
    node.bytes = all.bytes;
    node.list = lists_.size();
    lists_.push_back(std::move(list));
    append(siblings, node);
    return add(sum, all);
  }

  // As add_level() would: there may be millions of them.
  static Status add_piece(const Level& piece, Item& sum) {
    if (piece.bytes == 0) return {};
    if (piece.bytes > kBytesMax) return fail(Code::kTooLarge, "the pattern has over 2^62 bytes");
    const Wide end = Wide{piece.offset} + piece.bytes;
    if (!fits(end)) return too_far();
    return add(sum, {0, 0, piece.bytes, {piece.offset, static_cast<std::int64_t>(end)}, true});
  }

  Status add_level(const Level& level, unsigned depth, std::vector<Node>& siblings, Item& sum) {
    if (level.count == 0) return fail(Code::kInvalid, "a level of the pattern has no repetitions");
    PIF_TRY_VALUE(const Item item, item_of(level, depth));
    if (item.bytes == 0) return {};
    if (item.bytes > kBytesMax / level.count) return fail(Code::kTooLarge, "the pattern has over 2^62 bytes");
    Item all{0, 0, item.bytes * level.count, {}, rises(item, level.count, level.stride)};
    PIF_TRY_VALUE(all.bounds, repeated(item.bounds, level.offset, level.count, level.stride));
    append_repeated(level, item, siblings);
    return add(sum, all);
  }

  Result<Item> item_of(const Level& level, unsigned depth) {
    if (!level.inner.empty() && level.bytes != 0)
      return fail(Code::kInvalid, "a level of the pattern has both bytes and inner levels");
    if (!level.inner.empty()) return add_levels(level.inner, depth + 1);
    if (level.bytes > kBytesMax) return fail(Code::kTooLarge, "the pattern has over 2^62 bytes");
    return Item{0, 0, level.bytes, {0, static_cast<std::int64_t>(level.bytes)}, true};
  }

  void splice(std::int64_t offset, std::size_t first, std::vector<Node>& siblings) {
    for (std::size_t i = first; i < nodes_.size(); ++i) {
      nodes_[i].offset = moved(nodes_[i].offset, offset);
      append(siblings, nodes_[i]);
    }
    nodes_.resize(first);
  }

  std::vector<Node> nodes_;
  std::vector<Compiled::List> lists_;
};

Result<std::int64_t> extent_of(const Pattern& pattern, Bounds bounds) {
  if (pattern.extent) return *pattern.extent;
  const Wide extent = Wide{bounds.highest} - bounds.lowest;
  if (!fits(extent)) return too_far();
  return static_cast<std::int64_t>(extent);
}

}  // namespace

Result<Compiled> Compiled::make(const Pattern& pattern) {
  Compiler compiler;
  PIF_TRY_VALUE(const Item tile, compiler.add_levels(pattern.levels, 1));
  if (tile.bytes == 0) return fail(Code::kInvalid, "the pattern has no bytes");
  Compiled out;
  out.bytes_ = tile.bytes;
  out.bounds_ = tile.bounds;
  PIF_TRY_VALUE(out.extent_, extent_of(pattern, tile.bounds));
  const std::uint64_t tiles = kBytesMax / tile.bytes + 1;
  out.is_rising_ = rises(tile, tiles, out.extent_);
  std::vector<Node> root;
  compiler.append_repeated({0, tiles, out.extent_}, tile, root);
  PIF_ASSERT(root.size() == 1, root.size());
  compiler.append_siblings(root);
  out.nodes_ = compiler.take();
  out.lists_ = compiler.take_lists();
  return out;
}

Result<Bounds> Compiled::bounds(std::int64_t displacement, std::uint64_t skip, std::uint64_t bytes) const {
  if (skip > kBytesMax || bytes > kBytesMax - skip)
    return fail(Code::kTooLarge, "the request ends behind byte 2^62 of its pattern");
  if (bytes == 0) return Bounds{displacement, displacement};
  const std::uint64_t first = skip / bytes_;
  const std::uint64_t last = (skip + bytes - 1) / bytes_;
  return repeated(bounds_, displacement + Wide{first} * extent_, last - first + 1, extent_);
}

Status validate(const Pattern& pattern) {
  PIF_TRY(Compiled::make(pattern));
  return {};
}

Result<std::shared_ptr<const CompiledPattern>> CompiledPattern::make(Pattern pattern) {
  auto made = std::make_shared<CompiledPattern>();
  made->pattern_ = std::move(pattern);
  PIF_TRY_VALUE(made->compiled_, Compiled::make(made->pattern_));
  return std::shared_ptr<const CompiledPattern>(std::move(made));
}

}  // namespace pif::patterns
