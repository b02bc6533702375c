#include "file/scattered_writer.h"

#include <fmt/format.h>

#include "file/file_state.h"
#include "pif/access/piece_requests.h"
#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "session/pool.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kParallelBytes = 256u << 10;

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

// A component that has room, or what a dropped member wrote, and gets no rows. An LFS that does not answer finds out by
// itself that the file was committed without it.
access::BulkRequest no_room_request(const FileParts& parts, LfsIndex lfs) {
  access::BulkRequest request = room_request(parts, lfs, 0);
  request.refused = [](const Error&) { return Status(); };
  return request;
}

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
  return {};
}

template <typename Extent>
Status ScatteredWriter::open(const PieceSplit<Extent>& pieces) {
  access::Requests attaches(file_.session->links(), file_.grant);
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (!pieces.of[lfs].empty()) file_.component(lfs).open_writer(attaches);
  }
  return attaches.idle() ? Status() : file_.run(attaches);
}

Status ScatteredWriter::write(PieceSplit<component::ConstExtent>& pieces, std::uint64_t end) {
  PIF_ASSERT(is_on_, end);
  PIF_TRY(open(pieces));
  access::Requests messages(file_.session->links(), file_.grant);
  std::vector<LfsIndex> near;
  std::uint64_t near_bytes = 0;
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (pieces.of[lfs].empty()) continue;
    if (!pieces.is_rising[lfs]) settle_pieces(pieces.of[lfs]);
    if (file_.component(lfs).by_message()) {
      access::write_pieces_by_message(messages, lfs, pieces.of[lfs], file_.counts.bytes_by_message);
    } else {
      near.push_back(lfs);
      for (const auto& piece : pieces.of[lfs]) near_bytes += piece.size;
    }
  }
  PIF_TRY(messages.step());
  std::vector<Status> outcome(near.size());
  const auto write_one = [&](std::size_t i) {
    outcome[i] = component::write_extents(*file_.component(near[i]).files().data, pieces.of[near[i]], false);
  };
  if (near_bytes >= kParallelBytes && near.size() > 1) {
    file_.session->pool().run(near.size(), write_one);
  } else {
    for (std::size_t i = 0; i < near.size(); ++i) write_one(i);
  }
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (!outcome[i]) return fail(outcome[i].error().code, outcome[i].error().text, file_.node(near[i]).name());
  }
  file_.counts.bytes_by_descriptor += near_bytes;
  PIF_TRY(file_.run(messages));
  file_.length.grow_to(length_up_to(file_.parts.format.record_length, std::max(end, file_.length.bytes())));
  return {};
}

Status ScatteredWriter::write(std::uint64_t offset, std::span<const std::byte> in) {
  PieceSplit<component::ConstExtent> pieces(file_.parts.layout, file_.parts.format.record_length);
  pieces.add(offset, in.size(), in.data());
  return write(pieces, offset + in.size());
}

Status ScatteredWriter::read(PieceSplit<component::Extent>& pieces) {
  PIF_ASSERT(is_on_, pieces.count);
  PIF_TRY(open(pieces));
  access::Requests messages(file_.session->links(), file_.grant);
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    if (pieces.of[lfs].empty()) continue;
    if (!pieces.is_rising[lfs]) sort_pieces(pieces.of[lfs]);
    if (file_.component(lfs).by_message()) {
      access::read_pieces_by_message(messages, lfs, pieces.of[lfs], file_.counts.bytes_by_message);
      continue;
    }
    component::ExtentReader reader(*file_.component(lfs).files().data);
    PIF_TRY(reader.read(pieces.of[lfs]));
    for (const auto& piece : pieces.of[lfs]) file_.counts.bytes_by_descriptor += piece.size;
  }
  return file_.run(messages);
}

Status ScatteredWriter::read(std::uint64_t offset, std::span<std::byte> out) {
  PieceSplit<component::Extent> pieces(file_.parts.layout, file_.parts.format.record_length);
  pieces.add(offset, out.size(), out.data());
  return read(pieces);
}

Result<std::size_t> ScatteredWriter::readable(std::uint64_t offset, std::size_t bytes) const {
  const std::uint64_t end = file_.is_shared() ? kFileBytesMax : file_.length.bytes();
  if (offset >= end) return 0;
  return std::min<std::uint64_t>(bytes, end - offset);
}

Status ScatteredWriter::sync() {
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

Status ScatteredWriter::preallocate(std::uint64_t bytes) {
  PIF_ASSERT(is_on_, bytes);
  const FileLength file_length = length_up_to(file_.parts.format.record_length, bytes);
  access::Requests requests(file_.session->links(), file_.grant);
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    const std::uint64_t share = component_bytes(lfs, file_length);
    if (share == 0) continue;
    requests.add(room_request(file_.parts, lfs, share));
  }
  has_room_ = true;
  return file_.run(requests);
}

std::uint64_t ScatteredWriter::component_bytes(LfsIndex lfs, const FileLength& file_length) const {
  const FileParts& parts = file_.parts;
  const std::uint64_t rows = parts.layout.rows(lfs, file_length.records);
  if (rows == 0) return 0;
  const RecordNumber last = parts.layout.record_at({lfs, rows - 1});
  return (rows - 1) * parts.format.record_length + fixed_record_bytes(parts.format.record_length, file_length, last);
}

void ScatteredWriter::close() {
  for (const auto& component : file_.components) component->leave_descriptors();
}

Status ScatteredWriter::seal(const FileLength& file_length) {
  PIF_ASSERT(is_on_, file_length.records);
  if (sealing_.state() == access::Sealing::State::kSealed) return check_sealed(file_length);
  close();
  std::vector<access::ComponentEnd> ends;
  access::Requests seals(file_.session->links(), file_.grant);
  const FileParts& parts = file_.parts;
  for (LfsIndex lfs = 0; lfs < file_.width(); ++lfs) {
    const std::uint64_t rows = parts.layout.rows(lfs, file_length.records);
    if (rows == 0) {
      if (has_room_ || file_.is_shared()) seals.add(no_room_request(parts, lfs));
      continue;
    }
    ends.push_back({lfs, false, {rows, component_bytes(lfs, file_length), 0, 0}, true});
  }
  sealing_.start(seals, file_length, ends, file_.session->timeout());
  sealed_length_ = file_length;
  return file_.run(seals);
}

// Who has joined since may have written to LFSs that had no rows.
Status ScatteredWriter::check_sealed(const FileLength& file_length) const {
  if (file_length == sealed_length_) return {};
  return fail(Code::kExists, fmt::format("{}: it was sealed with {} bytes, and a member has written {} since: write it "
                                         "again",
                                         file_.parts.path, sealed_length_.bytes, file_length.bytes));
}

}  // namespace pif::client
