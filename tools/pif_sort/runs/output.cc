#include "runs/output.h"

#include <algorithm>
#include <cstring>

#include "pif/base/assert.h"
#include "pif/tool/parallel.h"
#include "pif/tool/parts.h"
#include "runs/tails.h"

namespace pif::sort {
namespace {

constexpr std::size_t kAppendBytes = 4u << 20;  // gathered before they are written
constexpr std::size_t kAppendRows = 1u << 16;   // the same

constexpr std::size_t kPartRows = 1024;  // fewer are not worth a thread

Bytes record_of(std::span<const RunView> runs, Pick pick) { return runs[pick.run].record(pick.index); }

// f(part) for parts of [0, count), on so many threads.
template <typename F>
void in_parts(unsigned threads, std::size_t count, const F& f) {
  const tool::Parts parts({0, count}, {.most = threads, .least = kPartRows});
  tool::for_each_part(threads, parts.size(), [&](std::size_t i) { f(parts[i]); });
}

}  // namespace

void OutputRecord::copy(Bytes record, std::byte* to) const {
  if (!record.empty()) std::memcpy(to, record.data(), record.size());
  if (lacks_end(record)) to[record.size()] = static_cast<std::byte>(format_.delimiter);
}

// ---- all at once --------------------------------------------------------------------------------------------------

std::uint64_t ParallelOutput::alignment(const Format& format, const parity::Layout& layout) {
  return layout.width() * (component::chunk_bytes_for(format) / format.record_length);
}

ParallelOutput::ParallelOutput(const tool::Output& output, std::span<component::Files> files, std::uint64_t records)
    : output_(output), sinks_(files.size()) {
  for (std::size_t lfs = 0; lfs < files.size(); ++lfs) {
    if (output.layout().rows(static_cast<LfsIndex>(lfs), records) > 0)
      sinks_[lfs] = std::make_unique<access::RowSink>(output.file(), static_cast<LfsIndex>(lfs), files[lfs]);
  }
}

template <typename F>
Status ParallelOutput::for_each_lfs(const OutputBatch& batch, const F& f) const {
  const parity::Layout& layout = output_.layout();
  const Range positions{batch.first, batch.first + batch.count};
  for (std::size_t i = 0; i < sinks_.size(); ++i) {
    // Not all workers at the same one: a local file system lets one write to a file at a time.
    const auto lfs = static_cast<LfsIndex>(((output_.is_here() ? output_.index() : 0) + i) % sinks_.size());
    const Range rows = layout.rows(lfs, positions);
    if (!rows.empty()) PIF_TRY(f(lfs, rows, layout.record_at({lfs, rows.begin}) - batch.first));
  }
  return {};
}

void ParallelOutput::fill(std::uint64_t first, Merger& merge, std::span<const RunView> runs, OutputBatch& batch) const {
  batch.first = first;
  batch.count = 0;
  for (; batch.count < batch.picks.size() && !merge.is_done(); merge.advance())
    batch.picks[batch.count++] = merge.peek();
  const std::span<const Pick> picks(batch.picks.data(), batch.count);
  std::byte* to = batch.bytes.data();
  const std::size_t length = output_.format().record_length, step = output_.layout().width();
  (void)for_each_lfs(batch, [&](LfsIndex, Range rows, std::size_t at) -> Status {
    for (Row row = rows.begin; row < rows.end; ++row, at += step, to += length) {
      if (const std::size_t later = at + kAhead * step; later < picks.size())
        runs[picks[later].run].fetch(picks[later].index);
      std::memcpy(to, record_of(runs, picks[at]).data(), length);
    }
    return {};
  });
}

Status ParallelOutput::write(const OutputBatch& batch) {
  const std::byte* bytes = batch.bytes.data();
  const std::size_t length = output_.format().record_length;
  return for_each_lfs(batch, [&](LfsIndex lfs, Range rows, std::size_t) -> Status {
    if (!output_.is_here() || lfs != output_.index()) moved_bytes_ += rows.size() * length;
    PIF_TRY(sinks_[lfs]->write_rows(rows.begin, rows.size(), {bytes, length}));
    bytes += rows.size() * length;
    return {};
  });
}

Status ParallelOutput::finish(std::string& state, std::uint32_t rank) {
  std::vector<component::Tail> tails(sinks_.size());
  if (rank > 0) {
    PIF_TRY_VALUE(tails, unpack_tails(state, rank - 1, sinks_.size()));
  }
  for (std::size_t lfs = 0; lfs < sinks_.size(); ++lfs) {
    if (!sinks_[lfs] || sinks_[lfs]->rows() == 0) continue;
    PIF_TRY_VALUE(const access::ComponentEnd end, sinks_[lfs]->finish());
    if (end.tail.rows > tails[lfs].rows) tails[lfs] = end.tail;
  }
  state = pack_tails(tails);
  return {};
}

// ---- one after another --------------------------------------------------------------------------------------------

Appender::Appender(const tool::Output& output, LfsIndex lfs, const component::Tail& tail, component::Files& files)
    : layout_(output.layout()),
      lfs_(lfs),
      format_(output.format()),
      record_(output.format()),
      sink_(output.file(), lfs, files, tail),
      row_(tail.rows),
      next_(layout_.record_at({lfs, row_})) {}

Status Appender::offer(std::uint64_t position, Bytes record) {
  if (position != next_) return {};  // it goes elsewhere
  const std::size_t size = record_.size(record);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + size);
  record_.copy(record, bytes_.data() + at);
  lengths_.push_back(static_cast<std::uint32_t>(size));
  offered_bytes_ += size;
  next_ = layout_.record_at({lfs_, ++row_});
  return bytes_.size() >= kAppendBytes || lengths_.size() >= kAppendRows ? flush() : Status();
}

