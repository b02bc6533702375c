#include "parity/parity_entry.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "stream/stream.h"

namespace pif::component {

static_assert(std::endian::native == std::endian::little, "entries are stored as this machine has them");

std::uint64_t ParityShape::page_rows() const {
  if (!format.is_fixed()) return kVariablePageRows;
  return std::max<std::uint64_t>(1, kChunkBytesAim / format.record_length);
}

std::uint64_t ParityShape::full_groups(std::span<const std::uint64_t> rows) const {
  PIF_ASSERT(rows.size() == members() && members() > 0, rows.size(), members());
  std::uint64_t groups = UINT64_MAX;
  for (std::size_t i = 0; i < members(); ++i) {
    const std::uint64_t behind = rows[i] - std::min<std::uint64_t>(rows[i], offsets[i]);
    groups = std::min(groups, behind / members() + (behind % members() != 0 ? 1 : 0));
  }
  return groups;
}

std::uint64_t PageEntry::sum_of_vector(FileId file, std::uint64_t page) const {
  return chunk_sum(file, kVectorStream, page, std::as_bytes(words_.subspan(2)));
}

std::string page_name(const ParityShape& shape, std::uint64_t page) {
  return fmt::format("file {}, parity page {}", shape.file.value, page);
}

std::uint64_t fixed_page_bytes(const ParityShape& shape) { return shape.page_rows() * shape.format.record_length; }

bool is_page_size(const ParityShape& shape, std::uint64_t bytes) {
  constexpr std::uint64_t kPageBytesMax = sizeof(PageHeader) + kVariablePageRows * std::uint64_t{kRecordLengthMax};
  if (shape.format.is_fixed()) return bytes == fixed_page_bytes(shape);
  return bytes >= sizeof(PageHeader) && bytes <= kPageBytesMax;
}

std::uint64_t pages_limit(const ParityShape& shape) {
  const std::uint64_t entry = PageEntry::words_of(shape) * sizeof(std::uint64_t);
  const std::uint64_t bytes = shape.format.is_fixed() ? fixed_page_bytes(shape) : sizeof(PageHeader);
  return kLengthMax / std::max(entry, bytes * shape.members());
}

Result<std::vector<std::uint64_t>> read_entries(const ParityShape& shape, ParityFiles& files, std::uint64_t first,
                                                std::uint64_t count) {
  const std::size_t words = PageEntry::words_of(shape), bytes = words * sizeof(std::uint64_t);
  if (files.sums == nullptr || first >= pages_limit(shape))
    return fail(Code::kEndOfFile, fmt::format("{} is not there", page_name(shape, first)));
  std::vector<std::uint64_t> out(count * words);
  PIF_TRY_VALUE(const std::size_t n, files.sums->read(first * bytes, std::as_writable_bytes(std::span(out))));
  if (n != count * bytes)
    return fail(Code::kEndOfFile, fmt::format("{} is not there: .psum ends at byte {}",
                                              page_name(shape, first + n / bytes), first * bytes + n));
  for (std::uint64_t i = 0; i < count; ++i) {
    PageEntry entry(shape, std::span(out).subspan(i * words, words));
    if (entry.sum_of_vector(shape.file, first + i) != entry.vector_sum())
      return fail(Code::kCorrupt,
                  fmt::format("{}: its vector does not match its checksum", page_name(shape, first + i)));
  }
  return out;
}

void xor_bytes(std::span<std::byte> into, std::span<const std::byte> from) {
  PIF_ASSERT(into.size() == from.size(), into.size(), from.size());
  constexpr std::size_t kBlock = 64;  // several vectors: twice as fast as one by one
  std::byte* const __restrict a = into.data();
  const std::byte* const __restrict b = from.data();
  const std::size_t size = into.size();
  std::size_t i = 0;
  for (; i + kBlock <= size; i += kBlock)
    for (std::size_t k = 0; k < kBlock; ++k) a[i + k] ^= b[i + k];
  for (; i < size; ++i) a[i] ^= b[i];
}

Status check_part(const Format& format, std::uint64_t count, const PackedRows& rows) {
  std::uint64_t total = 0;
  bool right = !rows.lengths.empty() && rows.lengths.size() <= count;
  for (const std::uint32_t length : rows.lengths) {
    total += length;
    right &= format.is_fixed() ? length == format.record_length : length <= kRecordLengthMax;
  }
  if (right && total == rows.bytes.size()) return {};
  return fail(Code::kCorrupt, fmt::format("{} rows of {} bytes came for {} rows of a parity page", rows.lengths.size(),
                                          rows.bytes.size(), count));
}

}  // namespace pif::component
