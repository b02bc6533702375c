#include "pif/tool/component.h"

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "worker/trace.h"

namespace pif::tool {
namespace {

constexpr std::uint64_t kIndexRows = 32768;  // end offsets read at once

}  // namespace

Component::Component(component::Storage& storage, access::FileParts parts, std::optional<LfsIndex> index)
    : grant_(std::move(parts), {}), index_(index) {
  if (index_)
    access_ = std::make_unique<access::ComponentAccess>(storage, file(), *index_, access::DataPath::kDescriptors);
}

Status Input::open() {
  PIF_ASSERT(rows_ == 0 && bytes_ == 0, rows_, bytes_);  // once
  const component::Tail tail = reader().tail();
  const std::uint64_t expected = layout().rows(index(), file_length().records);
  if (tail.rows < expected) {
    return fail(Code::kCorrupt,
                fmt::format("{}: this component has {} rows, but the file's length gives {}: run pif fsck", file().path,
                            tail.rows, expected));
  }
  tail_ = tail;
  rows_ = expected;
  if (rows_ == 0) return {};
  if (format().is_fixed()) {
    const RecordNumber last = file_length().records - 1;
    const bool ends_here = layout().locate(last) == Cell{index(), rows_ - 1};
    const std::uint64_t length = format().record_length;
    bytes_ =
        (rows_ - 1) * length + (ends_here ? fixed_record_bytes(format().record_length, file_length(), last) : length);
    return {};
  }
  std::vector<std::uint64_t> ends(2);
  PIF_TRY(reader().read_ends(rows_ - 1, 1, ends));
  bytes_ = ends[1];
  return {};
}

Result<bool> Input::next(RowBatch& batch) {
  const Row end = std::min(end_, rows());
  if (!is_here() || next_ >= end) return false;
  PIF_TRY(read(next_, end - next_, kBatchBytes, batch));
  next_ += batch.count;
  return true;
}

Status Input::read(Row first, std::uint64_t count, std::size_t bytes, RowBatch& batch) const {
  batch.first = first;
  batch.count = first < rows() ? std::min(count, rows() - first) : 0;
  batch.lengths.clear();
  batch.record_length = format().record_length;
  if (batch.count == 0) {
    batch.data.clear();
    return {};
  }
  TraceSpan span(trace_, "read");
  if (format().is_fixed()) {
    batch.count = std::min(batch.count, std::max<std::uint64_t>(bytes / batch.record_length, 1));
    PIF_TRY(read_fixed(batch));
  } else {
    PIF_TRY(read_variable(bytes, batch));
  }
  PIF_ASSERT(batch.count > 0 && batch.count <= rows() - batch.first, batch.first, batch.count, rows());
  bytes_read_ += batch.data.size();
  span.set_bytes(batch.data.size());
  return {};
}

Status Input::read_fixed(RowBatch& batch) const {
  const std::uint64_t length = batch.record_length;
  batch.data.resize(batch.count * length);  // rows in full, since the reader may use all of the last one's place
  PIF_TRY(reader().read_rows(batch.first, batch.count, {batch.data.data(), length}));
  const std::uint64_t end = std::min((batch.first + batch.count) * length, bytes());
  PIF_ASSERT(end >= batch.first * length, batch.first, batch.count, bytes());
  batch.data.resize(end - batch.first * length);
  return {};
}

Status Input::read_variable(std::size_t bytes, RowBatch& batch) const {
  const std::uint64_t most = std::min(batch.count, kIndexRows);
  PIF_ASSERT(most > 0, batch.first);
  std::vector<std::uint64_t> ends(most + 1);
  PIF_TRY(reader().read_ends(batch.first, most, ends));
  std::uint64_t count = 1;
  while (count < most && ends[count + 1] - ends[0] <= bytes) ++count;
  batch.count = count;
  batch.lengths.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (ends[i + 1] - ends[i] > kRecordLengthMax)
      return fail(Code::kCorrupt, fmt::format("{}: row {} is too long", file().path, batch.first + i));
    batch.lengths[i] = static_cast<std::uint32_t>(ends[i + 1] - ends[i]);
  }
  batch.data.resize(ends[count] - ends[0]);
  return reader().read_bytes(ends[0], batch.data);
}

Status Input::check(std::uint64_t offset, std::uint64_t size, const Scratch& mapped) const {
  if (!mapped.load(offset, size)) {
    std::vector<std::byte> bytes(size);
    return reader().read_bytes(offset, bytes);  // says what is wrong
  }
  return reader().check_bytes(offset, size, mapped.bytes());
}

Result<Scratch> Input::map() {
  PIF_TRY_VALUE(Handle handle, files().data->share());
  if (!handle.fd) return fail(Code::kUnsupported, "this storage cannot be mapped");
  PIF_TRY_VALUE(const std::uint64_t size, files().data->size());
  return Scratch::adopt(std::move(handle), size);
}

bool Output::has_component(LfsIndex lfs) const {
  const std::uint64_t records = file().file_length.records;  // if the controller said so, else 0
  return records == 0 || (lfs == 0 && !file().is_protected()) || layout().rows(lfs, records) > 0;
}

Status Output::write(const RowBatch& batch) {
  if (batch.count == 0) return {};
  if (!sink_) return fail(Code::kInvalid, fmt::format("{} has no component on this worker's LFS", file().path));
  TraceSpan span(trace_, "write");
  span.set_bytes(batch.data.size());
  if (!format().is_fixed()) return sink_->append_rows(batch.first, batch.lengths, batch.data);
  const std::uint64_t length = format().record_length;
  const std::uint64_t last = batch.data.size() - (batch.count - 1) * length;
  return sink_->write_rows(batch.first, batch.count, {batch.data.data(), length}, static_cast<std::uint32_t>(last));
}

void Output::set_tail(const component::Tail& tail, bool cloned) {
  PIF_ASSERT(is_made() && !cloned_, tail.rows);
  sink_->set_end(tail);
  cloned_ = cloned;
}

std::uint64_t Output::bytes_written() const { return sink_ ? sink_->bytes() : 0; }

Result<component::Tail> Output::finish() {
  PIF_ASSERT(is_made() && access_ != nullptr);
  PIF_TRY_VALUE(const access::ComponentEnd end, sink_->finish());
  access_->close();  // the LFS seals only what nobody may write to any more
  return end.tail;
}

}  // namespace pif::tool
