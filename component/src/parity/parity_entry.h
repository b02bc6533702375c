// The parts of pages, for those who read and those who write them: entries of .psum, XOR of bytes, the rows of a page
// of variable records. docs/FORMAT.md "Parity".
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pif/component/parity.h"

namespace pif::component {

// An entry of .psum as it is stored.
class PageEntry {
 public:
  // words: words_of(shape) of them.
  PageEntry(const ParityShape& shape, std::span<std::uint64_t> words)
      : words_(words), fixed_(shape.format.is_fixed()) {}
  static std::size_t words_of(const ParityShape& shape) {
    return (shape.format.is_fixed() ? 2 : 3) + 2 * shape.members();
  }

  std::uint64_t& page_sum() { return words_[0]; }
  std::uint64_t& vector_sum() { return words_[1]; }
  std::uint64_t& end() { return words_[2]; }  // variable records only
  std::uint64_t& hash(std::size_t member) { return vector()[2 * member]; }
  std::uint64_t& number(std::size_t member) { return vector()[2 * member + 1]; }
  // The sum of all behind both sums.
  std::uint64_t sum_of_vector(FileId file, std::uint64_t page) const;

 private:
  std::span<std::uint64_t> vector() { return words_.subspan(fixed_ ? 2 : 3); }

  std::span<std::uint64_t> words_;
  bool fixed_;
};

// "file 12, parity page 3"
std::string page_name(const ParityShape& shape, std::uint64_t page);
// So many pages can no file have: arithmetic with lower numbers does not wrap.
std::uint64_t pages_limit(const ParityShape& shape);
// Bytes of a page of fixed records.
std::uint64_t fixed_page_bytes(const ParityShape& shape);
// Whether a page can have so many bytes.
bool is_page_size(const ParityShape& shape, std::uint64_t bytes);
// The words of entries [first, first + count), checked; errors as of read_page().
[[nodiscard]] Result<std::vector<std::uint64_t>> read_entries(const ParityShape& shape, ParityFiles& files,
                                                              std::uint64_t first, std::uint64_t count);

// into ^= from; of the same size.
void xor_bytes(std::span<std::byte> into, std::span<const std::byte> from);
// The hash of one row of variable records, as stretch_hash() takes it.
std::uint64_t row_hash(std::span<const std::byte> row);

// The entry of each row in front of a page of variable records.
struct RowLengths {
  std::uint32_t all = 0;  // XOR
  std::uint32_t longest = 0;
};
using PageHeader = std::array<RowLengths, kVariablePageRows>;
static_assert(sizeof(PageHeader) == 8 * kVariablePageRows);

// kCorrupt unless `rows` are what a source may give when asked for `count`.
[[nodiscard]] Status check_part(const Format& format, std::uint64_t count, const PackedRows& rows);

// Hands all `count` rows to use(done before, rows), in as many parts as the source makes of them. `rows`: its memory.
template <typename Use>
[[nodiscard]] Status each_part(const Format& format, RowSource& source, Row first, std::uint64_t count,
                               std::uint64_t step, PackedRows& rows, Use use) {
  for (std::uint64_t done = 0; done < count; done += rows.lengths.size()) {
    PIF_TRY(source.read(first + done * step, count - done, step, rows));
    PIF_TRY(check_part(format, count - done, rows));
    PIF_TRY(use(done, rows));
  }
  return {};
}

}  // namespace pif::component
