#include "datatype.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>

#include "pif/base/assert.h"

namespace pif::mpi {
namespace {

struct Bounds {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  bool is_ascending = true;
};

// Counts the bytes of each level; where they lie.
Bounds measure_levels(std::vector<Level>& levels) {
  Bounds all;
  std::uint64_t before = 0;
  for (Level& level : levels) {
    Bounds one{0, static_cast<std::int64_t>(level.bytes), true};
    if (!level.inner.empty()) {
      one = measure_levels(level.inner);
      level.bytes = level.inner.back().before + level.inner.back().bytes * level.inner.back().count;
    } else if (level.blocks != nullptr) {
      one = {0, level.blocks->end(), level.blocks->is_ascending()};
      level.bytes = level.blocks->bytes();
    }
    const std::int64_t way = level.stride * static_cast<std::int64_t>(level.count - 1);
    const bool ascends = one.is_ascending && (level.count == 1 || level.stride >= one.end - one.begin);
    const std::int64_t begin = level.offset + one.begin + std::min<std::int64_t>(0, way);
    const std::int64_t end = level.offset + one.end + std::max<std::int64_t>(0, way);
    all.is_ascending = all.is_ascending && ascends && (before == 0 || begin >= all.end);
    all.begin = std::min(all.begin, begin);
    all.end = std::max(all.end, end);
    level.before = before;
    before += level.bytes * level.count;
  }
  return all;
}

// Where byte n lies.
std::int64_t place_in(const std::vector<Level>& levels, std::uint64_t n) {
  const auto behind =
      std::upper_bound(levels.begin(), levels.end(), n, [](std::uint64_t at, const Level& l) { return at < l.before; });
  PIF_ASSERT(behind != levels.begin(), n);
  const Level& level = *(behind - 1);
  PIF_ASSERT(level.bytes > 0 && n - level.before < level.bytes * level.count, n, level.before, level.bytes);
  const std::uint64_t repetition = (n - level.before) / level.bytes;
  const std::uint64_t rest = (n - level.before) % level.bytes;
  const std::int64_t at = level.offset + static_cast<std::int64_t>(repetition) * level.stride;
  if (level.blocks != nullptr) return at + level.blocks->offset_of(rest);
  return at + (level.inner.empty() ? static_cast<std::int64_t>(rest) : place_in(level.inner, rest));
}

std::vector<pif_level> levels_of(const Blocks& blocks) {
  std::vector<pif_level> out;
  out.reserve(blocks.pieces().size());
  for (const pif_piece& piece : blocks.pieces()) out.push_back({piece.offset, 1, 0, piece.bytes, nullptr, 0});
  return out;
}

std::vector<pif_level> convert(const std::vector<Level>& levels, std::vector<std::vector<pif_level>>& kept) {
  std::vector<pif_level> out;
  out.reserve(levels.size());
  for (const Level& level : levels) {
    const bool is_piece = level.inner.empty() && level.blocks == nullptr;
    pif_level one{level.offset, level.count, level.stride, is_piece ? level.bytes : 0, nullptr, 0};
    if (!is_piece) {
      kept.push_back(level.blocks != nullptr ? levels_of(*level.blocks) : convert(level.inner, kept));
      one.inner = kept.back().data();
      one.inner_count = kept.back().size();
    }
    out.push_back(one);
  }
  return out;
}

bool is_plain(const Level& level) { return level.inner.empty() && level.blocks == nullptr && level.count == 1; }

void append_level(std::vector<Level>& levels, Level level) {
  if (!levels.empty() && is_plain(level) && is_plain(levels.back()) &&
      levels.back().offset + static_cast<std::int64_t>(levels.back().bytes) == level.offset) {
    levels.back().bytes += level.bytes;
    return;
  }
  levels.push_back(std::move(level));
}

}  // namespace

void append_repeated(std::vector<Level>& levels, const std::vector<Level>& what, std::int64_t offset,
                     std::uint64_t count, std::int64_t stride) {
  if (count == 0 || what.empty()) return;
  if (count == 1) {
    for (Level level : what) {
      level.offset += offset;
      append_level(levels, std::move(level));
    }
    return;
  }
  const Level& first = what.front();
  if (what.size() == 1 && is_plain(first)) {
    if (stride == static_cast<std::int64_t>(first.bytes))
      return append_level(levels, {offset + first.offset, 1, 0, first.bytes * count, {}});
    return append_level(levels, {offset + first.offset, count, stride, first.bytes, {}});
  }
  const bool goes_on = what.size() == 1 && stride == first.stride * static_cast<std::int64_t>(first.count);
  if (goes_on) {
    Level longer = first;
    longer.offset += offset;
    longer.count *= count;
    return append_level(levels, std::move(longer));
  }
  append_level(levels, {offset, count, stride, 0, what});
}

namespace {

// Such a type has no contents, and is never freed.
bool is_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

// The result of MPI_Type_get_contents. The types in it are freed with it.
class Contents {
 public:
  explicit Contents(MPI_Datatype type) : type_(type) {}
  ~Contents() {
    for (MPI_Datatype& part : types) {
      int a = 0, b = 0, c = 0, made = MPI_COMBINER_NAMED;
      PMPI_Type_get_envelope(part, &a, &b, &c, &made);
      if (!is_predefined(made)) PMPI_Type_free(&part);
    }
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  bool load() {
    int integer_count = 0, address_count = 0, type_count = 0;
    if (PMPI_Type_get_envelope(type_, &integer_count, &address_count, &type_count, &combiner) != MPI_SUCCESS)
      return false;
    if (is_predefined(combiner)) return true;
    integers.resize(static_cast<std::size_t>(integer_count));
    addresses.resize(static_cast<std::size_t>(address_count));
    std::vector<MPI_Datatype> parts(static_cast<std::size_t>(type_count));
    if (PMPI_Type_get_contents(type_, integer_count, address_count, type_count, integers.data(), addresses.data(),
                               parts.data()) != MPI_SUCCESS)
      return false;
    types = std::move(parts);
    return true;
  }

  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;

 private:
  MPI_Datatype type_;
};

struct Part {
  std::vector<Level> levels;
  std::int64_t extent = 0;
};

Outcome decode_part(MPI_Datatype type, unsigned depth, Part* out);

std::uint64_t count_of(int n) { return n > 0 ? static_cast<std::uint64_t>(n) : 0; }

// Also of two values, a number and an int, between which there may be a gap (MPI_SHORT_INT).
Outcome decode_named(MPI_Datatype type, Part* out) {
  MPI_Count size = 0;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS) return {MPI_ERR_TYPE, "a datatype whose size is not known"};
  if (size <= 0) return {};
  constexpr std::int64_t kInt = sizeof(int);
  if (size == out->extent || size <= kInt) {
    out->levels.push_back({0, 1, 0, static_cast<std::uint64_t>(size), {}});
    return {};
  }
  const std::int64_t first = size - kInt;
  append_level(out->levels, {0, 1, 0, static_cast<std::uint64_t>(first), {}});
  append_level(out->levels, {(first + kInt - 1) / kInt * kInt, 1, 0, kInt, {}});
  return {};
}

// The same as one list; false: they are few, or of several pieces each.
template <typename At, typename Length>
bool append_list(const Part& item, int blocks, const Length& length, const At& at, Part* out) {
  constexpr std::size_t kMany = 1024;
  if (count_of(blocks) < kMany || item.levels.size() != 1) return false;
  const Level& unit = item.levels.front();
  if (!is_plain(unit) || item.extent != static_cast<std::int64_t>(unit.bytes)) return false;
  std::vector<pif_piece> pieces;
  pieces.reserve(count_of(blocks));
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < blocks; ++i) {
    const pif_piece piece{at(i) + unit.offset, count_of(length(i)) * unit.bytes};
    if (piece.bytes == 0) continue;
    lowest = std::min(lowest, piece.offset);
    if (!pieces.empty() && pieces.back().offset + static_cast<std::int64_t>(pieces.back().bytes) == piece.offset)
      pieces.back().bytes += piece.bytes;
    else
      pieces.push_back(piece);
  }
  if (pieces.size() < kMany) return false;
  for (pif_piece& piece : pieces) piece.offset -= lowest;
  out->levels.push_back({lowest, 1, 0, 0, {}, std::make_shared<const Blocks>(std::move(pieces))});
  return true;
}

// `blocks` of `length` items each; block i begins at at(i), in bytes.
template <typename At, typename Length>
void append_blocks(const Part& item, int blocks, const Length& length, const At& at, Part* out) {
  if (append_list(item, blocks, length, at, out)) return;
  std::vector<Level> block;
  int length_of_block = -1;
  out->levels.reserve(count_of(blocks));
  for (int i = 0; i < blocks; ++i) {
    if (length(i) != length_of_block) {
      block.clear();
      length_of_block = length(i);
      append_repeated(block, item.levels, 0, count_of(length_of_block), item.extent);
    }
    append_repeated(out->levels, block, at(i), 1, 0);
  }
}

void decode_vector(const Part& item, int count, int length, std::int64_t stride, Part* out) {
  std::vector<Level> block;
  append_repeated(block, item.levels, 0, count_of(length), item.extent);
  append_repeated(out->levels, block, 0, count_of(count), stride);
}

// MPI-3.1, 4.1.3. The dimension that goes fastest first, each is a stride around those before it.
void decode_subarray(const Part& item, const std::vector<int>& n, Part* out) {
  const int dimensions = n[0];
  const int* sizes = n.data() + 1;
  const int* parts = sizes + dimensions;
  const int* starts = parts + dimensions;
  const bool is_c = n.back() == MPI_ORDER_C;
  std::vector<Level> levels = item.levels;
  std::int64_t stride = item.extent;
  for (int i = 0; i < dimensions; ++i) {
    const int d = is_c ? dimensions - 1 - i : i;
    std::vector<Level> around;
    append_repeated(around, levels, starts[d] * stride, count_of(parts[d]), stride);
    levels = std::move(around);
    stride *= sizes[d];
  }
  out->levels = std::move(levels);
}

struct Distribution {
  std::int64_t size = 0, processes = 1, at = 0, block = 1;  // of one dimension; `at`: which process this is
};

// The items of one dimension that one process has: whole blocks, each `processes` blocks further on, then a part of
// one.
void distribute(const std::vector<Level>& levels, const Distribution& d, std::int64_t stride,
                std::vector<Level>* around) {
  const std::int64_t first = d.at * d.block;
  const std::int64_t round = d.processes * d.block;
  if (first >= d.size) return;
  const std::int64_t rounds = (d.size - first) / round;
  const std::int64_t rest = (d.size - first) % round;
  const std::int64_t whole = rounds + (rest >= d.block ? 1 : 0);
  std::vector<Level> block;
  append_repeated(block, levels, 0, static_cast<std::uint64_t>(d.block), stride);
  append_repeated(*around, block, first * stride, static_cast<std::uint64_t>(whole), round * stride);
  if (rest < d.block)
    append_repeated(*around, levels, (first + rounds * round) * stride, static_cast<std::uint64_t>(rest), stride);
}

// MPI-3.1, 4.1.4.
void decode_darray(const Part& item, const std::vector<int>& n, Part* out) {
  const int dimensions = n[2];
  const int* sizes = n.data() + 3;
  const int* kinds = sizes + dimensions;
  const int* arguments = kinds + dimensions;
  const int* processes = arguments + dimensions;
  const bool is_c = n.back() == MPI_ORDER_C;
  std::vector<int> coordinates(count_of(dimensions));
  for (int d = dimensions - 1, rest = n[1]; d >= 0; --d) {  // row by row, whatever the order of the array
    coordinates[count_of(d)] = rest % processes[d];
    rest /= processes[d];
  }
  std::vector<Level> levels = item.levels;
  std::int64_t stride = item.extent;
  for (int i = 0; i < dimensions; ++i) {
    const int d = is_c ? dimensions - 1 - i : i;
    Distribution one{sizes[d], processes[d], coordinates[count_of(d)], arguments[d]};
    if (kinds[d] == MPI_DISTRIBUTE_NONE)
      one = {sizes[d], 1, 0, sizes[d]};
    else if (arguments[d] == MPI_DISTRIBUTE_DFLT_DARG)
      one.block = kinds[d] == MPI_DISTRIBUTE_BLOCK ? (one.size + one.processes - 1) / one.processes : 1;
    std::vector<Level> around;
    distribute(levels, one, stride, &around);
    levels = std::move(around);
    stride *= sizes[d];
  }
  out->levels = std::move(levels);
}

Outcome decode_struct(const Contents& of, unsigned depth, Part* out) {
  for (std::size_t i = 0; i < of.types.size(); ++i) {
    Part part;
    PIF_MPI_TRY(decode_part(of.types[i], depth, &part));
    std::vector<Level> block;
    append_repeated(block, part.levels, 0, count_of(of.integers[i + 1]), part.extent);
    append_repeated(out->levels, block, of.addresses[i], 1, 0);
  }
  return {};
}

Outcome decode_of_one(const Contents& of, const Part& item, Part* out) {
  const std::vector<int>& n = of.integers;
  const std::vector<MPI_Aint>& a = of.addresses;
  const auto many = [&](std::size_t from) { return [&n, from](int i) { return n[from + count_of(i)]; }; };
  const auto same = [&](int) { return n[1]; };
  const auto in_items = [&](std::size_t from) {
    return [&n, &item, from](int i) { return n[from + count_of(i)] * item.extent; };
  };
  const auto in_bytes = [&](int i) { return static_cast<std::int64_t>(a[count_of(i)]); };
  switch (of.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: out->levels = item.levels; return {};
    case MPI_COMBINER_CONTIGUOUS: append_repeated(out->levels, item.levels, 0, count_of(n[0]), item.extent); return {};
    case MPI_COMBINER_VECTOR: decode_vector(item, n[0], n[1], n[2] * item.extent, out); return {};
    case MPI_COMBINER_HVECTOR: decode_vector(item, n[0], n[1], a[0], out); return {};
    case MPI_COMBINER_INDEXED: append_blocks(item, n[0], many(1), in_items(1 + count_of(n[0])), out); return {};
    case MPI_COMBINER_HINDEXED: append_blocks(item, n[0], many(1), in_bytes, out); return {};
    case MPI_COMBINER_INDEXED_BLOCK: append_blocks(item, n[0], same, in_items(2), out); return {};
    case MPI_COMBINER_HINDEXED_BLOCK: append_blocks(item, n[0], same, in_bytes, out); return {};
    case MPI_COMBINER_SUBARRAY: decode_subarray(item, n, out); return {};
    case MPI_COMBINER_DARRAY: decode_darray(item, n, out); return {};
    default: return {MPI_ERR_TYPE, "a datatype that was made in a way that is not known"};
  }
}

Outcome decode_part(MPI_Datatype type, unsigned depth, Part* out) {
  constexpr unsigned kDepthMax = 256;
  if (depth > kDepthMax) return {MPI_ERR_TYPE, "datatypes are too deep inside one another"};
  MPI_Count lower = 0, extent = 0;
  Contents contents(type);
  if (PMPI_Type_get_extent_x(type, &lower, &extent) != MPI_SUCCESS || !contents.load())
    return {MPI_ERR_TYPE, "a datatype that cannot be looked into"};
  out->extent = extent;
  if (contents.types.empty() && contents.combiner != MPI_COMBINER_STRUCT) return decode_named(type, out);
  if (contents.combiner == MPI_COMBINER_STRUCT) return decode_struct(contents, depth + 1, out);
  Part item;
  PIF_MPI_TRY(decode_part(contents.types.front(), depth + 1, &item));
  return decode_of_one(contents, item, out);
}

// Keeps the decoded form of each type as an attribute of it, which goes when the type is freed.
class KeptTypes {
 public:
  DatatypePtr find(MPI_Datatype type) {
    const std::lock_guard guard(lock_);
    if (key_ == MPI_KEYVAL_INVALID) return nullptr;
    DatatypePtr* kept = nullptr;
    int is_kept = 0;
    if (PMPI_Type_get_attr(type, key_, &kept, &is_kept) != MPI_SUCCESS || is_kept == 0) return nullptr;
    PIF_ASSERT(kept != nullptr && *kept != nullptr);
    return *kept;
  }
  // If the MPI cannot, it is decoded again each time.
  void keep(MPI_Datatype type, const DatatypePtr& decoded) {
    const auto free = [](MPI_Datatype, int, void* value, void*) {
      delete static_cast<DatatypePtr*>(value);
      return MPI_SUCCESS;
    };
    const std::lock_guard guard(lock_);
    if (key_ == MPI_KEYVAL_INVALID) PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, free, &key_, nullptr);
    auto kept = std::make_unique<DatatypePtr>(decoded);
    if (key_ != MPI_KEYVAL_INVALID && PMPI_Type_set_attr(type, key_, kept.get()) == MPI_SUCCESS) kept.release();
  }

