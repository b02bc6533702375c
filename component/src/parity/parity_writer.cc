#include <algorithm>
#include <bit>
#include <cstring>

#include "parity/parity_entry.h"
#include "pif/base/assert.h"

namespace pif::component {
namespace {

constexpr std::size_t kBatchBytes = 512u << 10;  // of .par in one step, and so of each member: stays in the cache
constexpr std::size_t kFoldBytes = 32u << 10;    // hashed and then combined: once from memory
constexpr std::uint64_t kBatchPages = 512;       // of variable records
constexpr std::size_t kReadBackBytes = 256u << 10;
constexpr std::uint64_t kLongPageBytes = 512u << 10;

class PageWriter {
 public:
  PageWriter(const ParityShape& shape, ParityFiles& files, std::span<RowSource* const> sources)
      : shape_(shape), files_(files), sources_(sources), words_(PageEntry::words_of(shape)) {}

  Status write_fixed(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t batch = std::max<std::uint64_t>(1, kBatchBytes / fixed_page_bytes(shape_));
    for (std::uint64_t page = first; page < first + count; page += batch)
      PIF_TRY(write_fixed_batch(page, std::min(batch, first + count - page)));
    return {};
  }

  Status write_variable(std::uint64_t first, std::uint64_t count) {
    std::uint64_t begin = 0;
    if (first > 0) {
      PIF_TRY_VALUE(auto before, read_entries(shape_, files_, first - 1, 1));
      begin = PageEntry(shape_, before).end();
    }
    bool are_long = false;  // the pages here
    for (std::uint64_t page = first, end = first + count; page < end;) {
      const std::uint64_t from = begin;
      std::uint64_t done = 0;
      if (!are_long) {
        PIF_TRY_VALUE(done, write_short_pages(page, end - page, begin));
      }
      if (done == 0) {
        PIF_TRY(write_long_page(page, begin));
        are_long = begin - from >= kLongPageBytes;
        done = 1;
      }
      page += done;
    }
    return {};
  }

 private:
  PageEntry entry(std::uint64_t i) { return {shape_, std::span(entries_).subspan(i * words_, words_)}; }

  // Seals entry i, of that page, whose vector is complete.
  void seal(std::uint64_t i, std::uint64_t page, std::uint64_t page_hash) {
    PIF_ASSERT((i + 1) * words_ <= entries_.size(), i, words_, entries_.size());
    PageEntry out = entry(i);
    out.page_sum() = page_hash ^ chunk_mix(shape_.file, kPageStream, page);
    out.vector_sum() = out.sum_of_vector(shape_.file, page);
  }
  Status write_entries(std::uint64_t first) {
    return files_.sums->write(first * words_ * sizeof(std::uint64_t), std::as_bytes(std::span(entries_)));
  }

  // ---- fixed records ----

  Status write_fixed_batch(std::uint64_t first, std::uint64_t count) {
    PIF_ASSERT(count > 0, first);
    const std::uint64_t rows = shape_.page_rows(), page_bytes = fixed_page_bytes(shape_);
    entries_.assign(count * words_, 0);
    bytes_.resize(count * page_bytes);
    for (std::size_t member = 0; member < shape_.members(); ++member) {
      const auto take = [&](std::uint64_t done, const PackedRows& part) {
        fold(member, done * shape_.format.record_length, part.bytes);
        return Status();
      };
      PIF_TRY(each_part(shape_.format, *sources_[member], shape_.row_of(member, first * rows), count * rows,
                        shape_.members(), rows_, take));
    }
    for (std::uint64_t i = 0; i < count; ++i)
      seal(i, first + i, hash_bytes(std::span(bytes_).subspan(i * page_bytes, page_bytes)));
    PIF_TRY(files_.pages->write(first * page_bytes, bytes_));
    return write_entries(first);
  }

  // A member's bytes, which begin at `at` of the batch.
  void fold(std::size_t member, std::uint64_t at, std::span<const std::byte> from) {
    const std::uint64_t page_bytes = fixed_page_bytes(shape_);
    PIF_ASSERT(at + from.size() <= bytes_.size(), at, from.size(), bytes_.size());
    while (!from.empty()) {
      const std::uint64_t page = at / page_bytes;
      const std::size_t size = std::min<std::uint64_t>({from.size(), (page + 1) * page_bytes - at, kFoldBytes});
      const auto part = from.first(size);
      std::uint64_t& hash = entry(page).hash(member);
      hash = linear_hash(hash, part);
      if (member == 0)
        std::memcpy(bytes_.data() + at, part.data(), size);
      else
        xor_bytes(std::span(bytes_).subspan(at, size), part);
      at += size;
      from = from.subspan(size);
    }
  }

  // ---- variable records ----

  // Whole pages, up to `count`: as many as one read of each member gives. None: their rows are too long for that.
  Result<std::uint64_t> write_short_pages(std::uint64_t first, std::uint64_t count, std::uint64_t& begin) {
    std::uint64_t rows = std::min(count, kBatchPages) * kVariablePageRows;
    members_.resize(shape_.members());
    for (std::size_t i = 0; i < members_.size(); ++i) {
      PIF_TRY(sources_[i]->read(shape_.row_of(i, first * kVariablePageRows), rows, shape_.members(), members_[i]));
      PIF_TRY(check_part(shape_.format, rows, members_[i]));
      rows = members_[i].lengths.size();
      if (rows >= kVariablePageRows) continue;
      members_.clear();  // long rows: their memory is needed
      return 0;
    }
    const std::uint64_t pages = rows / kVariablePageRows, old_begin = begin;
    PIF_ASSERT(pages > 0 && pages <= count, pages, count);
    entries_.assign(pages * words_, 0);
    bytes_.clear();
    places_.assign(shape_.members(), 0);
    for (std::uint64_t i = 0; i < pages; ++i) {
      const std::size_t at = bytes_.size();
      combine_page(i);
      entry(i).end() = begin = old_begin + bytes_.size();
      seal(i, first + i, hash_bytes(std::span(bytes_).subspan(at)));
    }
    PIF_TRY(files_.pages->write(old_begin, bytes_));
    PIF_TRY(write_entries(first));
    return pages;
  }

