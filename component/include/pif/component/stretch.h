// Writing one component in stretches: several writers append at once, each from a row and a byte on that it knows, and
// nobody reads what another one has written. Two stretches may meet inside a chunk of checksums; its bytes are handed
// over in memory, from stretch to stretch, so that each chunk is summed from what was given to be written.
//
//   StretchWriter mine(shape, first_row, first_byte, files);
//   PIF_TRY(mine.append_rows(lengths, bytes)); ...
//   PIF_TRY(mine.finish(seam));              // in the order of stretches: seam as the one before has left it
//   PIF_TRY_VALUE(Tail tail, end_at(shape, files, seam));   // after the last one
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pif/base/result.h"
#include "pif/component/component.h"

namespace pif::component {

// Where two stretches meet: what comes before, and of that the bytes of chunks that are not whole yet: of .dat and, of
// variable records, of .idx.
struct Seam {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // of .dat
  std::vector<std::byte> data;
  std::vector<std::byte> index;
};
// kInvalid unless a component of that shape can have such a seam: one that came from elsewhere is not taken on trust.
[[nodiscard]] Status check_seam(const Shape& shape, const Seam& seam);

// Thread-safety: one thread; others may write other stretches of the component at the same time.
class StretchWriter {
 public:
  // rows, bytes: of the component before this stretch. shape: one that can be. files: open for writing; they outlive
  // it.
  StretchWriter(const Shape& shape, std::uint64_t rows, std::uint64_t bytes, Files& files);
  ~StretchWriter();
  StretchWriter(StretchWriter&&) noexcept;  // moved from, it may only be destroyed
  StretchWriter& operator=(StretchWriter&&) = delete;

  // Rows behind the last one: variable records with their lengths, fixed ones without. kInvalid: they do not add up;
  // kTooLarge: a length over kRecordLengthMax; else as Writer.
  [[nodiscard]] Status append_rows(std::span<const std::uint32_t> lengths, std::span<const std::byte> data);
  // Before this stretch, and in it.
  std::uint64_t rows() const;
  std::uint64_t bytes() const;

  // Everything is in the files but the end of the last chunk, which goes into the seam. Last call. kInvalid: the seam
  // is not where this stretch begins.
  [[nodiscard]] Status finish(Seam& seam);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The component ends at the seam, which the last stretch has left: writes what is in it.
[[nodiscard]] Result<Tail> end_at(const Shape& shape, Files& files, const Seam& seam);

}  // namespace pif::component
