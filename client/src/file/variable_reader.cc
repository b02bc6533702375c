// Records of variable length: batches, and where they are in the byte view.
#include <algorithm>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/record_reader.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kRowsAtOnce = 64u << 10;  // of one LFS: bounds the lengths held in memory

using access::FetchedRows;

// Moves records from what the LFSs sent into the batch, in their order, as far as all are there and `bytes_max` allows.
void merge(const parity::Layout& layout, Range records, std::size_t bytes_max, std::vector<FetchedRows>& fetched,
           RecordBatch& batch) {
  for (RecordNumber n = records.begin; n < records.end; ++n) {
    const Cell cell = layout.locate(n);
    FetchedRows& from = fetched[cell.lfs];
    PIF_ASSERT(cell.row >= from.first, cell.lfs, cell.row, from.first);
    const std::uint64_t index = cell.row - from.first;
    if (index >= from.lengths.size()) return;
    const std::uint32_t length = from.lengths[index];
    if (!batch.lengths.empty() && batch.data.size() + length > bytes_max) return;
    PIF_ASSERT(from.offset + length <= from.data.size(), from.offset, length, from.data.size());
    batch.lengths.push_back(length);
    const auto begin = from.data.begin() + static_cast<std::ptrdiff_t>(from.offset);
    batch.data.insert(batch.data.end(), begin, begin + length);
    from.offset += length;
  }
}

// How many records to ask for, so that about `bytes_max` come.
std::uint64_t records_worth(const FileLength& file_length, std::uint64_t count, std::size_t bytes_max,
                            std::uint32_t width) {
  const std::uint64_t average = file_length.records == 0 ? 1 : file_length.bytes / file_length.records + 1;
  const std::uint64_t wanted = bytes_max / average + bytes_max / average / 8 + width;
  return std::min({count, wanted, kRowsAtOnce * width});
}

}  // namespace

Status RecordReader::fetch_direct(const RowRange& rows, std::size_t bytes_max, FetchedRows& out,
                                  access::Requests& requests) {
  access::ComponentAccess& component = file_.component(rows.lfs);
  const auto fetched = access::read_rows_direct(file_.parts, component, rows, bytes_max, out);
  file_.counts.bytes_by_descriptor += out.data.size();
  if (fetched) return {};
  return access::recover_rows(requests, component, rows, bytes_max, out, file_.counts.bytes_by_message,
                              fetched.error());
}

Status RecordReader::fetch(Range records, std::size_t bytes_max, std::vector<FetchedRows>& fetched) {
  std::vector<RowRange> ranges;
  access::split(file_.parts.layout, records, ranges);
  lfss_.clear();
  for (const RowRange& rows : ranges) lfss_.push_back(rows.lfs);
  PIF_TRY(open(lfss_));
  access::Requests requests(file_.session->links(), file_.grant);
  for (const RowRange& rows : ranges) {
    if (!file_.component(rows.lfs).by_message()) continue;
    if (file_.creating()) return cannot_read_back(rows.lfs);
    access::read_rows_by_message(requests, rows, fetched[rows.lfs], file_.counts.bytes_by_message);
  }
  PIF_TRY(requests.step());
  PIF_ASSERT(!ranges.empty(), records.begin, records.end);
  const std::size_t each = bytes_max / ranges.size() + bytes_max / ranges.size() / 4 + 1;
  for (const RowRange& rows : ranges) {
    if (!file_.component(rows.lfs).by_message()) PIF_TRY(fetch_direct(rows, each, fetched[rows.lfs], requests));
  }
  return file_.run(requests);
}

