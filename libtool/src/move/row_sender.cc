#include <cstring>
#include <numeric>
#include <utility>

#include "move/rows.h"
#include "pif/base/assert.h"

namespace pif::tool {
namespace {

constexpr std::size_t kBlockBytesMax = 8u << 20;
constexpr std::size_t kPieceBytes = 512u << 10;  // aimed at, of a block for one destination
constexpr std::uint64_t kVariableWindowRows = 64u << 10;
constexpr std::uint64_t kPieces = 4;
constexpr std::uint64_t kShareMin = 256u << 10;

// Large enough that each destination's piece is worth a message.
std::size_t block_bytes_for(const parity::Layout& from, const parity::Layout& to) {
  const std::uint64_t pieces = std::lcm<std::uint64_t>(from.width(), to.width()) / from.width();
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(pieces * kPieceBytes, kBatchBytes, kBlockBytesMax));
}

}  // namespace

WindowSize WindowSize::of(const Format& format, std::size_t window_bytes, std::uint32_t sources) {
  WindowSize window;
  window.share = std::max<std::uint64_t>(window_bytes / std::max(sources, 1u), kShareMin);
  if (!format.is_fixed()) {
    window.piece = 1;
    window.rows = kVariableWindowRows;
    return window;
  }
  const std::uint64_t piece_rows = window_bytes / kPieces / format.record_length;
  const std::uint64_t chunk_rows = component::chunk_bytes_for(format) / format.record_length;
  PIF_ASSERT(chunk_rows > 0, format.record_length);
  // Whole checksum chunks, so that none is summed twice.
  window.piece = std::max<std::uint64_t>(piece_rows / chunk_rows * chunk_rows, chunk_rows);
  const std::uint64_t slabs =
      std::clamp<std::uint64_t>(window_bytes / (window.piece * format.record_length), 2, kPieces);
  window.rows = window.piece * slabs;
  return window;
}

RowSender::RowSender(Input& input, const parity::Layout& to, const WindowSize& window)
    : input_(input),
      to_(to),
      window_(window),
      block_bytes_(block_bytes_for(input.layout(), to)),
      destinations_(to.width()) {}

Status RowSender::load_block() {
  PIF_ASSERT(strips_.empty() && next_ < input_.rows(), strips_.size(), next_, input_.rows());
  PIF_TRY(input_.read(next_, input_.rows() - next_, block_bytes_, block_));
  for (auto& map : plan_row_maps(input_.layout(), input_.index(), {next_, next_ + block_.count}, to_)) {
    strips_.push_back({std::move(map), 0});
  }
  PIF_ASSERT(block_.count > 0 && block_.count <= input_.rows() - next_, block_.count, next_, input_.rows());
  next_ += block_.count;
  if (input_.format().is_fixed()) return {};
  offsets_.resize(block_.count + 1);
  offsets_[0] = 0;
  std::inclusive_scan(block_.lengths.begin(), block_.lengths.end(), offsets_.begin() + 1, std::plus<>(),
                      std::uint64_t{0});
  PIF_ASSERT(offsets_.back() == block_.data.size(), offsets_.back(), block_.data.size());
  return {};
}

std::uint32_t RowSender::length_of(std::uint64_t block_row) const {
  PIF_ASSERT(block_row < block_.count, block_row, block_.count);
  if (!input_.format().is_fixed()) return block_.lengths[block_row];
  const std::uint64_t rest = block_.data.size() - block_row * block_.record_length;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, block_.record_length));
}

std::uint64_t RowSender::offset_of(std::uint64_t block_row) const {
  return input_.format().is_fixed() ? block_row * block_.record_length : offsets_[block_row];
}

std::uint64_t RowSender::allowed(const Pending& pending) const {
  const RowMap& map = pending.map;
  PIF_ASSERT(map.to < destinations_.size() && pending.sent <= map.count, map.to, pending.sent, map.count);
  const Credit& credit = *destinations_[map.to].credit;
  const std::uint64_t below = map.count_below(credit.limit());
  const std::uint64_t rows = below > pending.sent ? below - pending.sent : 0;
  if (input_.format().is_fixed()) {
    return std::min(rows, std::max<std::uint64_t>(kBatchBytes / input_.format().record_length, 1));
  }
  const std::uint64_t most = std::min<std::uint64_t>(credit.free_bytes(), kBatchBytes);
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  for (; count < rows; ++count) {
    bytes += length_of(map.source(pending.sent + count));
    const bool is_first = count == 0 && credit.has_none_under_way();  // always allowed: nobody else can go before it
    if (bytes > most && !is_first) break;
  }
  return count;
}

