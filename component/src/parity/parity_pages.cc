#include "parity/parity_pages.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::component {
namespace {

// Where page and entry lie; checked.
struct Found {
  std::vector<std::uint64_t> words;
  Range place;
};

Result<Found> find_variable(const ParityShape& shape, ParityFiles& files, std::uint64_t page) {
  const std::uint64_t first = page == 0 ? 0 : page - 1;
  PIF_TRY_VALUE(auto words, read_entries(shape, files, first, page - first + 1));
  const std::size_t size = PageEntry::words_of(shape);
  const std::uint64_t begin = page == 0 ? 0 : PageEntry(shape, std::span(words).first(size)).end();
  std::vector<std::uint64_t> own(words.end() - static_cast<std::ptrdiff_t>(size), words.end());
  const std::uint64_t end = PageEntry(shape, own).end();
  if (end < begin || !is_page_size(shape, end - begin))
    return fail(Code::kCorrupt,
                fmt::format("{}: it cannot be at bytes {} to {} of .par", page_name(shape, page), begin, end));
  return Found{std::move(own), {begin, end}};
}

Result<Found> find(const ParityShape& shape, ParityFiles& files, std::uint64_t page) {
  if (!shape.format.is_fixed()) return find_variable(shape, files, page);
  PIF_TRY_VALUE(auto words, read_entries(shape, files, page, 1));
  const std::uint64_t bytes = fixed_page_bytes(shape);
  return Found{std::move(words), {page * bytes, (page + 1) * bytes}};
}

// Sums guard the bytes; this guards against a page that was written wrong.
Status check_header(const ParityShape& shape, std::uint64_t number, const Page& page) {
  if (shape.format.is_fixed()) return {};
  std::uint64_t bytes = sizeof(PageHeader);
  bool possible = true;
  for (const RowLengths& lengths : header_of(page)) {
    bytes += lengths.longest;
    possible &= lengths.longest <= kRecordLengthMax;
  }
  if (possible && bytes == page.bytes.size()) return {};
  return fail(Code::kCorrupt, fmt::format("{}: its rows cannot be of such lengths", page_name(shape, number)));
}

// The member's rows as they are left when all others have been taken out.
Result<PackedRows> take_rows(const ParityShape& shape, std::uint64_t number, Page page) {
  PackedRows out;
  if (shape.format.is_fixed()) {
    out.bytes = std::move(page.bytes);
    out.lengths.assign(shape.page_rows(), shape.format.record_length);
    return out;
  }
  std::size_t from = sizeof(PageHeader), to = 0;
  for (const RowLengths& lengths : header_of(page)) {
    if (lengths.all > lengths.longest)
      return fail(Code::kCorrupt,
                  fmt::format("{}: a row of {} bytes cannot be in it", page_name(shape, number), lengths.all));
    std::memmove(page.bytes.data() + to, page.bytes.data() + from, lengths.all);
    out.lengths.push_back(lengths.all);
    to += lengths.all;
    from += lengths.longest;
  }
  page.bytes.resize(to);
  out.bytes = std::move(page.bytes);
  return out;
}

}  // namespace

PageHeader header_of(const Page& page) {
  PIF_ASSERT(page.bytes.size() >= sizeof(PageHeader), page.bytes.size());
  PageHeader header;
  std::memcpy(header.data(), page.bytes.data(), sizeof header);
  return header;
}

std::string other_rows(const ParityShape& shape, std::uint64_t page, std::size_t member) {
  return fmt::format("{}: the rows of member {} are not those that it was made of", page_name(shape, page), member);
}

Result<Range> page_bytes(const ParityShape& shape, ParityFiles& files, std::uint64_t page) {
  PIF_TRY_VALUE(const Found found, find(shape, files, page));
  return found.place;
}

namespace {

// The bytes, whatever their sum.
Result<std::vector<std::byte>> read_bytes(const ParityShape& shape, ParityFiles& files, std::uint64_t page,
                                          const Found& found) {
  if (files.pages == nullptr) return fail(Code::kCorrupt, fmt::format("{}: there is no .par", page_name(shape, page)));
  if (found.place.size() > kSourceBytes) {  // so that no sum of nonsense takes memory
    PIF_TRY_VALUE(const std::uint64_t size, files.pages->size());
    if (found.place.end > size)
      return fail(Code::kCorrupt, fmt::format("{}: .par ends at byte {}", page_name(shape, page), size));
  }
  std::vector<std::byte> out(found.place.size());
  PIF_TRY_VALUE(const std::size_t n, files.pages->read(found.place.begin, out));
  if (n == out.size()) return out;
  return fail(Code::kCorrupt, fmt::format("{}: .par ends at byte {}", page_name(shape, page), found.place.begin + n));
}

}  // namespace

