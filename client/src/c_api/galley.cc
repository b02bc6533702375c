// Galley's interface: the file's side and memory's side of a request are two patterns of one shape.
#include "pif/client/galley.h"

#include <algorithm>

#include "c_api/c_pieces.h"
#include "pif/pattern/builders.h"
#include "pif/pattern/compiled.h"

using namespace pif::c_api;
using pif::Code;
using pif::File;
using pif::Result;
using pif::patterns::Batch;
using pif::patterns::Pattern;

namespace {

struct Coupled {
  Pattern file;
  Pattern memory;
};

Result<uint64_t> number(int64_t given, const char* name) {
  if (given >= 0) return static_cast<uint64_t>(given);
  return pif::fail(Code::kInvalid, std::string("\"") + name + "\" is negative");
}

Result<Coupled> strided(int64_t offset, int64_t rec_size, int64_t f_stride, int64_t m_stride, int64_t quant) {
  PIF_TRY_VALUE(const uint64_t size, number(rec_size, "rec_size"));
  PIF_TRY_VALUE(const uint64_t count, number(quant, "quant"));
  return Coupled{pif::patterns::simple_strided(offset, size, f_stride, count),
                 pif::patterns::simple_strided(0, size, m_stride, count)};
}

Result<Coupled> nested(int64_t offset, int64_t rec_size, const gfs_stride* vec, int levels) {
  PIF_TRY_VALUE(const uint64_t size, number(rec_size, "rec_size"));
  PIF_TRY_VALUE(const uint64_t count, number(levels, "levels"));
  PIF_TRY(check({{"vec", vec, count}}));
  std::vector<pif::patterns::Stride> of_file, of_memory;
  for (const gfs_stride& level : std::span(vec, count)) {
    PIF_TRY_VALUE(const uint64_t quantity, number(level.quantity, "quantity"));
    of_file.push_back({level.f_stride, quantity});
    of_memory.push_back({level.m_stride, quantity});
  }
  Coupled out;
  PIF_TRY_VALUE(out.file, pif::patterns::nested_strided(offset, size, of_file));
  PIF_TRY_VALUE(out.memory, pif::patterns::nested_strided(0, size, of_memory));
  return out;
}

// One side of a vector. The program's pointers may go in a circle.
Result<std::vector<Batch>> side(const gfs_batch* vec, int64_t length, bool is_file, unsigned depth) {
  PIF_TRY_VALUE(const uint64_t count, number(length, "subvec_len"));
  PIF_TRY(check({{"vec", vec, count}}));
  if (depth > pif::patterns::kDepthMax) return pif::fail(Code::kTooLarge, "too many batches are inside one another");
  std::vector<Batch> out(count);
  for (uint64_t i = 0; i < count; ++i) {
    const gfs_batch& from = vec[i];
    const bool is_absolute = (is_file ? from.f_absolute : from.m_absolute) != 0;
    out[i].offset = is_file ? from.f_off : from.m_off;
    out[i].origin = is_absolute ? pif::patterns::Origin::kAbsolute : pif::patterns::Origin::kPrevious;
    out[i].stride = is_file ? from.f_stride : from.m_stride;
    PIF_TRY_VALUE(out[i].quantity, number(from.quant, "quant"));
    if (from.sub_vector == 0) {
      PIF_TRY_VALUE(out[i].size, number(from.sub.size, "size"));
    } else {
      PIF_TRY_VALUE(out[i].inner, side(from.sub.subvec, from.subvec_len, is_file, depth + 1));
    }
  }
  return out;
}

Result<Coupled> batched(const gfs_batch* vec, int quant) {
  PIF_TRY_VALUE(const auto of_file, side(vec, quant, true, 1));
  PIF_TRY_VALUE(const auto of_memory, side(vec, quant, false, 1));
  Coupled out;
  PIF_TRY_VALUE(out.file, pif::patterns::nested_batched(of_file));
  PIF_TRY_VALUE(out.memory, pif::patterns::nested_batched(of_memory));
  return out;
}

Result<Coupled> listed(const gfs_list_entry* list, int quant) {
  PIF_TRY_VALUE(const uint64_t count, number(quant, "quant"));
  PIF_TRY(check({{"list", list, count}}));
  std::vector<pif::patterns::Piece> of_file, of_memory;
  for (const gfs_list_entry& entry : std::span(list, count)) {
    PIF_TRY_VALUE(const uint64_t size, number(entry.size, "size"));
    of_file.push_back({entry.f_off, size});
    of_memory.push_back({entry.m_off, size});
  }
  return Coupled{pif::patterns::list(of_file), pif::patterns::list(of_memory)};
}

// Memory's offsets may be before `buf`: the request then begins at the lowest of them.
template <typename Build>
int64_t run_coupled(pif_file* fid, How how, const void* buf, const Build& build) {
  return with_file(fid, {{"buf", buf}}, [&](File& file) -> Result<uint64_t> {
    PIF_TRY_VALUE(Coupled both, build());
    PIF_TRY_VALUE(const auto memory, pif::patterns::Compiled::make(both.memory));
    const int64_t lowest = std::min<int64_t>(memory.bounds().lowest, 0);
    if (lowest == INT64_MIN) return pif::fail(Code::kTooLarge, "an offset of memory is too low");
    auto* const begin = static_cast<std::byte*>(const_cast<void*>(buf)) + lowest;
    const uint64_t size = static_cast<uint64_t>(memory.bounds().highest) - static_cast<uint64_t>(lowest);
    if (lowest < 0) both.memory = pif::patterns::view(-lowest, std::move(both.memory));
    return transfer(file, how, {std::move(both.file), std::move(both.memory), 0, 0, {}}, {begin, size});
  });
}

}  // namespace

#define PIF_GALLEY(how, name, buffer)                                                                             \
  int64_t gfs_##name##_strided(pif_file* fid, buffer buf, int64_t offset, int64_t rec_size, int64_t f_stride,     \
                               int64_t m_stride, int64_t quant) {                                                 \
    return run_coupled(fid, how, buf, [&] { return strided(offset, rec_size, f_stride, m_stride, quant); });      \
  }                                                                                                               \
  int64_t gfs_##name##_nested(pif_file* fid, buffer buf, int64_t offset, int64_t rec_size, const gfs_stride* vec, \
                              int levels) {                                                                       \
    return run_coupled(fid, how, buf, [&] { return nested(offset, rec_size, vec, levels); });                     \
  }                                                                                                               \
  int64_t gfs_##name##_batched(pif_file* fid, buffer buf, const gfs_batch* vec, int quant) {                      \
    return run_coupled(fid, how, buf, [&] { return batched(vec, quant); });                                       \
  }                                                                                                               \
  int64_t gfs_##name##_list(pif_file* fid, buffer buf, const gfs_list_entry* list, int quant) {                   \
    return run_coupled(fid, how, buf, [&] { return listed(list, quant); });                                       \
  }

extern "C" {

PIF_GALLEY(How::kRead, read, void*)
PIF_GALLEY(How::kWrite, write, const void*)
PIF_GALLEY(How::kStartRead, start_read, void*)
PIF_GALLEY(How::kStartWrite, start_write, const void*)

int64_t gfs_wait(pif_file* fid, int64_t operation) { return pif_wait(fid, operation); }
int gfs_test(pif_file* fid, int64_t operation) { return pif_is_done(fid, operation); }

}  // extern "C"

#undef PIF_GALLEY
