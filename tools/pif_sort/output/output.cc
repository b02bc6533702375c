#include "output/output.h"

#include <algorithm>
#include <cstring>

#include "output/tails.h"

namespace pif::sort {
namespace {

Bytes record_of(std::span<const RunView> runs, Pick pick) { return runs[pick.run].record(pick.index); }

}  // namespace

void OutputRecord::copy(Bytes record, std::byte* to) const {
  if (!record.empty()) std::memcpy(to, record.data(), record.size());
  if (lacks_end(record)) to[record.size()] = static_cast<std::byte>(format_.delimiter);
}

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

}  // namespace pif::sort
