#include "datatype.h"

#include <algorithm>
#include <mutex>

namespace pif::mpi {
namespace {

struct Bounds {
  std::int64_t lowest = INT64_MAX, highest = INT64_MIN;
  void add(std::int64_t low, std::int64_t high) {
    lowest = std::min(lowest, low);
    highest = std::max(highest, high);
  }
  bool is_empty() const { return lowest > highest; }
};

std::uint64_t bytes_of(const std::vector<Level>& levels);
std::uint64_t bytes_of_one(const Level& level) { return level.inner.empty() ? level.bytes : bytes_of(level.inner); }
std::uint64_t bytes_of(const std::vector<Level>& levels) {
  std::uint64_t bytes = 0;
  for (const Level& level : levels) bytes += level.count * bytes_of_one(level);
  return bytes;
}

Bounds bounds_of(const std::vector<Level>& levels);
Bounds bounds_of_one(const Level& level) {
  if (!level.inner.empty()) return bounds_of(level.inner);
  return level.bytes == 0 ? Bounds() : Bounds{0, static_cast<std::int64_t>(level.bytes)};
}
Bounds bounds_of(const std::vector<Level>& levels) {
  Bounds bounds;
  for (const Level& level : levels) {
    const Bounds one = bounds_of_one(level);
    if (one.is_empty() || level.count == 0) continue;
    const std::int64_t last = level.offset + static_cast<std::int64_t>(level.count - 1) * level.stride;
    bounds.add(std::min(level.offset, last) + one.lowest, std::max(level.offset, last) + one.highest);
  }
  return bounds;
}

// Whether each byte is behind those before it.
bool is_rising(const std::vector<Level>& levels) {
  std::int64_t end = INT64_MIN;
  for (const Level& level : levels) {
    const Bounds one = bounds_of_one(level);
    if (one.is_empty() || level.count == 0) continue;
    if (level.count > 1 && level.stride < one.highest - one.lowest) return false;
    if (level.offset + one.lowest < end || !is_rising(level.inner)) return false;
    end = level.offset + static_cast<std::int64_t>(level.count - 1) * level.stride + one.highest;
  }
  return true;
}

// The bytes, if they follow one another.
std::optional<Run> run_of(const std::vector<Level>& levels) {
  std::optional<Run> run;
  for (const Level& level : levels) {
    if (level.count * bytes_of_one(level) == 0) continue;
    std::optional<Run> one = Run{0, level.bytes};
    if (!level.inner.empty()) one = run_of(level.inner);
    if (!one || (level.count > 1 && level.stride != static_cast<std::int64_t>(one->bytes))) return {};
    const Run all{level.offset + one->offset, level.count * one->bytes};
    if (run && run->offset + static_cast<std::int64_t>(run->bytes) != all.offset) return {};
    run = Run{run ? run->offset : all.offset, (run ? run->bytes : 0) + all.bytes};
  }
  return run;
}

// Of rising levels: bytes in front of `limit`.
std::uint64_t before(const std::vector<Level>& levels, std::int64_t limit) {
  std::uint64_t bytes = 0;
  for (const Level& level : levels) {
    const Bounds one = bounds_of_one(level);
    if (one.is_empty() || level.count == 0) continue;
    const std::int64_t room = limit - level.offset - one.highest;  // behind the first repetition
    std::uint64_t whole = 0;
    if (room >= 0)
      whole = level.count == 1 ? 1 : std::min(level.count, static_cast<std::uint64_t>(room / level.stride) + 1);
    bytes += whole * bytes_of_one(level);
    const std::int64_t rest = limit - level.offset - static_cast<std::int64_t>(whole) * level.stride;
    if (whole == level.count || rest <= one.lowest) continue;
    bytes += level.inner.empty() ? std::min(level.bytes, static_cast<std::uint64_t>(rest)) : before(level.inner, rest);
  }
  return bytes;
}

std::vector<pif_level> c_levels(const std::vector<Level>& levels, std::vector<std::vector<pif_level>>& kept) {
  std::vector<pif_level> all;
  all.reserve(levels.size());
  for (const Level& level : levels) {
    pif_level made{level.offset, level.count, level.stride, level.bytes, nullptr, 0};
    if (!level.inner.empty()) {
      kept.push_back(c_levels(level.inner, kept));
      made.inner = kept.back().data();
      made.inner_count = kept.back().size();
    }
    all.push_back(made);
  }
  return all;
}

pif_pattern* pattern_of(const std::vector<Level>& levels, std::int64_t extent, std::int64_t moved) {
  std::vector<std::vector<pif_level>> kept;
  std::vector<pif_level> all = c_levels(levels, kept);
  for (pif_level& level : all) level.offset += moved;
  return pif_pattern_levels(all.data(), all.size(), &extent);
}

// ---- decoding ------------------------------------------------------------------------------------------------------

struct Contents {
  int combiner = 0;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
};

bool is_named(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

int combiner_of(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner;
}

Contents contents_of(MPI_Datatype type) {
  Contents contents;
  int integers = 0, addresses = 0, types = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &contents.combiner);
  contents.integers.resize(static_cast<std::size_t>(integers));
  contents.addresses.resize(static_cast<std::size_t>(addresses));
  contents.types.resize(static_cast<std::size_t>(types));
  PMPI_Type_get_contents(type, integers, addresses, types, contents.integers.data(), contents.addresses.data(),
                         contents.types.data());
  return contents;
}

// What MPI_Type_get_contents has made is freed.
void free_types(const Contents& contents) {
  for (MPI_Datatype type : contents.types) {
    if (!is_named(combiner_of(type))) PMPI_Type_free(&type);
  }
}

std::int64_t extent_of(MPI_Datatype type) {
  MPI_Aint lowest = 0, extent = 0;
  PMPI_Type_get_extent(type, &lowest, &extent);
  return extent;
}

using Levels = std::vector<Level>;

bool levels_of(MPI_Datatype type, Levels& levels);

// `count` items, side by side, from `offset` on.
Level block(std::int64_t offset, std::uint64_t count, std::int64_t extent, const Levels& item) {
  if (item.size() == 1 && item[0].inner.empty() && item[0].count == 1 &&
      (count == 1 || static_cast<std::int64_t>(item[0].bytes) == extent))
    return {offset + item[0].offset, 1, 0, count * item[0].bytes};
  return {offset, count, extent, 0, item};
}

// Data members of a dimension of a distributed array: MPI-3.1 4.1.4.
struct Dimension {
  std::int64_t size, distribution, argument, processes, position;
};

Levels distributed(const Dimension& d, std::int64_t stride, const Levels& inner) {
  if (d.distribution == MPI_DISTRIBUTE_NONE) return {block(0, static_cast<std::uint64_t>(d.size), stride, inner)};
  std::int64_t length = d.argument;
  if (length == MPI_DISTRIBUTE_DFLT_DARG)
    length = d.distribution == MPI_DISTRIBUTE_BLOCK ? (d.size + d.processes - 1) / d.processes : 1;
  Levels levels;
  const std::int64_t first = d.position * length, step = d.processes * length;
  const std::int64_t whole = d.size < first + length ? 0 : (d.size - first - length) / step + 1;
  const std::int64_t rest_at = first + whole * step;
  if (whole > 0) {
    const Level one = block(0, static_cast<std::uint64_t>(length), stride, inner);
    levels.push_back({first * stride, static_cast<std::uint64_t>(whole), step * stride, 0, {one}});
  }
  if (rest_at < d.size)
    levels.push_back(
        block(rest_at * stride, static_cast<std::uint64_t>(std::min(length, d.size - rest_at)), stride, inner));
  return levels;
}

Levels darray(const std::vector<int>& v, std::int64_t extent, const Levels& item) {
  const auto dims = static_cast<std::size_t>(v[2]);
  const bool is_c = v[3 + 4 * dims] == MPI_ORDER_C;
  std::vector<Dimension> all(dims);
  std::int64_t rank = v[1];
  for (std::size_t i = dims; i-- > 0;) {  // of the processes' grid the last dimension is the fastest, in either order
    all[i] = {v[3 + i], v[3 + dims + i], v[3 + 2 * dims + i], v[3 + 3 * dims + i], rank % v[3 + 3 * dims + i]};
    rank /= v[3 + 3 * dims + i];
  }
  Levels levels = item;
  std::int64_t stride = extent;
  for (std::size_t n = 0; n < dims; ++n) {
    const Dimension& d = all[is_c ? dims - 1 - n : n];
    levels = distributed(d, stride, levels);
    if (levels.empty()) return {};
    stride *= d.size;
  }
  return levels;
}

Levels subarray(const std::vector<int>& v, std::int64_t extent, const Levels& item) {
  const auto dims = static_cast<std::size_t>(v[0]);
  const bool is_c = v[1 + 3 * dims] == MPI_ORDER_C;
  Levels levels = item;
  std::int64_t stride = extent;
  for (std::size_t n = 0; n < dims; ++n) {
    const std::size_t i = is_c ? dims - 1 - n : n;
    levels = {block(v[1 + 2 * dims + i] * stride, static_cast<std::uint64_t>(v[1 + dims + i]), stride, levels)};
    stride *= v[1 + i];
  }
  return levels;
}

// With one length for each block, or the same for all; displacements in items, or in bytes.
Levels indexed(const Contents& c, std::int64_t extent, const Levels& item) {
  const bool in_bytes = c.combiner == MPI_COMBINER_HINDEXED || c.combiner == MPI_COMBINER_HINDEXED_BLOCK;
  const bool has_lengths = c.combiner == MPI_COMBINER_INDEXED || c.combiner == MPI_COMBINER_HINDEXED;
  const auto count = static_cast<std::size_t>(c.integers[0]);
  Levels levels;
  levels.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::uint64_t>(c.integers[has_lengths ? 1 + i : 1]);
    const std::int64_t at = in_bytes ? c.addresses[i] : c.integers[has_lengths ? 1 + count + i : 2 + i] * extent;
    if (length > 0) levels.push_back(block(at, length, extent, item));
  }
  return levels;
}

// False: a member is of a type that no pattern has.
bool structure(const Contents& c, Levels& levels) {
  const auto count = static_cast<std::size_t>(c.integers[0]);
  for (std::size_t i = 0; i < count; ++i) {
    Levels item;
    if (!levels_of(c.types[i], item)) return false;
    const auto length = static_cast<std::uint64_t>(c.integers[1 + i]);
    if (length > 0 && !item.empty()) levels.push_back(block(c.addresses[i], length, extent_of(c.types[i]), item));
  }
  return true;
}

Levels named(MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  if (type == MPI_SHORT_INT) {  // the only one that has a gap
    struct Pair {
      short value;
      int index;
    };
    return {{0, 1, 0, sizeof(short)}, {offsetof(Pair, index), 1, 0, sizeof(int)}};
  }
  if (size == 0) return {};
  return {{0, 1, 0, static_cast<std::uint64_t>(size)}};
}

// Without levels: no bytes. False: a combiner that MPI 3.1 does not have.
bool combined(const Contents& c, Levels& levels) {
  if (c.combiner == MPI_COMBINER_STRUCT) return structure(c, levels);
  Levels item;
  if (!levels_of(c.types[0], item)) return false;
  if (item.empty()) return true;
  const std::int64_t extent = extent_of(c.types[0]);
  const auto count = [&](std::size_t i) { return static_cast<std::uint64_t>(c.integers[i]); };
  switch (c.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: levels = item; break;
    case MPI_COMBINER_CONTIGUOUS: levels = {block(0, count(0), extent, item)}; break;
    case MPI_COMBINER_VECTOR:
      levels = {{0, count(0), c.integers[2] * extent, 0, {block(0, count(1), extent, item)}}};
      break;
    case MPI_COMBINER_HVECTOR: levels = {{0, count(0), c.addresses[0], 0, {block(0, count(1), extent, item)}}}; break;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: levels = indexed(c, extent, item); break;
    case MPI_COMBINER_SUBARRAY: levels = subarray(c.integers, extent, item); break;
    case MPI_COMBINER_DARRAY: levels = darray(c.integers, extent, item); break;
    default: return false;
  }
  if (bytes_of(levels) == 0) levels.clear();
  return true;
}

bool levels_of(MPI_Datatype type, Levels& levels) {
  if (is_named(combiner_of(type))) {
    levels = named(type);
    return true;
  }
  const Contents contents = contents_of(type);
  const bool is_known = combined(contents, levels);
  free_types(contents);
  return is_known;
}

// ---- kept as an attribute ------------------------------------------------------------------------------------------

using Kept = std::shared_ptr<const Datatype>;

int forget(MPI_Datatype, int, void* kept, void*) {
  delete static_cast<Kept*>(kept);
  return MPI_SUCCESS;
}

int keyval() {
  static const int made = [] {
    int value = MPI_KEYVAL_INVALID;
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &value, nullptr);
    return value;
  }();
  return made;
}

}  // namespace

