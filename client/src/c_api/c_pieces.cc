// Patterns in C, and requests for many pieces.
#include "c_api/c_pieces.h"

#include <fmt/format.h>

#include "pif/pattern/builders.h"
#include "pif/pattern/compiled.h"

using namespace pif::c_api;
using pif::Code;
using pif::File;
using pif::Result;
using pif::Status;
using pif::patterns::CompiledPattern;
using pif::patterns::Pattern;

namespace pif::c_api {

Result<std::uint64_t> transfer(File& file, How how, const File::Pieces& pieces, std::span<std::byte> memory) {
  switch (how) {
    case How::kRead: return file.read_pieces(pieces, memory);
    case How::kStartRead: return file.start_read_pieces(pieces, memory);
    case How::kStartWrite: return file.start_write_pieces(pieces, memory);
    case How::kWrite: break;
  }
  PIF_TRY(file.write_pieces(pieces, memory));
  if (pieces.bytes) return *pieces.bytes;
  if (pieces.compiled_memory) return pieces.compiled_memory->compiled().bytes();
  PIF_TRY_VALUE(const auto one_tile, patterns::Compiled::make(pieces.memory));
  return one_tile.bytes();
}

}  // namespace pif::c_api

namespace {

// What a C array of structures inside one another becomes. Its pointers are the program's: a circle must end.
template <typename To, typename From, typename Convert>
Result<std::vector<To>> convert_all(const From* all, size_t count, unsigned depth, const Convert& convert) {
  if (all == nullptr && count > 0) return pif::fail(Code::kInvalid, "NULL was given for parts of a pattern");
  if (depth > pif::patterns::kDepthMax)
    return pif::fail(Code::kTooLarge,
                     fmt::format("a pattern has at most {} levels inside one another", pif::patterns::kDepthMax));
  std::vector<To> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    out.push_back(convert(all[i]));
    if (all[i].inner_count == 0) continue;
    PIF_TRY_VALUE(out[i].inner, (convert_all<To>(all[i].inner, all[i].inner_count, depth + 1, convert)));
  }
  return out;
}

Result<Pattern> levels(const pif_level* all, size_t count, const int64_t* extent) {
  const auto convert = [](const pif_level& level) {
    return pif::patterns::Level{level.offset, level.count, level.stride, level.bytes, {}};
  };
  Pattern out;
  PIF_TRY_VALUE(out.levels, (convert_all<pif::patterns::Level>(all, count, 1, convert)));
  if (extent != nullptr) out.extent = *extent;
  return out;
}

Result<Pattern> batched(const pif_batch* all, size_t count) {
  const auto convert = [](const pif_batch& batch) {
    const auto origin = batch.origin == PIF_ABSOLUTE   ? pif::patterns::Origin::kAbsolute
                        : batch.origin == PIF_PREVIOUS ? pif::patterns::Origin::kPrevious
                                                       : pif::patterns::Origin::kPreviousEnd;
    return pif::patterns::Batch{batch.offset, origin, batch.quantity, batch.stride, batch.bytes, {}};
  };
  PIF_TRY_VALUE(const auto batches, (convert_all<pif::patterns::Batch>(all, count, 1, convert)));
  return pif::patterns::nested_batched(batches);
}

// There may be millions of them: they are copied once.
Result<Pattern> list(const pif_piece* pieces, size_t count, std::optional<int64_t> extent) {
  PIF_TRY(check({{"pieces", pieces, count}}));
  Pattern out;
  out.extent = extent;
  out.levels.reserve(count);
  for (size_t i = 0; i < count; ++i) out.levels.push_back({pieces[i].offset, 1, 0, pieces[i].bytes, {}});
  return out;
}

// The pattern that `build` makes, or its error; NULL: memory is out.
template <typename Build>
pif_pattern* make(const Build& build) noexcept {
  try {
    Result<Pattern> built = build();
    if (!built) return new pif_pattern{pif::fail(std::move(built.error()))};
    return new pif_pattern{CompiledPattern::make(std::move(*built))};
  } catch (const std::exception&) {
    return nullptr;
  }
}

Result<std::shared_ptr<const CompiledPattern>> pattern_of(const pif_pattern* given, const char* name) {
  PIF_TRY(check({{name, given}}));
  return given->pattern;
}

