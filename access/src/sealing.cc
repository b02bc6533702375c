#include "pif/access/sealing.h"

#include <chrono>

#include "pif/base/assert.h"

namespace pif::access {

namespace {

constexpr std::uint64_t kSealBytesPerSecond = 4u << 20;  // slower than any disk: bounds the wait for a sync

net::Packet seal_packet(const FileParts& parts, const FileLength& file_length, const ComponentEnd& end) {
  net::Packet packet;
  proto::Seal& seal = *packet.envelope.mutable_seal();
  *seal.mutable_shape() = parts.shape(end.lfs);
  seal.mutable_file()->set_records(file_length.records);
  seal.mutable_file()->set_bytes(file_length.bytes);
  seal.set_rows(end.tail.rows);
  seal.set_bytes(end.tail.bytes);
  if (!end.by_descriptor) return packet;
  seal.set_by_descriptor(true);
  seal.set_data_tail_sum(end.tail.data_sum);
  seal.set_index_tail_sum(end.tail.index_sum);
  return packet;
}

}  // namespace

void Sealing::start(Requests& requests, const FileLength& file_length, std::span<const ComponentEnd> ends,
                    Duration patience) {
  PIF_ASSERT(state_ != State::kSealed, state_, ends.size());
  const FileParts& parts = requests.grant().parts();
  PIF_ASSERT(parts.creating && ends.size() <= parts.layout.width(), parts.creating, ends.size(), parts.layout.width());
  state_ = State::kSealing;
  sealed_.assign(parts.layout.width(), false);
  missing_ = ends.size();
  for (const ComponentEnd& end : ends) {
    BulkRequest request;
    request.lfs = end.lfs;
    request.timeout = patience + std::chrono::seconds(file_length.bytes / kSealBytesPerSecond);
    request.make = [&parts, file_length, end] { return seal_packet(parts, file_length, end); };
    request.take = [this, lfs = end.lfs](net::Packet&) { return component_sealed(lfs); };
    requests.add(std::move(request));
  }
  if (missing_ == 0) state_ = State::kSealed;
}

Status Sealing::component_sealed(LfsIndex lfs) {
  PIF_ASSERT(state_ == State::kSealing && missing_ > 0 && !sealed_[lfs], state_, missing_, lfs);
  sealed_[lfs] = true;
  return --missing_ == 0 ? all_sealed() : Status();
}

// All rows of the file are durable, and none can be added.
Status Sealing::all_sealed() {
  PIF_ASSERT(state_ == State::kSealing && missing_ == 0, state_, missing_);
  state_ = State::kSealed;
  return {};
}

}  // namespace pif::access
