#include "pif/access/sealing.h"

#include <algorithm>
#include <chrono>

#include "pif/access/row_copies.h"
#include "pif/base/assert.h"

namespace pif::access {

namespace {

constexpr std::uint64_t kSealBytesPerSecond = 4u << 20;   // slower than any disk: bounds the wait for a sync
constexpr std::uint64_t kSealSecondsMax = 7 * 24 * 3600;  // the same, of a file that is mostly gaps
constexpr std::uint32_t kFormWithParity = 1;              // FileLayout.form

net::Packet seal_packet(const FileParts& parts, const FileLength& file_length, const ComponentEnd& end) {
  net::Packet packet;
  proto::Seal& seal = *packet.envelope.mutable_seal();
  *seal.mutable_shape() = parts.shape(end.lfs);
  seal.mutable_file()->set_records(file_length.records);
  seal.mutable_file()->set_bytes(file_length.bytes);
  seal.set_rows(end.tail.rows);
  seal.set_bytes(end.tail.bytes);
  seal.set_scattered(end.scattered);
  if (!end.by_descriptor) return packet;
  seal.set_by_descriptor(true);
  seal.set_data_tail_sum(end.tail.data_sum);
  seal.set_index_tail_sum(end.tail.index_sum);
  return packet;
}

net::Packet gather_packet(const FileParts& parts, const FileLength& file_length, LfsIndex lfs,
                          const std::string& copied_from) {
  net::Packet packet;
  proto::Gather& gather = *packet.envelope.mutable_gather();
  *gather.mutable_shape() = parts.shape(lfs);
  gather.mutable_file_length()->set_records(file_length.records);
  gather.mutable_file_length()->set_bytes(file_length.bytes);
  gather.set_view(parts.view);
  if (!copied_from.empty()) gather.set_copied_from(copied_from);
  return packet;
}

}  // namespace

void Sealing::start(Requests& requests, const FileLength& file_length, std::span<const ComponentEnd> ends,
                    Duration patience) {
  PIF_ASSERT(state_ != State::kSealed, state_, ends.size());
  const FileParts& parts = requests.grant().parts();
  PIF_ASSERT(parts.creating && ends.size() <= parts.layout.width(), parts.creating, ends.size(), parts.layout.width());
  state_ = State::kSealing;
  file_length_ = file_length;
  patience_ = patience + std::chrono::seconds(std::min(file_length.bytes / kSealBytesPerSecond, kSealSecondsMax));
  sealed_.assign(parts.layout.width(), false);
  missing_ = ends.size();
  for (const ComponentEnd& end : ends) {
    PIF_ASSERT(!parts.is_absent(end.lfs), end.lfs, parts.view);
    BulkRequest request;
    request.lfs = end.lfs;
    request.timeout = patience_;
    request.patient = true;  // perhaps a commit that failed, or another member's, has it sealed at the moment
    request.make = [&parts, file_length, end] { return seal_packet(parts, file_length, end); };
    request.take = [this, lfs = end.lfs, &requests](net::Packet&) { return component_sealed(lfs, requests); };
    requests.add(std::move(request));
  }
  if (missing_ == 0) all_sealed(requests);
}

Status Sealing::component_sealed(LfsIndex lfs, Requests& requests) {
  PIF_ASSERT(state_ == State::kSealing && missing_ > 0 && !sealed_[lfs], state_, missing_, lfs);
  sealed_[lfs] = true;
  if (--missing_ == 0) all_sealed(requests);
  return {};
}

// All rows of the file are durable, or those who keep the parity of absent LFSs have them, and none can be added. A
// keeper that is absent gathers when it is rebuilt.
void Sealing::all_sealed(Requests& requests) {
  PIF_ASSERT(state_ == State::kSealing && missing_ == 0, state_, missing_);
  const FileParts& parts = requests.grant().parts();
  state_ = State::kSealed;
  if (!parts.layout.has_parity() || parts.file_layout.form() != kFormWithParity) return;
  for (LfsIndex lfs = 0; lfs < parts.layout.width(); ++lfs) {
    if (parts.is_absent(lfs) || parts.layout.parity_rows(lfs, file_length_.records) == 0) continue;
    state_ = State::kGathering;
    ++missing_;
    BulkRequest request;
    request.lfs = lfs;
    request.timeout = patience_;
    request.patient = true;
    request.make = [this, &parts, lfs] { return gather_packet(parts, file_length_, lfs, copied_from_); };
    request.take = [this](net::Packet&) { return gathered(); };
    request.refused = [&parts](Error error) -> Status { return fail(explain_old_view(parts, std::move(error))); };
    requests.add(std::move(request));
  }
}

Status Sealing::gathered() {
  PIF_ASSERT(state_ == State::kGathering && missing_ > 0, state_, missing_);
  if (--missing_ == 0) state_ = State::kSealed;
  return {};
}

}  // namespace pif::access
