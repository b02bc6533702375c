#include "file/created_writer.h"

#include <algorithm>

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/access/lfs_links.h"
#include "pif/access/row_body.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "session/pool.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kParallelBytes = 256u << 10;
constexpr std::uint64_t kStagesBytes = 16u << 20;  // of all LFSs of a file together
constexpr std::uint64_t kBehindBytes = 16u << 20;  // sent, or waiting to be, and not yet acknowledged
constexpr std::uint64_t kStageBytesMin = 16u << 10;

// Checks what may be written where. last_bytes: of a short last record in `in`, else 0.
Status check_created(const FileState& file, RecordNumber first, std::uint64_t count, std::uint32_t last_bytes) {
  const std::uint64_t length = file.parts.format.record_length;
  PIF_ASSERT(count > 0 && last_bytes < length, count, last_bytes);
  const std::uint64_t records = file.length.records();
  if (first > records) return file.past_end(first);
  const bool ends_short = records > 0 && file.length.ends_short();
  if (ends_short && first == records) {
    return fail(Code::kInvalid, fmt::format("{}: the last record is short, so that no record can follow it; bytes can",
                                            file.parts.path));
  }
  if (last_bytes == 0 || first + count > records) return {};
  const bool same_last = first + count == records && ends_short && last_bytes >= file.length.record_bytes(records - 1);
  if (same_last) return {};
  return fail(Code::kInvalid, fmt::format("{}: {} bytes are no whole number of records of {} bytes, and not the end",
                                          file.parts.path, (count - 1) * length + last_bytes, length));
}

}  // namespace

CreatedWriter::CreatedWriter(FileState& file)
    : file_(file), sinks_(file.width()), behind_(file.session->links(), file.grant) {}

// ---- components ----------------------------------------------------------------------------------------------------

Result<bool> CreatedWriter::open(std::span<const access::RowRange> rows) {
  PIF_ASSERT(file_.creating(), file_.phase);
  access::Requests attaches(file_.session->links(), file_.grant);
  for (const access::RowRange& range : rows) {
    if (!sinks_[range.lfs]) file_.component(range.lfs).open_writer(attaches);
  }
  if (!attaches.idle()) PIF_TRY(file_.run(attaches));
  const std::uint64_t stage_bytes = std::clamp<std::uint64_t>(kStagesBytes / file_.width(), kStageBytesMin, kBulkBytes);
  bool direct = true;
  for (const access::RowRange& range : rows) {
    PIF_ASSERT(range.lfs < sinks_.size(), range.lfs, sinks_.size());
    auto& sink = sinks_[range.lfs];
    access::ComponentAccess& component = file_.component(range.lfs);
    PIF_ASSERT(component.path() != access::DataPath::kAuto, range.lfs);
    has_copies_ = has_copies_ || file_.parts.is_absent(range.lfs);
    if (!sink && component.by_message()) {
      sink = std::make_unique<access::RowSink>(
          file_.parts, range.lfs,
          access::RowSink::ByMessage{behind_, file_.counts.bytes_by_message, stage_bytes, file_.kind.is_small});
    } else if (!sink) {
      sink = std::make_unique<access::RowSink>(file_.parts, range.lfs, component.files());
    }
    direct = direct && sink->is_direct();
  }
  return direct;
}

Status CreatedWriter::make_readable(LfsIndex lfs) {
  if (!sinks_[lfs]) {
    const access::RowRange range{lfs};
    PIF_TRY(open(std::span(&range, 1)));
  }
  PIF_ASSERT(sinks_[lfs] != nullptr, lfs);
  access::RowSink& sink = *sinks_[lfs];
  if (!sink.is_direct()) return {};  // only what is gathered can be read, see gathered()
  PIF_TRY_VALUE(const auto tail, sink.show());
  if (tail) file_.component(lfs).show(*tail);
  return {};
}

std::span<const std::byte> CreatedWriter::gathered(const access::RowRange& rows) const {
  PIF_ASSERT(rows.lfs < sinks_.size(), rows.lfs, sinks_.size());
  return sinks_[rows.lfs] ? sinks_[rows.lfs]->gathered(rows) : std::span<const std::byte>();
}

void CreatedWriter::drop() {
  behind_.drop_all();
  for (auto& sink : sinks_) sink.reset();
}

Status CreatedWriter::give_up() {
  PIF_TRY(flush());
  PIF_TRY(file_.run(behind_));
  for (const auto& sink : sinks_) {
    if (sink) PIF_TRY(sink->finish());
  }
  drop();
  return {};
}

// ---- fixed records -------------------------------------------------------------------------------------------------

void CreatedWriter::note_written(const access::RowRange& rows) {
  PIF_ASSERT(rows.lfs < sinks_.size() && sinks_[rows.lfs] != nullptr, rows.lfs, sinks_.size());
  if (sinks_[rows.lfs]->is_direct()) file_.counts.bytes_by_descriptor += rows.rows * file_.parts.format.record_length;
}

Status CreatedWriter::bound_behind() {
  PIF_TRY(behind_.step());
  while (behind_.bytes() > kBehindBytes) PIF_TRY(file_.session->pump(behind_));
  PIF_ASSERT(behind_.bytes() <= kBehindBytes, behind_.bytes());
  return {};
}

Status CreatedWriter::write_by_message(const access::RowRange& rows, Range records, std::span<const std::byte> in) {
  const std::uint64_t rows_at_once = access::rows_per_message(file_.parts.format.record_length);
  PIF_ASSERT(rows_at_once > 0, rows.lfs, rows.rows);
  for (const access::RowRange& piece : access::pieces_of(file_.parts.layout, rows, rows_at_once)) {
    PIF_TRY(sink(rows.lfs).write_records(piece, records, in));
    PIF_TRY(bound_behind());
  }
  return {};
}