Datatype::Datatype(std::vector<Level> levels, std::int64_t extent) : levels_(std::move(levels)), extent_(extent) {
  bytes_ = bytes_of(levels_);
  if (bytes_ == 0) return;
  const Bounds bounds = bounds_of(levels_);
  lowest_ = bounds.lowest;
  highest_ = bounds.highest;
  is_rising_ = mpi::is_rising(levels_) && extent_ >= highest_ - lowest_;
  run_ = run_of(levels_);
  pattern_.reset(pattern_of(levels_, extent_, 0));
  from_lowest_.reset(pattern_of(levels_, extent_, -lowest_));
}

std::uint64_t Datatype::bytes_before(std::int64_t limit) const {
  if (bytes_ == 0 || limit <= lowest_) return 0;
  std::uint64_t items = 0;
  if (limit >= highest_) items = static_cast<std::uint64_t>((limit - highest_) / extent_) + 1;
  return items * bytes_ + before(levels_, limit - static_cast<std::int64_t>(items) * extent_);
}

Outcome decode(MPI_Datatype type, std::shared_ptr<const Datatype>& decoded) {
  if (type == MPI_DATATYPE_NULL) return {MPI_ERR_TYPE, "pif: no datatype"};
  const bool is_kept = !is_named(combiner_of(type));
  static std::mutex lock;
  const std::lock_guard held(lock);
  if (is_kept) {
    void* value = nullptr;
    int is_there = 0;
    PMPI_Type_get_attr(type, keyval(), static_cast<void*>(&value), &is_there);
    if (is_there != 0) {
      decoded = *static_cast<Kept*>(value);
      return {};
    }
  }
  std::vector<Level> levels;
  if (!levels_of(type, levels)) return {MPI_ERR_TYPE, "pif: a datatype that MPI 3.1 does not have"};
  decoded = std::make_shared<const Datatype>(std::move(levels), extent_of(type));
  if (is_kept) PMPI_Type_set_attr(type, keyval(), new Kept(decoded));
  return {};
}

}  // namespace pif::mpi
