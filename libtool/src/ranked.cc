#include "pif/tool/ranked.h"

#include <cstring>

#include <fmt/format.h>

namespace pif::tool {
namespace {

constexpr std::size_t kParcelBytes = 256u << 10;  // aimed at
}  // namespace

RankedSender::RankedSender(std::uint32_t destinations, RankedLimits limits, Place place)
    : limits_(limits), place_(std::move(place)), destinations_(destinations) {}

void RankedSender::put(std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> record) {
  const RankedPlace place = place_(number);
  Open& open = destinations_[place.to].open;
  const std::size_t size = head.size() + record.size();
  const bool full = open.bytes + size > kParcelBytes || place.row / limits_.stretch_rows != open.first / limits_.stretch_rows;
  if (!open.distances.empty() && full) close(place.to);
  if (open.distances.empty()) open.first = place.row;
  open.last = place.row;
  open.distances.push_back(static_cast<std::uint32_t>(place.row - open.first));
  if (!limits_.fixed_length) open.lengths.push_back(static_cast<std::uint32_t>(size));
  open.pieces.push_back(head);
  open.pieces.push_back(record);
  open.bytes += size;
}

void RankedSender::close(std::uint32_t to) {
  Destination& destination = destinations_[to];
  Open& open = destination.open;
  if (open.distances.empty()) return;
  RankedParcel parcel;
  parcel.to = to;
  parcel.first = open.first;
  parcel.last = open.last;
  parcel.count = static_cast<std::uint32_t>(open.distances.size());
  parcel.record_bytes = open.bytes;
  const std::size_t words = parcel.count * sizeof(std::uint32_t);
  parcel.body = net::Buffer(words + open.lengths.size() * sizeof(std::uint32_t) + open.bytes);
  std::byte* at = parcel.body.data();
  std::memcpy(at, open.distances.data(), words);
  at += words;
  if (!open.lengths.empty()) std::memcpy(at, open.lengths.data(), words);
  at += open.lengths.size() * sizeof(std::uint32_t);
  for (const auto piece : open.pieces) {
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  queued_bytes_ += parcel.body.size();
  destination.waiting.emplace(parcel.first, std::move(parcel));
  open.distances.clear();
  open.lengths.clear();
  open.pieces.clear();
  open.bytes = 0;
}

void RankedSender::flush() {
  for (std::uint32_t to = 0; to < destinations_.size(); ++to) close(to);
}

bool RankedSender::may_go(const Destination& destination, const RankedParcel& parcel) const {
  if (limits_.window_rows != UINT64_MAX && parcel.last >= destination.settled + limits_.window_rows) return false;
  if (destination.under_way.empty() || destination.bytes_under_way + parcel.record_bytes <= limits_.share_bytes) return true;
  // The receiver settles whole stretches: what completes one must not wait for the rest of it.
  return parcel.last / limits_.stretch_rows == destination.under_way.begin()->first / limits_.stretch_rows && limits_.stretch_rows != UINT64_MAX;
}

Result<bool> RankedSender::step(const Emit& emit) {
  bool sent = false;
  for (Destination& destination : destinations_) {
    while (!destination.waiting.empty() && may_go(destination, destination.waiting.begin()->second)) {
      RankedParcel parcel = std::move(destination.waiting.begin()->second);
      destination.waiting.erase(destination.waiting.begin());
      queued_bytes_ -= parcel.body.size();
      if (limits_.share_bytes != UINT64_MAX) {
        destination.under_way[parcel.last] += parcel.record_bytes;
        destination.bytes_under_way += parcel.record_bytes;
      }
      PIF_TRY(emit(std::move(parcel)));
      sent = true;
    }
  }
  return sent;
}

void RankedSender::settle(std::uint32_t to, Row row) {
  if (to >= destinations_.size()) return;
  Destination& destination = destinations_[to];
  destination.settled = std::max(destination.settled, row);
  while (!destination.under_way.empty() && destination.under_way.begin()->first < row) {
    destination.bytes_under_way -= destination.under_way.begin()->second;
    destination.under_way.erase(destination.under_way.begin());
  }
}

Status place_records(const RankedParcel& parcel, std::uint32_t record_length, std::span<std::byte> memory) {
  const std::uint64_t rows = memory.size() / record_length;
  return for_each_record(parcel.first, parcel.count, record_length, parcel.body.span(),
                         [&](Row row, std::span<const std::byte> record) -> Status {
                           std::memcpy(memory.data() + row % rows * record_length, record.data(), record_length);
                           return {};
                         });
}

}  // namespace pif::tool
