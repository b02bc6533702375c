#include "output/stretches.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "pif/tool/parts.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kPartRecords = 2048;      // fewer are not worth a thread
constexpr std::size_t kBufferBytes = 512u << 10;  // of records for one component, one at least

}  // namespace

Stretches::Part::Part(const Sorted& sorted, Range range, std::span<const Bytes> in_front)
    : reader(sorted.maker, sorted.numbers, sorted.runs, range, sorted.unique, sorted.keep, in_front) {}

Stretches::Stretches(tool::Worker& worker, const tool::Output& output, std::span<component::Files> files,
                     const Sorted& sorted, Range share)
    : worker_(worker),
      output_(output),
      files_(files),
      record_(output.format()),
      are_ended_(std::all_of(sorted.runs.begin(), sorted.runs.end(), [](const RunView& run) { return run.is_ended; })) {
  const tool::Parts parts(share, {.most = worker.threads(), .least = kPartRecords});
  if (share.empty() && sorted.in_front.empty()) return;
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts_.push_back(std::make_unique<Part>(sorted, parts[i], i == 0 ? sorted.in_front : std::span<const Bytes>()));
}

std::size_t Stretches::size_of(Bytes record) const { return are_ended_ ? record.size() : record_.size(record); }

Result<std::uint64_t> Stretches::count() {
  std::vector<std::uint64_t> counts(parts_.size());
  PIF_TRY(worker_.run_tasks(parts_.size(), [&](std::size_t i) -> Status {
    counts[i] = parts_[i]->reader.count();
    return {};
  }));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i]->numbers = {number, number + counts[i]};
    number += counts[i];
  }
  return number;
}

void Stretches::cut(std::uint64_t records) {
  for (const auto& part : parts_) {
    part->numbers = {std::min(part->numbers.begin, records), std::min(part->numbers.end, records)};
    part->reader.cut(part->numbers.size());
  }
}

// Of records with these numbers, those that belong to the component.
void Stretches::choose(Part& part, LfsIndex lfs, Range numbers) const {
  const parity::Layout& layout = output_.layout();
  const Range rows = layout.rows(lfs, numbers);
  part.chosen.resize(rows.size());
  if (layout.is_even() && !rows.empty()) {
    std::size_t at = layout.record_at({lfs, rows.begin}) - numbers.begin;
    for (std::size_t& chosen : part.chosen) at = (chosen = at) + layout.width();
    return;
  }
  for (Row row = rows.begin; row < rows.end; ++row)
    part.chosen[row - rows.begin] = layout.record_at({lfs, row}) - numbers.begin;
}

Result<std::vector<std::uint64_t>> Stretches::measure(RecordNumber first) {
  PIF_TRY(worker_.run_tasks(parts_.size(), [&](std::size_t i) -> Status {
    Part& part = *parts_[i];
    part.numbers = {first + part.numbers.begin, first + part.numbers.end};
    part.bytes.assign(files_.size(), 0);
    if (output_.format().is_fixed()) {
      for (LfsIndex lfs = 0; lfs < files_.size(); ++lfs)
        part.bytes[lfs] = output_.layout().rows(lfs, part.numbers).size() * output_.format().record_length;
      return {};
    }
    part.reader.rewind();
    Range numbers{part.numbers.begin, part.numbers.begin};
    for (auto some = part.reader.next(); !some.empty(); some = part.reader.next()) {
      numbers = {numbers.end, numbers.end + some.size()};
      for (LfsIndex lfs = 0; lfs < files_.size(); ++lfs) {
        choose(part, lfs, numbers);
        for (const std::size_t chosen : part.chosen) part.bytes[lfs] += size_of(some[chosen]);
      }
    }
    return {};
  }));
  std::vector<std::uint64_t> bytes(files_.size());
  for (const auto& part : parts_)
    for (LfsIndex lfs = 0; lfs < files_.size(); ++lfs) bytes[lfs] += part->bytes[lfs];
  return bytes;
}

Status Stretches::write(std::span<const std::uint64_t> before,
                        const std::function<void(std::uint64_t bytes)>& written) {
  std::vector<std::uint64_t> begins(before.begin(), before.end());
  for (const auto& part : parts_) {
    for (LfsIndex lfs = 0; lfs < files_.size(); ++lfs) {
      auto& writer = part->writers.emplace_back();
      const std::uint64_t begin = std::exchange(begins[lfs], begins[lfs] + part->bytes[lfs]);
      if (files_[lfs].data)
        writer = std::make_unique<component::StretchWriter>(
            output_.shape(), output_.layout().rows(lfs, part->numbers.begin), begin, files_[lfs]);
    }
  }
  std::atomic<std::uint64_t> done = 0;
  return worker_.run_tasks(parts_.size(), [&](std::size_t i) {
    return write_part(*parts_[i], [&, i](std::uint64_t bytes) {
      done += bytes;
      if (i == 0) written(done.exchange(0));  // that part is on the worker's own thread
    });
  });
}

Status Stretches::write_part(Part& part, const std::function<void(std::uint64_t bytes)>& written) const {
  part.reader.rewind();
  part.buffer.resize(kBufferBytes);
  Range numbers{part.numbers.begin, part.numbers.begin};
  for (auto some = part.reader.next(); !some.empty(); some = part.reader.next()) {
    numbers = {numbers.end, numbers.end + some.size()};
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      // Not all workers at the same one: a local file system lets one write to a file at a time.
      const auto lfs = static_cast<LfsIndex>((worker_.rank() + i) % files_.size());
      choose(part, lfs, numbers);
      PIF_TRY(put(part, lfs, some));
    }
    for (const Bytes record : some) bytes += record.size();
    written(bytes);
  }
  return {};
}

Status Stretches::put(Part& part, LfsIndex lfs, std::span<const Bytes> records) const {
  for (std::size_t i = 0; i < part.chosen.size(); ++i) {
    if (i + kAhead < part.chosen.size()) fetch(records[part.chosen[i + kAhead]]);
    const Bytes record = records[part.chosen[i]];
    const std::size_t size = size_of(record);
    if (part.used + size > part.buffer.size()) PIF_TRY(flush(part, lfs));
    if (size > part.buffer.size()) part.buffer.resize(size);
    record_.copy(record, part.buffer.data() + part.used);
    part.used += size;
    if (!output_.format().is_fixed()) part.lengths.push_back(static_cast<std::uint32_t>(size));
  }
  return flush(part, lfs);
}

Status Stretches::flush(Part& part, LfsIndex lfs) const {
  if (part.used == 0 && part.lengths.empty()) return {};
  const auto made = std::span(std::as_const(part.buffer)).first(std::exchange(part.used, 0));
  PIF_TRY(part.writers[lfs]->append_rows(part.lengths, made));
  part.lengths.clear();
  return {};
}

Status Stretches::finish(std::span<component::Seam> seams) {
  for (const auto& part : parts_)
    for (LfsIndex lfs = 0; lfs < files_.size(); ++lfs)
      if (part->writers[lfs]) PIF_TRY(part->writers[lfs]->finish(seams[lfs]));
  return {};
}

}  // namespace pif::sort