Status CreatedWriter::write_all(Range records, std::span<const std::byte> in, bool direct) {
  if (direct && in.size() >= kParallelBytes && ranges_.size() > 1) {
    std::vector<Status> outcome(ranges_.size());
    file_.session->pool().run(ranges_.size(), [&](std::size_t i) {
      outcome[i] = sink(ranges_[i].lfs).write_records(ranges_[i], records, in);
    });
    for (const Status& status : outcome) PIF_TRY(status);
    return {};
  }
  for (const access::RowRange& rows : ranges_) {
    PIF_TRY(sink(rows.lfs).is_direct() ? sink(rows.lfs).write_records(rows, records, in)
                                       : write_by_message(rows, records, in));
  }
  return {};
}

Status CreatedWriter::write(RecordNumber first, std::span<const std::byte> in) {
  const std::uint64_t length = file_.parts.format.record_length;
  const std::uint64_t count = (in.size() + length - 1) / length;
  if (count == 0) return {};
  PIF_TRY(check_created(file_, first, count, static_cast<std::uint32_t>(in.size() % length)));
  const Range records{first, first + count};
  access::split(file_.parts.layout, records, ranges_);
  PIF_ASSERT(!ranges_.empty() && ranges_.size() <= file_.width(), first, count, ranges_.size());
  PIF_TRY_VALUE(const bool direct, open(ranges_));
  PIF_TRY(write_all(records, in, direct));
  for (const access::RowRange& rows : ranges_) note_written(rows);
  file_.length.grow_to({records.end, first * length + in.size()});
  return {};
}

// ---- variable records ----------------------------------------------------------------------------------------------

Status CreatedWriter::append_batch(std::span<const std::uint32_t> lengths, std::span<const std::byte> data) {
  const FileParts& parts = file_.parts;
  const bool delimited = parts.format.kind == RecordKind::kDelimited;
  if (delimited && unterminated_) {
    return fail(Code::kInvalid,
                fmt::format("{}: the last record lacks its delimiter, so that none can follow it", parts.path));
  }
  RecordNumber n = file_.length.records();
  access::split(parts.layout, {n, n + lengths.size()}, ranges_);
  PIF_TRY(open(ranges_));
  std::size_t offset = 0;
  for (const std::uint32_t length : lengths) {
    const Cell cell = parts.layout.locate(n++);
    PIF_ASSERT(sinks_[cell.lfs] != nullptr, n, cell.lfs);
    access::RowSink& to = sink(cell.lfs);
    const std::uint64_t behind_before = behind_.bytes();
    PIF_TRY(to.append_row(cell.row, data.subspan(offset, length)));
    if (behind_.bytes() != behind_before) PIF_TRY(bound_behind());
    if (to.is_direct()) file_.counts.bytes_by_descriptor += length;
    offset += length;
    file_.length.grow_to({n, file_.length.bytes() + length});
  }
  PIF_ASSERT(offset == data.size(), offset, data.size());
  unterminated_ =
      delimited && !lengths.empty() && (lengths.back() == 0 || data.back() != std::byte{parts.format.delimiter});
  return {};
}

// ---- the end -------------------------------------------------------------------------------------------------------

Status CreatedWriter::flush() {
  for (const auto& sink : sinks_) {
    if (!sink) continue;
    PIF_TRY(sink->flush());
    PIF_TRY(bound_behind());
  }
  return {};
}

// Every LFS that got rows, but those that are absent; and LFS 0 of a file that has any, since it is the one that knows
// the length. Of a file with parity no LFS gets a component without rows: the directory has the length until the first
// append.
Status CreatedWriter::add_seals(access::Requests& requests) {
  if (sealing_.state() == access::Sealing::State::kSealed) return {};
  std::vector<access::ComponentEnd> ends;
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    const bool has_rows = sinks_[lfs] && sinks_[lfs]->rows() > 0;
    if (!has_rows && (lfs != 0 || file_.length.records() == 0 || file_.parts.is_protected())) continue;
    access::ComponentEnd end;
    end.lfs = lfs;
    if (sinks_[lfs]) {
      PIF_TRY_VALUE(end, sinks_[lfs]->finish());
    }
    if (file_.parts.is_absent(lfs)) continue;
    file_.component(lfs).close();
    ends.push_back(end);
  }
  PIF_ASSERT(ends.size() <= file_.width(), ends.size(), file_.width());
  sealing_.start(requests, file_.length.now(), ends, file_.session->timeout());
  return {};
}

Status CreatedWriter::seal() {
  PIF_TRY(flush());
  PIF_TRY(file_.run(behind_));
  access::Requests seals(file_.session->links(), file_.grant);
  PIF_TRY(add_seals(seals));
  return file_.run(seals);
}

// Few bytes go over one connection, on which an LFS takes rows before the seal that was sent after them. More of them
// go over another one, and wait for credit. Copies of an absent LFS's rows go to those who gather, perhaps without a
// seal before that.
Status CreatedWriter::start_sealing() {
  PIF_TRY(flush());
  const bool is_small = file_.kind.is_small && file_.length.bytes() <= access::kSmallBodyBytes;
  if (!is_small || has_copies_) PIF_TRY(file_.run(behind_));
  PIF_TRY(add_seals(behind_));
  return behind_.step();
}

}  // namespace pif::client