Result<Page> read_page(const ParityShape& shape, ParityFiles& files, std::uint64_t page) {
  PIF_TRY_VALUE(Found found, find(shape, files, page));
  Page out;
  PIF_TRY_VALUE(out.bytes, read_bytes(shape, files, page, found));
  PageEntry entry(shape, found.words);
  if (chunk_sum(shape.file, kPageStream, page, out.bytes) != entry.page_sum())
    return fail(Code::kCorrupt, fmt::format("{}: the bytes do not match their checksum", page_name(shape, page)));
  PIF_TRY(check_header(shape, page, out));
  for (std::size_t i = 0; i < shape.members(); ++i) out.vector.push_back({entry.hash(i), entry.number(i)});
  return out;
}

Result<std::uint64_t> remove_stretch(const ParityShape& shape, std::uint64_t page_number, Page& page,
                                     std::size_t member, RowSource& source) {
  const bool fixed = shape.format.is_fixed();
  PageHeader header{};
  if (!fixed) header = header_of(page);
  std::size_t place = fixed ? 0 : sizeof header;  // of the next row in the page
  std::uint64_t hash = 0;
  const auto take = [&](std::uint64_t done, const PackedRows& rows) -> Status {
    if (fixed) {
      xor_bytes(std::span(page.bytes).subspan(place, rows.bytes.size()), rows.bytes);
      place += rows.bytes.size();
      hash = linear_hash(hash, rows.bytes);
      return {};
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < rows.lengths.size(); ++i) {
      const std::uint32_t length = rows.lengths[i];
      RowLengths& lengths = header[done + i];
      if (length > lengths.longest) return fail(Code::kCorrupt, other_rows(shape, page_number, member));
      const auto row = std::span(rows.bytes).subspan(at, length);
      xor_bytes(std::span(page.bytes).subspan(place, length), row);
      hash ^= std::rotl(row_hash(row), static_cast<int>(done + i));
      lengths.all ^= length;
      at += length;
      place += lengths.longest;
    }
    return {};
  };
  PackedRows rows;
  PIF_TRY(each_part(shape.format, source, shape.row_of(member, page_number * shape.page_rows()), shape.page_rows(),
                    shape.members(), rows, take));
  if (!fixed) std::memcpy(page.bytes.data(), header.data(), sizeof header);
  return hash;
}

Result<bool> is_of_rows(const ParityShape& shape, ParityFiles& files, std::uint64_t page,
                        std::span<RowSource* const> sources) {
  PIF_ASSERT(sources.size() == shape.members(), sources.size(), shape.members());
  PIF_TRY_VALUE(const Found found, find(shape, files, page));
  Page left;
  PIF_TRY_VALUE(left.bytes, read_bytes(shape, files, page, found));
  if (!check_header(shape, page, left)) return false;
  for (std::size_t member = 0; member < shape.members(); ++member) {
    const auto removed = remove_stretch(shape, page, left, member, *sources[member]);
    if (!removed && removed.error().code == Code::kCorrupt) return false;
    if (!removed) return fail(removed.error());
  }
  const auto is_zero = [](std::byte one) { return one == std::byte{0}; };
  const std::size_t head = shape.format.is_fixed() ? 0 : sizeof(PageHeader);
  if (!std::all_of(left.bytes.begin() + static_cast<std::ptrdiff_t>(head), left.bytes.end(), is_zero)) return false;
  if (shape.format.is_fixed()) return true;
  const PageHeader header = header_of(left);
  return std::all_of(header.begin(), header.end(), [](const RowLengths& lengths) { return lengths.all == 0; });
}

Result<PackedRows> rebuild_stretch(const ParityShape& shape, ParityFiles& files, std::uint64_t page, std::size_t lost,
                                   std::span<RowSource* const> sources) {
  PIF_ASSERT(sources.size() == shape.members() && lost < shape.members(), sources.size(), shape.members(), lost);
  PIF_TRY_VALUE(Page left, read_page(shape, files, page));
  for (std::size_t member = 0; member < shape.members(); ++member) {
    if (member == lost) continue;
    PIF_TRY_VALUE(const std::uint64_t hash, remove_stretch(shape, page, left, member, *sources[member]));
    if (hash != left.vector[member].hash) return fail(Code::kCorrupt, other_rows(shape, page, member));
  }
  const std::uint64_t hash = left.vector[lost].hash;
  PIF_TRY_VALUE(PackedRows out, take_rows(shape, page, std::move(left)));
  if (stretch_hash(shape.format, out) != hash)
    return fail(Code::kCorrupt,
                fmt::format("{}: what it gives of member {} is not what it was made of", page_name(shape, page), lost));
  return out;
}

}  // namespace pif::component
