#include "pif/tool/numbered.h"

#include <cstring>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::tool {
namespace {

constexpr std::size_t kMessageBytes = 256u << 10;  // aimed at
}  // namespace

NumberedSender::NumberedSender(std::uint32_t destinations, bool fixed_length, std::uint64_t piece_rows, Place place)
    : fixed_length_(fixed_length), piece_rows_(piece_rows), place_(std::move(place)), destinations_(destinations) {
  PIF_ASSERT(piece_rows_ > 0);
}

void NumberedSender::open(std::uint32_t to, const Credit& credit, std::span<std::byte> memory) {
  PIF_ASSERT(to < destinations_.size(), to, destinations_.size());
  destinations_[to].credit = &credit;
  destinations_[to].memory = memory;
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
  const bool goes_there = !destination.memory.empty() && destination.credit->reaches(at.row);
  const bool full = (!goes_there && open.bytes + size > kMessageBytes) || goes_there != (open.placed != nullptr) ||
                    at.row / piece_rows_ != open.first / piece_rows_;
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
  if (!fixed_length_) open.lengths.push_back(static_cast<std::uint32_t>(size));
  open.longest = std::max(open.longest, static_cast<std::uint32_t>(size));
  open.bytes += size;
}

// Gaps, lengths, and the records that are not placed.
net::Buffer NumberedSender::pack(const Open& open) const {
  const std::size_t count = open.gaps.size(), gap = narrow_width(open.gaps.back(), Room::kAsNeeded),
                    length = narrow_width(open.longest, Room::kAlways),
                    all_lengths = fixed_length_ ? 0 : 1 + count * length;
  net::Buffer body(1 + count * gap + all_lengths + (open.placed != nullptr ? 0 : open.bytes));
  std::byte* at = pack_narrow(count, gap, body.data(), [&](std::uint64_t i) { return open.gaps[i]; });
  if (!fixed_length_) at = pack_narrow(count, length, at, [&](std::uint64_t i) { return open.lengths[i]; });
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
  PIF_ASSERT(fixed_length_ ? open.lengths.empty() : open.lengths.size() == open.gaps.size(), open.lengths.size(),
             open.gaps.size());
  RowMessage message;
  message.to = to;
  message.first = open.first;
  message.last = open.last;
  message.count = open.gaps.size();
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

Result<bool> NumberedSender::step(const Emit& emit) {
  bool sent = false;
  for (Destination& destination : destinations_) {
    for (auto next = destination.waiting.begin(); next != destination.waiting.end();) {
      const Credit& credit = *destination.credit;
      if (!credit.allows(next->second.counted_bytes(credit), next->second.rows())) break;
      RowMessage message = std::move(next->second);
      next = destination.waiting.erase(next);
      PIF_ASSERT(queued_bytes_ >= message.body.size() && message.count > 0, queued_bytes_, message.body.size());
      queued_bytes_ -= message.body.size();
      PIF_TRY(emit(std::move(message)));
      sent = true;
    }
  }
  return sent;
}

Status place_records(const RowMessage& message, std::uint32_t record_length, std::span<std::byte> memory) {
  if (message.placed) return {};
  const std::uint64_t rows = memory.size() / record_length;
  return for_each_record(message.first, message.count, record_length, message.body.span(),
                         [&](Row row, std::span<const std::byte> record) -> Status {
                           std::memcpy(memory.data() + row % rows * record_length, record.data(), record_length);
                           return {};
                         });
}

}  // namespace pif::tool