int64_t move(pif_file* file, How how, const pif_pieces* wanted, std::span<std::byte> memory, const char* name) {
  return with_file(file, {{"wanted", wanted}, {name, memory.data(), memory.size()}}, [&](File& f) -> Result<uint64_t> {
    File::Pieces pieces;
    PIF_TRY_VALUE(pieces.compiled_file, pattern_of(wanted->file, "file"));
    PIF_TRY_VALUE(pieces.compiled_memory, pattern_of(wanted->memory, "memory"));
    pieces.displacement = wanted->displacement;
    pieces.skip = wanted->skip;
    if (wanted->bytes > 0) pieces.bytes = wanted->bytes;
    return transfer(f, how, pieces, memory);
  });
}

// What is written is only read.
std::span<std::byte> input(const void* in, size_t bytes) { return bytes_of(const_cast<void*>(in), bytes); }

}  // namespace

extern "C" {

pif_pattern* pif_pattern_levels(const pif_level* all, size_t count, const int64_t* extent) {
  return make([&] { return levels(all, count, extent); });
}
pif_pattern* pif_pattern_range(int64_t offset, uint64_t bytes) {
  return make([&]() -> Result<Pattern> { return pif::patterns::range(offset, bytes); });
}
pif_pattern* pif_pattern_strided(int64_t offset, uint64_t record_bytes, int64_t stride, uint64_t quantity) {
  return make(
      [&]() -> Result<Pattern> { return pif::patterns::simple_strided(offset, record_bytes, stride, quantity); });
}
pif_pattern* pif_pattern_nested(int64_t offset, uint64_t record_bytes, const pif_stride* innermost_first,
                                size_t count) {
  return make([&]() -> Result<Pattern> {
    PIF_TRY(check({{"innermost_first", innermost_first, count}}));
    std::vector<pif::patterns::Stride> strides(count);
    for (size_t i = 0; i < count; ++i) strides[i] = {innermost_first[i].stride, innermost_first[i].quantity};
    return pif::patterns::nested_strided(offset, record_bytes, strides);
  });
}
pif_pattern* pif_pattern_batched(const pif_batch* batches, size_t count) {
  return make([&] { return batched(batches, count); });
}
pif_pattern* pif_pattern_list(const pif_piece* pieces, size_t count) {
  return make([&] { return list(pieces, count, std::nullopt); });
}
pif_pattern* pif_pattern_tiled(const pif_piece* pieces, size_t count, int64_t extent) {
  return make([&] { return list(pieces, count, extent); });
}
pif_pattern* pif_pattern_partition(int64_t offset, uint64_t group_bytes, int64_t stride) {
  return make([&]() -> Result<Pattern> { return pif::patterns::partition(offset, group_bytes, stride); });
}
pif_pattern* pif_pattern_member(uint64_t member, uint64_t members, uint64_t record_bytes, uint64_t position) {
  return make([&] { return pif::patterns::member_of(member, members, record_bytes, position); });
}
pif_pattern* pif_pattern_view(int64_t displacement, const pif_pattern* filetype) {
  return make([&]() -> Result<Pattern> {
    PIF_TRY_VALUE(const auto type, pattern_of(filetype, "filetype"));
    return pif::patterns::view(displacement, type->pattern());
  });
}
void pif_pattern_free(pif_pattern* pattern) { delete pattern; }

int64_t pif_read_pieces(pif_file* file, const pif_pieces* wanted, void* out, size_t out_bytes) {
  return move(file, How::kRead, wanted, bytes_of(out, out_bytes), "out");
}
int64_t pif_write_pieces(pif_file* file, const pif_pieces* wanted, const void* in, size_t in_bytes) {
  return move(file, How::kWrite, wanted, input(in, in_bytes), "in");
}
int64_t pif_start_read_pieces(pif_file* file, const pif_pieces* wanted, void* out, size_t out_bytes) {
  return move(file, How::kStartRead, wanted, bytes_of(out, out_bytes), "out");
}
int64_t pif_start_write_pieces(pif_file* file, const pif_pieces* wanted, const void* in, size_t in_bytes) {
  return move(file, How::kStartWrite, wanted, input(in, in_bytes), "in");
}

}  // extern "C"