 private:
  std::mutex lock_;  // also while the attribute of another thread is copied
  int key_ = MPI_KEYVAL_INVALID;
};

// Never destroyed: a program may have types until it ends.
KeptTypes& kept_types() {
  static KeptTypes* const all = new KeptTypes;
  return *all;
}

}  // namespace

Datatype::Datatype(std::vector<Level> levels, std::int64_t extent) : levels_(std::move(levels)), extent_(extent) {
  const Bounds bounds = measure_levels(levels_);
  bytes_ = levels_.empty() ? 0 : levels_.back().before + levels_.back().bytes * levels_.back().count;
  if (bytes_ == 0) return;
  begin_ = bounds.begin;
  end_ = bounds.end;
  PIF_ASSERT(begin_ < end_, begin_, end_);
  is_ascending_ = bounds.is_ascending && extent_ >= end_ - begin_;
  pattern_ = compile();
}

PatternPtr Datatype::compile() const {
  const Level& first = levels_.front();
  if (levels_.size() == 1 && first.blocks != nullptr && first.count == 1) {
    PIF_ASSERT(first.offset == begin_, first.offset, begin_);
    const std::vector<pif_piece>& pieces = first.blocks->pieces();
    return PatternPtr(pif_pattern_tiled(pieces.data(), pieces.size(), extent_));
  }
  std::vector<std::vector<pif_level>> kept;
  std::vector<pif_level> top = convert(levels_, kept);
  for (pif_level& level : top) level.offset -= begin_;
  return PatternPtr(pif_pattern_levels(top.data(), top.size(), &extent_));
}