  // The i-th page of members_, behind bytes_; its vector goes to entry i.
  void combine_page(std::uint64_t i) {
    PageHeader header;
    PIF_ASSERT(members_.size() == shape_.members(), members_.size(), shape_.members());
    std::size_t bytes = sizeof header, at = bytes_.size();
    for (std::uint64_t row = 0; row < kVariablePageRows; ++row) {
      for (const PackedRows& rows : members_) {
        const std::uint32_t length = rows.lengths[i * kVariablePageRows + row];
        header[row].all ^= length;
        header[row].longest = std::max(header[row].longest, length);
      }
      bytes += header[row].longest;
    }
    bytes_.resize(at + bytes);
    std::memcpy(bytes_.data() + at, header.data(), sizeof header);
    at += sizeof header;
    PageEntry out = entry(i);
    for (std::uint64_t row = 0; row < kVariablePageRows; ++row) {
      for (std::size_t member = 0; member < members_.size(); ++member) {
        const std::uint32_t length = members_[member].lengths[i * kVariablePageRows + row];
        const auto from = std::span<const std::byte>(members_[member].bytes).subspan(places_[member], length);
        places_[member] += length;
        xor_bytes(std::span(bytes_).subspan(at, length), from);
        out.hash(member) ^= std::rotl(row_hash(from), static_cast<int>(row));
      }
      at += header[row].longest;
    }
  }

  // One page, row by row and member by member: two records are in memory.
  Status write_long_page(std::uint64_t page, std::uint64_t& begin) {
    PageHeader header;
    std::uint64_t at = begin + sizeof header;
    entries_.assign(words_, 0);
    for (std::uint64_t row = 0; row < kVariablePageRows; ++row) {
      PIF_TRY(combine_row(page, row, header[row]));
      PIF_TRY(files_.pages->write(at, bytes_));
      at += bytes_.size();
    }
    PIF_TRY(files_.pages->write(begin, std::as_bytes(std::span(header))));
    PIF_TRY_VALUE(const std::uint64_t hash, hash_back({begin, at}));
    entry(0).end() = begin = at;
    seal(0, page, hash);
    return write_entries(page);
  }

  // Into bytes_.
  Status combine_row(std::uint64_t page, std::uint64_t row, RowLengths& lengths) {
    bytes_.clear();
    for (std::size_t member = 0; member < shape_.members(); ++member) {
      const Row at = shape_.row_of(member, page * kVariablePageRows + row);
      PIF_TRY(sources_[member]->read(at, 1, 1, rows_));
      PIF_TRY(check_part(shape_.format, 1, rows_));
      lengths.all ^= rows_.lengths[0];
      lengths.longest = std::max(lengths.longest, rows_.lengths[0]);
      entry(0).hash(member) ^= std::rotl(row_hash(rows_.bytes), static_cast<int>(row));
      if (rows_.bytes.size() > bytes_.size()) std::swap(rows_.bytes, bytes_);
      PIF_ASSERT(rows_.bytes.size() <= bytes_.size(), member, rows_.bytes.size(), bytes_.size());
      xor_bytes(std::span(bytes_).first(rows_.bytes.size()), rows_.bytes);
    }
    return {};
  }

  // hash_bytes() of what .par has there: the header comes first and is known last.
  Result<std::uint64_t> hash_back(Range place) {
    HashStream stream;
    PIF_ASSERT(place.begin < place.end, place.begin, place.end);
    bytes_.resize(kReadBackBytes);
    for (std::uint64_t at = place.begin; at < place.end; at += bytes_.size()) {
      const auto part = std::span(bytes_).first(std::min<std::uint64_t>(bytes_.size(), place.end - at));
      PIF_TRY_VALUE(const std::size_t n, files_.pages->read(at, part));
      if (n != part.size()) return fail(Code::kIo, "parity that was just written is not there");
      stream.add(part);
    }
    return stream.value();
  }

  const ParityShape& shape_;
  ParityFiles& files_;
  const std::span<RowSource* const> sources_;
  const std::size_t words_;             // of an entry
  std::vector<std::uint64_t> entries_;  // of the pages of this step
  std::vector<std::byte> bytes_;        // of .par
  PackedRows rows_;                     // of one member
  std::vector<PackedRows> members_;     // short pages: of all
  std::vector<std::size_t> places_;     // in the bytes of members_
};

}  // namespace

Status write_pages(const ParityShape& shape, ParityFiles& files, std::uint64_t first, std::uint64_t count,
                   std::span<RowSource* const> sources) {
  PIF_ASSERT(files.pages != nullptr && files.sums != nullptr);
  PIF_ASSERT(sources.size() == shape.members(), sources.size(), shape.members());
  if (first >= pages_limit(shape) || count > pages_limit(shape) - first)
    return fail(Code::kInvalid, page_name(shape, first) + " cannot be");
  PageWriter writer(shape, files, sources);
  return shape.format.is_fixed() ? writer.write_fixed(first, count) : writer.write_variable(first, count);
}

}  // namespace pif::component