std::uint64_t RowSender::bytes_of(const Pending& pending, std::uint64_t count) const {
  const RowMap& map = pending.map;
  const std::uint64_t end = pending.sent + count;
  PIF_ASSERT(count > 0 && end <= map.count, pending.sent, count, map.count);
  if (input_.format().is_fixed()) {  // only the block's last row may be shorter
    return (count - 1) * block_.record_length + length_of(map.source(end - 1));
  }
  std::uint64_t bytes = 0;
  for (std::uint64_t i = pending.sent; i < end; ++i) bytes += length_of(map.source(i));
  return bytes;
}

// Straight to their places at the destination.
void RowSender::place(const Pending& pending, const RowMessage& message) const {
  const RowMap& map = pending.map;
  const std::span<std::byte> window = destinations_[map.to].window;
  PIF_ASSERT(window.size() == window_.rows * block_.record_length, window.size(), window_.rows, block_.record_length);
  for (std::uint64_t i = pending.sent; i < pending.sent + message.count; ++i) {
    const std::uint64_t row = map.source(i);
    std::memcpy(window.data() + map.row(i) % window_.rows * block_.record_length, block_.data.data() + offset_of(row),
                length_of(row));
  }
}

void RowSender::pack(const Pending& pending, RowMessage& message) const {
  const RowMap& map = pending.map;
  const bool fixed = input_.format().is_fixed();
  const std::uint64_t count = message.count, begin = pending.sent, end = begin + count;
  const auto gap_of = [&](std::uint64_t i) {
    return static_cast<std::uint32_t>(map.row(begin + i) - message.first - i);
  };
  const auto length_at = [&](std::uint64_t i) { return length_of(map.source(begin + i)); };
  std::uint32_t longest = 0;
  for (std::uint64_t i = 0; !fixed && i < count; ++i) longest = std::max(longest, length_at(i));
  const std::size_t gap = message.stride == 0 ? narrow_width(gap_of(count - 1), Room::kAsNeeded) : 0,
                    gaps = message.stride == 0 ? 1 + count * gap : 0, length = narrow_width(longest, Room::kAlways),
                    lengths = fixed ? 0 : 1 + count * length;
  message.body = net::Buffer(gaps + lengths + (message.placed ? 0 : message.record_bytes));
  std::byte* at = message.body.data();
  if (gaps > 0) at = pack_narrow(count, gap, at, gap_of);
  if (lengths > 0) at = pack_narrow(count, length, at, length_at);
  if (message.placed) return place(pending, message);
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::uint64_t row = map.source(i);
    const std::uint32_t bytes = length_of(row);
    if (bytes > 0) std::memcpy(at, block_.data.data() + offset_of(row), bytes);
    at += bytes;
  }
  PIF_ASSERT(at == std::as_const(message.body).data() + message.body.size(), message.count, message.record_bytes);
}

RowMessage RowSender::message(Pending& pending, std::uint64_t count) {
  const RowMap& map = pending.map;
  RowMessage message;
  message.to = map.to;
  message.first = map.row(pending.sent);
  message.last = map.row(pending.sent + count - 1);
  message.count = count;
  message.stride = map.list.empty() ? map.stride : 0;
  message.placed = !destinations_[map.to].window.empty();
  message.record_bytes = bytes_of(pending, count);
  pack(pending, message);
  pending.sent += count;
  return message;
}

Result<bool> RowSender::step(const Emit& emit) {
  if (strips_.empty() && next_ < input_.rows()) PIF_TRY(load_block());
  bool sent = false;
  for (auto& pending : strips_) {
    while (const std::uint64_t count = allowed(pending)) {
      PIF_TRY(emit(message(pending, count)));
      sent = true;
    }
  }
  std::erase_if(strips_, [](const Pending& pending) { return pending.sent == pending.map.count; });
  return sent;
}

void RowSender::open(LfsIndex to, const Credit& credit, std::span<std::byte> window) {
  PIF_ASSERT(to < destinations_.size(), to, destinations_.size());
  destinations_[to] = {&credit, window};
}

}  // namespace pif::tool