DatatypePtr Datatype::make(std::vector<Level> levels, std::int64_t extent) {
  return DatatypePtr(new Datatype(std::move(levels), extent));
}

DatatypePtr Datatype::byte() { return make({{0, 1, 0, 1, {}}}, 1); }

DatatypePtr Datatype::repeated(const Datatype& one, std::uint64_t count) {
  std::vector<Level> levels;
  append_repeated(levels, one.levels_, 0, count, one.extent_);
  const Bounds bounds = measure_levels(levels);
  return make(std::move(levels), bounds.end - bounds.begin);
}

Outcome Datatype::decode(MPI_Datatype type, DatatypePtr* out) {
  if (type == MPI_DATATYPE_NULL) return {MPI_ERR_TYPE, "MPI_DATATYPE_NULL is no datatype"};
  *out = kept_types().find(type);
  if (*out != nullptr) return {};
  Part part;
  PIF_MPI_TRY(decode_part(type, 0, &part));
  *out = make(std::move(part.levels), part.extent);
  kept_types().keep(type, *out);
  return {};
}

bool Datatype::is_range(std::uint64_t from, std::uint64_t count) const {
  PIF_ASSERT(bytes_ > 0 && count > 0, bytes_, count);
  return is_ascending_ && offset_of(from + count - 1) - offset_of(from) == static_cast<std::int64_t>(count - 1);
}

std::int64_t Datatype::offset_of(std::uint64_t n) const {
  return static_cast<std::int64_t>(n / bytes_) * extent_ + place_in(levels_, n % bytes_);
}

bool Datatype::reaches(std::uint64_t n) const {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  std::int64_t way = 0;
  return n < static_cast<std::uint64_t>(kMax) && begin_ > -kMax && end_ < kMax &&
         !__builtin_mul_overflow(static_cast<std::int64_t>(bytes_ == 0 ? 0 : n / bytes_), extent_, &way) &&
         way < kMax && way > -kMax;
}

std::uint64_t Datatype::bytes_before(std::int64_t offset) const {
  if (offset <= begin_) return 0;
  const std::uint64_t tile = static_cast<std::uint64_t>((offset - begin_) / extent_);
  std::uint64_t low = tile * bytes_, high = low + bytes_;  // the answer is in between, both ends included
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (offset_of(middle) < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace pif::mpi
