#include "pif/tool/ranked.h"

#include <cstring>

#include <fmt/format.h>

namespace pif::tool {
namespace {

constexpr std::size_t kParcelBytes = 256u << 10;  // aimed at
}  // namespace

RankedSender::RankedSender(std::uint32_t destinations, RankedLimits limits, Place place)
    : limits_(limits), place_(std::move(place)), destinations_(destinations) {}

bool RankedSender::has_room(const Destination& destination, Row row) const {
  return limits_.window_rows == UINT64_MAX || row < destination.settled + limits_.window_rows;
}

// No parcel is longer than the memory, so that from its first row on it goes round once at most.
void RankedSender::place(Destination& destination, Row row, std::span<const std::byte> head, std::span<const std::byte> record) {
  Open& open = destination.open;
  const std::size_t length = head.size() + record.size(), all = destination.memory.size() / length * length;
  if (open.distances.empty()) open.placed = destination.memory.data() + row % (all / length) * length;
  std::byte* at = open.placed + (row - open.first) * length;
  if (at >= destination.memory.data() + all) at -= all;
  if (!head.empty()) std::memcpy(at, head.data(), head.size());
  std::memcpy(at + head.size(), record.data(), record.size());
}

void RankedSender::put(std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> record) {
  const RankedPlace at = place_(number);
  Destination& destination = destinations_[at.to];
  Open& open = destination.open;
  const std::size_t size = head.size() + record.size();
  const bool goes_there = !destination.memory.empty() && has_room(destination, at.row);
  const bool full = (!goes_there && open.bytes + size > kParcelBytes) || goes_there != (open.placed != nullptr) ||
                    at.row / limits_.stretch_rows != open.first / limits_.stretch_rows;
  if (!open.distances.empty() && full) close(at.to);
  if (open.distances.empty()) open.first = at.row;
  if (goes_there) {
    place(destination, at.row, head, record);
  } else {
    open.pieces.push_back(head);
    open.pieces.push_back(record);
  }
  open.last = at.row;
  open.distances.push_back(static_cast<std::uint32_t>(at.row - open.first));
  if (!limits_.fixed_length) open.lengths.push_back(static_cast<std::uint32_t>(size));
  open.bytes += size;
}

// Distances, lengths, and the records that are not placed.
net::Buffer RankedSender::pack(const Open& open) const {
  const std::size_t words = open.distances.size() * sizeof(std::uint32_t);
  net::Buffer body(words + open.lengths.size() * sizeof(std::uint32_t) + (open.placed != nullptr ? 0 : open.bytes));
  std::byte* at = body.data();
  std::memcpy(at, open.distances.data(), words);
  at += words;
  if (!open.lengths.empty()) std::memcpy(at, open.lengths.data(), words);
  at += open.lengths.size() * sizeof(std::uint32_t);
  for (const auto piece : open.pieces) {
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  return body;
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
  parcel.placed = open.placed != nullptr;
  parcel.body = pack(open);
  queued_bytes_ += parcel.body.size();
  destination.waiting.emplace(parcel.first, std::move(parcel));
  open.distances.clear();
  open.lengths.clear();
  open.pieces.clear();
  open.bytes = 0;
  open.placed = nullptr;
}

void RankedSender::flush() {
  for (std::uint32_t to = 0; to < destinations_.size(); ++to) close(to);
}

bool RankedSender::may_go(const Destination& destination, const RankedParcel& parcel) const {
  if (limits_.window_rows != UINT64_MAX && parcel.last >= destination.settled + limits_.window_rows) return false;
  if (destination.under_way.empty() || destination.bytes_under_way + parcel.record_bytes <= limits_.share_bytes) return true;
  // The receiver settles whole stretches: what completes one must not wait for the rest of it.
  return limits_.stretch_rows != UINT64_MAX &&
         parcel.last / limits_.stretch_rows == destination.under_way.begin()->first / limits_.stretch_rows;
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
  if (parcel.placed) return {};
  const std::uint64_t rows = memory.size() / record_length;
  return for_each_record(parcel.first, parcel.count, record_length, parcel.body.span(),
                         [&](Row row, std::span<const std::byte> record) -> Status {
                           std::memcpy(memory.data() + row % rows * record_length, record.data(), record_length);
                           return {};
                         });
}

}  // namespace pif::tool