Status Appender::append(std::uint64_t first, std::span<const Pick> picks, std::span<const RunView> runs,
                        unsigned threads) {
  PIF_ASSERT(row_ >= layout_.rows(lfs_, first) && lengths_.empty(), row_, first, lengths_.size());
  const Row end = layout_.rows(lfs_, first + picks.size());
  std::vector<Bytes> records;
  while (row_ < end) {
    records.resize(std::min<std::uint64_t>(end - row_, kAppendRows));
    const auto pick_of = [&](std::size_t i) { return picks[layout_.record_at({lfs_, row_ + i}) - first]; };
    in_parts(threads, records.size(), [&](Range part) {
      for (std::size_t i = part.begin; i < part.end; ++i) {
        if (i + kAhead < part.end) runs[pick_of(i + kAhead).run].fetch_place(pick_of(i + kAhead).index);
        records[i] = record_of(runs, pick_of(i));
      }
    });
    for (std::span<const Bytes> rest = records; !rest.empty();) {
      PIF_TRY_VALUE(const std::size_t count, append_some(rest, threads));
      rest = rest.subspan(count);
    }
  }
  return {};
}

// As many as are worth a write, one at least.
Result<std::size_t> Appender::append_some(std::span<const Bytes> records, unsigned threads) {
  std::vector<std::uint64_t> ends;
  std::uint64_t bytes = 0;
  for (const Bytes record : records) {
    const std::size_t size = record_.size(record);
    if (!ends.empty() && bytes + size > kAppendBytes) break;
    lengths_.push_back(static_cast<std::uint32_t>(size));
    ends.push_back(bytes += size);
  }
  bytes_.resize(bytes);
  in_parts(threads, ends.size(), [&](Range part) {
    for (std::size_t i = part.begin; i < part.end; ++i) {
      if (i + kAhead < part.end) fetch(records[i + kAhead]);
      record_.copy(records[i], bytes_.data() + (ends[i] - lengths_[i]));
    }
  });
  offered_bytes_ += bytes;
  row_ += ends.size();
  next_ = layout_.record_at({lfs_, row_});
  PIF_TRY(flush());
  return ends.size();
}

Result<component::Tail> Appender::finish(std::uint64_t end) {
  PIF_ASSERT(row_ == layout_.rows(lfs_, end), lfs_, row_, end);
  PIF_TRY(flush());
  PIF_TRY_VALUE(const access::ComponentEnd ended, sink_.finish());
  return ended.tail;
}

Status Appender::flush() {
  if (lengths_.empty()) return {};
  if (format_.is_fixed()) {
    PIF_TRY(sink_.write_rows(sink_.rows(), lengths_.size(), {bytes_.data(), format_.record_length}));
  } else {
    PIF_TRY(sink_.append_rows(sink_.rows(), lengths_, bytes_));
  }
  lengths_.clear();
  bytes_.clear();
  return {};
}

}  // namespace pif::sort