Result<RecordBatch> RecordReader::read_batch(RecordNumber first, std::uint64_t count, std::size_t bytes_max) {
  PIF_TRY(file_.check_usable());
  PIF_TRY(file_.keep_rights());
  const FileParts& parts = file_.parts;
  if (parts.format.is_fixed())
    return fail(Code::kInvalid, fmt::format("{}: its records have a fixed length: use read", parts.path));
  PIF_TRY_VALUE(const FileLength now,
                file_.length.for_records(count > UINT64_MAX - first ? UINT64_MAX : first + count));
  if (first > now.records) return fail(file_.past_end(first).error());
  const std::uint64_t wanted = std::min(count, now.records - first);
  RecordBatch batch;
  std::vector<FetchedRows> fetched(file_.width());
  while (batch.lengths.size() < wanted && (batch.lengths.empty() || batch.data.size() < bytes_max)) {
    const std::uint64_t done = batch.lengths.size();
    const std::size_t room = std::max<std::size_t>(bytes_max - std::min(bytes_max, batch.data.size()), 1);
    const std::uint64_t some = records_worth(now, wanted - done, room, file_.width());
    PIF_ASSERT(some > 0 && some <= wanted - done, some, wanted, done);
    PIF_TRY(file_.in_newest_view([&] {
      for (FetchedRows& one : fetched) one = {};
      return fetch({first + done, first + done + some}, room, fetched);
    }));
    merge(parts.layout, {first + done, first + done + some}, bytes_max, fetched, batch);
    if (batch.lengths.size() == done) break;  // the next record does not fit
  }
  PIF_ASSERT(batch.lengths.size() <= wanted, batch.lengths.size(), wanted);
  return batch;
}

// The lengths of all rows before them are needed, so all are rebuilt.
Status RecordReader::add_rebuilt_offsets(LfsIndex lfs, std::span<const Row> rows, std::vector<std::uint64_t>& sums,
                                         const Error& why) {
  const parity::Layout& layout = file_.parts.layout;
  PIF_ASSERT(!rows.empty() && rows.size() == sums.size(), rows.size(), sums.size());
  const Row end = *std::max_element(rows.begin(), rows.end());
  for (Row row = 0; row < end;) {
    FetchedRows fetched;
    access::Requests requests(file_.session->links(), file_.grant);
    const RowRange range{lfs, row, std::min(end - row, kRowsAtOnce), layout.record_at({lfs, row}), false};
    access::read_rows_rebuilt(requests, range, fetched, file_.counts.bytes_by_message, why);
    PIF_TRY(file_.run(requests));
    PIF_ASSERT(!fetched.lengths.empty(), lfs, row, end);
    for (const std::uint32_t length : fetched.lengths) {
      for (std::size_t i = 0; i < rows.size(); ++i) sums[i] += rows[i] > row ? length : 0;
      ++row;
    }
  }
  return {};
}

Result<std::vector<std::uint64_t>> RecordReader::byte_offsets(std::span<const RecordNumber> records) {
  return file_.in_newest_view([&] { return byte_offsets_once(records); });
}

Result<std::vector<std::uint64_t>> RecordReader::byte_offsets_once(std::span<const RecordNumber> records) {
  std::vector<std::uint64_t> sums(records.size(), 0);
  std::vector<std::vector<Row>> rows(file_.width());
  lfss_.clear();
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    for (const RecordNumber n : records) rows[lfs].push_back(file_.parts.layout.rows(lfs, n));
    const bool has_none = std::all_of(rows[lfs].begin(), rows[lfs].end(), [](Row row) { return row == 0; });
    if (!has_none) lfss_.push_back(lfs);  // else there is perhaps no component at all
  }
  PIF_TRY(open(lfss_));
  access::Requests requests(file_.session->links(), file_.grant);
  std::vector<std::optional<Error>> away(file_.width());
  for (const LfsIndex lfs : lfss_) {
    if (file_.creating() && file_.component(lfs).by_message()) return fail(cannot_read_back(lfs).error());
    PIF_TRY(access::add_offsets(requests, file_.component(lfs), rows[lfs], sums, away[lfs]));
  }
  PIF_TRY(file_.run(requests));
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (away[lfs]) PIF_TRY(add_rebuilt_offsets(lfs, rows[lfs], sums, *away[lfs]));
  }
  return sums;
}

}  // namespace pif::client
