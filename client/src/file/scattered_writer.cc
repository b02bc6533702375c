#include "file/scattered_writer.h"

#include <algorithm>

#include <fmt/format.h>

#include "file/file_state.h"
#include "file/piece_reader.h"
#include "file/piece_writer.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::client {

namespace {

access::BulkRequest room_request(const FileParts& parts, LfsIndex lfs, std::uint64_t bytes) {
  access::BulkRequest request;
  request.lfs = lfs;
  request.in_order = true;
  request.make = [&parts, lfs, bytes] {
    net::Packet packet;
    proto::Preallocate& preallocate = *packet.envelope.mutable_preallocate();
    *preallocate.mutable_shape() = parts.shape(lfs);
    preallocate.set_bytes(bytes);
    return packet;
  };
  return request;
}

constexpr std::uint64_t kZeroBytesAtOnce = 1u << 20;

FileLength length_up_to(std::uint32_t record_length, std::uint64_t end) {
  return {(end + record_length - 1) / record_length, end};
}

}  // namespace

bool ScatteredWriter::is_possible() const {
  if (is_on_) return true;
  if (!file_.creating() || file_.kind.adopted || !file_.parts.format.is_fixed()) return false;
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs)
    if (file_.parts.is_absent(lfs)) return false;
  return true;
}

Status ScatteredWriter::begin() {
  if (is_on_) return {};
  PIF_ASSERT(file_.creating(), file_.phase);
  if (!file_.parts.format.is_fixed())
    return fail(Code::kUnsupported,
                fmt::format("{}: records of variable length have an order that only one can give", file_.parts.path));
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (file_.parts.is_absent(lfs))
      return fail(Code::kUnavailable,
                  fmt::format("{}: a file is written in pieces only where all its LFSs are there", file_.parts.path),
                  file_.node(lfs).name());
  }
  PIF_TRY(file_.writer.give_up());
  is_on_ = true;
  writebacks_.resize(file_.width());
  return {};
}

Status ScatteredWriter::write(std::uint64_t offset, std::span<const std::byte> in) {
  PIF_ASSERT(is_on_, offset, in.size());
  return PieceWriter(file_, fill_from<component::ConstExtent>(offset, in), true).run();
}

Status ScatteredWriter::read(std::uint64_t offset, std::span<std::byte> out) {
  PIF_ASSERT(is_on_, offset, out.size());
  return PieceReader(file_, fill_from<component::ExtentRun>(offset, out), true).run();
}

Result<std::size_t> ScatteredWriter::readable(std::uint64_t offset, std::size_t bytes) const {
  const std::uint64_t end = file_.is_shared() ? kFileBytesMax : file_.length.bytes();
  if (offset >= end) return 0;
  return std::min<std::uint64_t>(bytes, end - offset);
}

Status ScatteredWriter::sync() {
  PIF_ASSERT(is_on_, file_.phase);
  access::Requests syncs(file_.session->links(), file_.grant);
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    access::BulkRequest request;
    request.lfs = lfs;
    request.in_order = true;
    request.make = [&parts = file_.parts, lfs] {
      net::Packet packet;
      *packet.envelope.mutable_sync_component()->mutable_shape() = parts.shape(lfs);
      return packet;
    };
    syncs.add(std::move(request));
  }
  return file_.run(syncs);
}

Status ScatteredWriter::resize(std::uint64_t bytes) {
  PIF_ASSERT(is_on_ && !file_.is_shared(), bytes);
  const std::uint64_t before = file_.length.bytes();
  if (bytes < before) cut_end_ = std::max(cut_end_, before);
  PIF_TRY(clear_gap(bytes));
  file_.length.go_by(length_up_to(file_.parts.format.record_length, bytes));
  PIF_ASSERT(file_.length.bytes() == bytes, file_.length.bytes(), bytes);
  return {};
}

// Only the others know where they write next.
Status ScatteredWriter::resize_shared(std::uint64_t bytes) {
  PIF_ASSERT(is_on_ && file_.is_shared() && cut_end_ == 0, bytes, cut_end_);
  PIF_TRY(clear(bytes, file_.length.bytes()));
  file_.length.go_by(length_up_to(file_.parts.format.record_length, bytes));
  PIF_ASSERT(file_.length.bytes() == bytes, file_.length.bytes(), bytes);
  return {};
}

Status ScatteredWriter::clear_cut() {
  const FileLength kept = file_.length.now();
  PIF_TRY(clear_gap(cut_end_));
  cut_end_ = 0;
  file_.length.go_by(kept);
  return {};
}

// What is under way may write there, too.
Status ScatteredWriter::clear_gap(std::uint64_t offset) {
  if (cut_end_ <= file_.length.bytes()) return {};
  PIF_TRY(file_.finish_operations());
  const std::uint64_t end = std::min(offset, cut_end_);
  PIF_TRY(clear(file_.length.bytes(), end));
  PIF_ASSERT(file_.length.bytes() >= end, end, file_.length.bytes());
  return {};
}

Status ScatteredWriter::clear(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return {};
  const std::vector<std::byte> zeros(std::min(kZeroBytesAtOnce, end - begin));
  for (std::uint64_t at = begin; at < end;) {
    const auto piece = std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), end - at));
    PIF_TRY(write(at, piece));
    at += piece.size();
  }
  return {};
}

Status ScatteredWriter::preallocate(std::uint64_t bytes) {
  PIF_ASSERT(is_on_, bytes);
  const FileLength file_length = length_up_to(file_.parts.format.record_length, bytes);
  access::Requests requests(file_.session->links(), file_.grant);
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    const std::uint64_t share = component_bytes(lfs, file_length);
    if (share == 0) continue;
    requests.add(room_request(file_.parts, lfs, share));
  }
  return file_.run(requests);
}

std::uint64_t ScatteredWriter::component_bytes(LfsIndex lfs, const FileLength& file_length) const {
  const FileParts& parts = file_.parts;
  const std::uint64_t rows = parts.layout.rows(lfs, file_length.records);
  if (rows == 0) return 0;
  const RecordNumber last = parts.layout.record_at({lfs, rows - 1});
  PIF_ASSERT(last < file_length.records, lfs, last, file_length.records);
  return (rows - 1) * parts.format.record_length + fixed_record_bytes(parts.format.record_length, file_length, last);
}

void ScatteredWriter::close() {
  for (const auto& component : file_.components) component->leave_descriptors();
}

Status ScatteredWriter::seal(const FileLength& file_length) {
  PIF_ASSERT(is_on_, file_length.records);
  close();
  // All of it each time: since a commit that was refused, somebody may have joined and written more.
  sealing_ = access::Sealing();
  std::vector<access::ComponentEnd> ends;
  access::Requests seals(file_.session->links(), file_.grant);
  const FileParts& parts = file_.parts;
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    const std::uint64_t rows = parts.layout.rows(lfs, file_length.records);
    if (rows == 0) continue;  // whatever is there, the LFS removes it when the file is committed, and not before
    ends.push_back({lfs, false, {rows, component_bytes(lfs, file_length), 0, 0}, true});
  }
  PIF_ASSERT(ends.size() <= file_.width(), ends.size(), file_.width());
  sealing_.start(seals, file_length, ends, file_.session->timeout());
  return file_.run(seals);
}

}  // namespace pif::client
