#include "pif/tool/numbered.h"

#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::tool {
namespace {

constexpr std::size_t kMessageBytes = 256u << 10;  // aimed at
}  // namespace

NumberedSender::NumberedSender(std::uint32_t destinations, NumberedLimits limits, Place place)
    : limits_(limits), place_(std::move(place)), destinations_(destinations) {
  PIF_ASSERT(limits_.piece_rows > 0 && limits_.window_rows > 0, limits_.piece_rows, limits_.window_rows);
}

bool NumberedSender::has_room(const Destination& destination, Row row) const {
  return limits_.window_rows == UINT64_MAX || row < destination.settled + limits_.window_rows;
}

// No message is longer than the memory, so that from its first row on it goes round once at most.
void NumberedSender::place(Destination& destination, Row row, std::span<const std::byte> head,
                           std::span<const std::byte> record) {
  Open& open = destination.open;
  const std::size_t length = head.size() + record.size(), all = destination.memory.size() / length * length;
  if (open.gaps.empty()) open.placed = destination.memory.data() + row % (all / length) * length;
  std::byte* at = open.placed + (row - open.first) * length;
  if (at >= destination.memory.data() + all) at -= all;
  if (!head.empty()) std::memcpy(at, head.data(), head.size());
  std::memcpy(at + head.size(), record.data(), record.size());
}

void NumberedSender::put(std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> record) {
  const NumberedPlace at = place_(number);
  PIF_ASSERT(at.to < destinations_.size(), at.to, destinations_.size(), number);
  Destination& destination = destinations_[at.to];
  Open& open = destination.open;
  const std::size_t size = head.size() + record.size();
  const bool goes_there = !destination.memory.empty() && has_room(destination, at.row);
  const bool full = (!goes_there && open.bytes + size > kMessageBytes) || goes_there != (open.placed != nullptr) ||
                    at.row / limits_.piece_rows != open.first / limits_.piece_rows;
  if (!open.gaps.empty() && full) close(at.to);
  if (open.gaps.empty()) open.first = at.row;
  if (goes_there) {
    place(destination, at.row, head, record);
  } else {
    open.pieces.push_back(head);
    open.pieces.push_back(record);
  }
  open.last = at.row;
  PIF_ASSERT(at.row - open.first >= open.gaps.size(), at.row, open.first, open.gaps.size());
  open.gaps.push_back(static_cast<std::uint32_t>(at.row - open.first - open.gaps.size()));
  if (!limits_.fixed_length) open.lengths.push_back(static_cast<std::uint32_t>(size));
  open.longest = std::max(open.longest, static_cast<std::uint32_t>(size));
  open.bytes += size;
}

// Gaps, lengths, and the records that are not placed.
net::Buffer NumberedSender::pack(const Open& open) const {
  const std::size_t count = open.gaps.size(), gap = narrow_width(open.gaps.back(), Room::kAsNeeded),
                    length = narrow_width(open.longest, Room::kAlways),
                    all_lengths = limits_.fixed_length ? 0 : 1 + count * length;
  net::Buffer body(1 + count * gap + all_lengths + (open.placed != nullptr ? 0 : open.bytes));
  std::byte* at = pack_narrow(count, gap, body.data(), [&](std::uint64_t i) { return open.gaps[i]; });
  if (!limits_.fixed_length) at = pack_narrow(count, length, at, [&](std::uint64_t i) { return open.lengths[i]; });
  for (const auto piece : open.pieces) {
    if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  PIF_ASSERT(at == std::as_const(body).data() + body.size(), open.gaps.size(), open.bytes, body.size());
  return body;
}

void NumberedSender::close(std::uint32_t to) {
  Destination& destination = destinations_[to];
  Open& open = destination.open;
  if (open.gaps.empty()) return;
  PIF_ASSERT(limits_.fixed_length ? open.lengths.empty() : open.lengths.size() == open.gaps.size(), open.lengths.size(),
             open.gaps.size());
  NumberedMessage message;
  message.to = to;
  message.first = open.first;
  message.last = open.last;
  message.count = static_cast<std::uint32_t>(open.gaps.size());
  message.record_bytes = open.bytes;
  message.placed = open.placed != nullptr;
  message.body = pack(open);
  queued_bytes_ += message.body.size();
  destination.waiting.emplace(message.first, std::move(message));
  open.gaps.clear();
  open.lengths.clear();
  open.pieces.clear();
  open.bytes = 0;
  open.longest = 0;
  open.placed = nullptr;
}

void NumberedSender::flush() {
  for (std::uint32_t to = 0; to < destinations_.size(); ++to) close(to);
}

bool NumberedSender::may_go(const Destination& destination, const NumberedMessage& message) const {
  if (limits_.window_rows != UINT64_MAX && message.last >= destination.settled + limits_.window_rows) return false;
  if (destination.under_way.empty() || destination.bytes_under_way + message.record_bytes <= limits_.share_bytes)
    return true;
  // The receiver settles whole stretches: what completes one must not wait for the rest of it.
  return limits_.piece_rows != UINT64_MAX &&
         message.last / limits_.piece_rows == destination.under_way.begin()->first / limits_.piece_rows;
}

Result<bool> NumberedSender::step(const Emit& emit) {
  bool sent = false;
  for (Destination& destination : destinations_) {
    while (!destination.waiting.empty() && may_go(destination, destination.waiting.begin()->second)) {
      NumberedMessage message = std::move(destination.waiting.begin()->second);
      destination.waiting.erase(destination.waiting.begin());
      PIF_ASSERT(queued_bytes_ >= message.body.size() && message.count > 0, queued_bytes_, message.body.size());
      queued_bytes_ -= message.body.size();
      if (limits_.share_bytes != UINT64_MAX) {
        destination.under_way[message.last] += message.record_bytes;
        destination.bytes_under_way += message.record_bytes;
      }
      PIF_TRY(emit(std::move(message)));
      sent = true;
    }
  }
  return sent;
}

void NumberedSender::settle(std::uint32_t to, Row row) {
  if (to >= destinations_.size()) return;
  Destination& destination = destinations_[to];
  destination.settled = std::max(destination.settled, row);
  while (!destination.under_way.empty() && destination.under_way.begin()->first < row) {
    const std::uint64_t bytes = destination.under_way.begin()->second;
    PIF_ASSERT(destination.bytes_under_way >= bytes, to, destination.bytes_under_way, bytes);
    destination.bytes_under_way -= bytes;
    destination.under_way.erase(destination.under_way.begin());
  }
}

Status place_records(const NumberedMessage& message, std::uint32_t record_length, std::span<std::byte> memory) {
  if (message.placed) return {};
  const std::uint64_t rows = memory.size() / record_length;
  return for_each_record(message.first, message.count, record_length, message.body.span(),
                         [&](Row row, std::span<const std::byte> record) -> Status {
                           std::memcpy(memory.data() + row % rows * record_length, record.data(), record_length);
                           return {};
                         });
}

}  // namespace pif::tool
