#include "pif/tool/numbering.h"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/tool/message.h"
#include "pif/tool/narrow.h"
#include "pif/tool/reduce.h"

namespace pif::tool {
namespace {

// Counts between workers: a bit each behind this, where none is over 1; else NarrowNumbers.
constexpr char kBits = 'b';
constexpr char kNarrow = 'n';

std::string pack_counts(std::span<const std::uint32_t> counts) {
  std::uint32_t most = 0;
  for (const std::uint32_t count : counts) most = std::max(most, count);
  if (most > 1) {
    const std::size_t width = narrow_width(most, Room::kAlways);
    std::string bytes(2 + counts.size() * width, kNarrow);
    pack_narrow(counts.size(), width, reinterpret_cast<std::byte*>(bytes.data() + 1),
                [&](std::uint64_t i) { return counts[i]; });
    return bytes;
  }
  std::string bytes(1 + (counts.size() + 7) / 8, '\0');
  bytes[0] = kBits;
  for (std::size_t i = 0; i < counts.size(); ++i)
    bytes[1 + i / 8] = static_cast<char>(bytes[1 + i / 8] | static_cast<char>(counts[i] << (i % 8)));
  return bytes;
}

// Adds up counts that were packed, from the front on.
class PackedCounts {
 public:
  // False: it is not `count` of them.
  bool read(std::string_view bytes, std::uint64_t count) {
    if (bytes.empty()) return false;
    is_bits_ = bytes[0] == kBits;
    rest_ = std::as_bytes(std::span(bytes.substr(1)));
    if (is_bits_) return rest_.size() == (count + 7) / 8;
    const auto numbers = NarrowNumbers::take(rest_, count, Room::kAlways);
    if (bytes[0] != kNarrow || !numbers || !rest_.empty()) return false;
    numbers_ = *numbers;
    return true;
  }
  std::uint32_t at(std::uint64_t i) const {
    return is_bits_ ? std::to_integer<std::uint32_t>(rest_[i / 8] >> (i % 8)) & 1 : numbers_[i];
  }
  // The sum of the first i of them; i does not fall.
  std::uint64_t sum_before(std::uint64_t i) {
    PIF_ASSERT(i >= next_, i, next_);
    if (is_bits_) {
      for (; next_ + 64 <= i; next_ += 64) {
        std::uint64_t word = 0;
        std::memcpy(&word, rest_.data() + next_ / 8, sizeof word);
        sum_ += static_cast<std::uint64_t>(std::popcount(word));
      }
      // The rest is looked at again, since `next_` stays at a whole word.
      std::uint64_t more = 0;
      for (std::uint64_t at = next_; at < i; at += 8) {
        const std::uint64_t bits = std::min<std::uint64_t>(i - at, 8);
        const auto byte = std::to_integer<std::uint32_t>(rest_[at / 8]) & ((1u << bits) - 1);
        more += static_cast<std::uint64_t>(std::popcount(byte));
      }
      return sum_ + more;
    }
    for (; next_ < i; ++next_) sum_ += numbers_[next_];
    return sum_;
  }

 private:
  bool is_bits_ = true;
  std::span<const std::byte> rest_;
  NarrowNumbers numbers_;
  std::uint64_t next_ = 0, sum_ = 0;
};

}  // namespace

Range Numbering::window() const { return {begin_, std::min(begin_ + kWindow, input_.file_length().records)}; }

Range Numbering::rows() const {
  if (!input_.is_here() || is_over()) return {};
  return rows_of(input_.index(), window());
}

// The counts of one part of the window's records: those of every worker's rows there.
Result<std::vector<std::uint32_t>> Numbering::slice(std::span<const std::uint32_t> counts, Range own) {
  const Range records = window();
  const auto slice_of = [&](std::uint32_t rank) {
    const Range part = part_of_array(records.size(), rank, worker_.width());
    return Range{records.begin + part.begin, records.begin + part.end};
  };
  std::vector<std::string> packed_counts(worker_.width());
  for (std::uint32_t rank = 0; rank < worker_.width() && input_.is_here(); ++rank) {
    const Range rows = rows_of(input_.index(), slice_of(rank));
    PIF_ASSERT(own.begin <= rows.begin && rows.end <= own.end, rows.begin, rows.end, own.begin, own.end);
    packed_counts[rank] = pack_counts(counts.subspan(rows.begin - own.begin, rows.size()));
  }
  const std::vector<std::string_view> views(packed_counts.begin(), packed_counts.end());
  PIF_TRY_VALUE(const auto come, team_.all_to_all(views));
  PIF_TRY_VALUE(const auto ranks, worker_.ranks_on(input_));
  const Range here = slice_of(worker_.rank());
  std::vector<std::uint32_t> all(here.size());
  for (LfsIndex lfs = 0; lfs < ranks.size(); ++lfs) {
    const Range rows = rows_of(lfs, here);
    PackedCounts of_rows;
    if (!of_rows.read(come[ranks[lfs]], rows.size())) return sent_nonsense(ranks[lfs], "counts of other rows");
    for (Row row = rows.begin; row < rows.end; ++row)
      all[input_.layout().record_at({lfs, row}) - here.begin] = of_rows.at(row - rows.begin);
  }
  return all;
}

Result<std::vector<std::uint64_t>> Numbering::next(std::span<const std::uint32_t> counts) {
  const Range own = rows(), records = window();
  if (counts.size() != own.size())
    return fail(Code::kInvalid, fmt::format("{} counts of {} rows", counts.size(), own.size()));
  PIF_TRY_VALUE(const auto here, slice(counts, own));
  PIF_TRY_VALUE(const auto slices, team_.all_gather(pack_counts(here)));
  std::vector<std::uint64_t> numbers;
  numbers.reserve(own.size());
  for (std::uint32_t rank = 0; rank < slices.size(); ++rank) {
    const Range part = part_of_array(records.size(), rank, worker_.width());
    const Range there{records.begin + part.begin, records.begin + part.end};
    PackedCounts of_records;
    if (!of_records.read(slices[rank], there.size())) return sent_nonsense(rank, "counts of other records");
    const Range rows = own.empty() ? Range{} : rows_of(input_.index(), there);
    for (Row row = rows.begin; row < rows.end; ++row)
      numbers.push_back(records_ +
                        of_records.sum_before(input_.layout().record_at({input_.index(), row}) - there.begin));
    records_ += of_records.sum_before(there.size());
  }
  PIF_ASSERT(numbers.size() == own.size(), numbers.size(), own.size());
  begin_ = records.end;
  return numbers;
}

}  // namespace pif::tool
