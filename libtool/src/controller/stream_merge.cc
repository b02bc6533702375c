#include "controller/stream_merge.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"

namespace pif::tool {
namespace {

// A record, and what a tool puts around it.
constexpr std::uint32_t kFrameBytesMax = kRecordLengthMax + (1u << 16);
constexpr std::size_t kCutFrom = 256u << 10;  // what was taken is cut off so many bytes at a time

}  // namespace

StreamMerge::StreamMerge(std::size_t workers) : sources_(workers) {
  for (std::uint32_t rank = 0; rank < workers; ++rank) order_.insert({StreamKey(), rank});
}

std::size_t StreamMerge::room(std::uint32_t rank) const {
  PIF_ASSERT(rank < sources_.size(), rank, sources_.size());
  const Source& source = sources_[rank];
  const std::size_t kept = left(source).size();
  if (kept < kBytesMax) return kBytesMax - kept;
  return source.has_bytes == 0 ? kBytesMax : 0;
}

Status StreamMerge::add(std::uint32_t rank, std::string_view bytes) {
  PIF_TRY(go_on());
  Source& source = sources_[rank];
  PIF_ASSERT(!source.is_over && source.at <= source.bytes.size(), rank, source.at, source.bytes.size());
  if (source.at > std::max(kCutFrom, source.bytes.size() / 2)) {
    source.bytes.erase(0, source.at);
    source.at = 0;
  }
  source.bytes += bytes;
  source.come += bytes.size();
  return source.has_bytes == 0 ? look(rank) : Status();
}

Status StreamMerge::end(std::uint32_t rank) {
  PIF_TRY(go_on());
  PIF_ASSERT(!sources_[rank].is_over, rank);
  sources_[rank].is_over = true;
  return sources_[rank].has_bytes > 0 ? Status() : drop(rank);
}

Status StreamMerge::drop(std::uint32_t rank) {
  const std::size_t erased = order_.erase({sources_[rank].reached, rank});
  PIF_ASSERT(erased == 1 && sources_[rank].is_over, rank);
  if (left(sources_[rank]).empty()) return {};
  return fail(Code::kInvalid, fmt::format("what worker {} streams ends within a frame", rank));
}

Status StreamMerge::look(std::uint32_t rank) {
  Source& source = sources_[rank];
  PIF_ASSERT(source.has_bytes == 0, rank);
  const StreamKey before = source.reached;
  while (left(source).size() >= FrameHead::kBytes && source.has_bytes == 0) {
    const auto head = unpack_head<FrameHead>(left(source).substr(0, FrameHead::kBytes));
    if (!head || (head->is_record() && head->length > kFrameBytesMax) || head->key() < source.reached)
      return fail(Code::kInvalid, fmt::format("what worker {} streams cannot be read", rank));
    source.reached = head->key();
    if (head->is_record() && left(source).size() < head->frame_bytes()) break;
    if (head->is_record()) source.has_bytes = head->frame_bytes();
    if (!head->is_record()) source.at += FrameHead::kBytes;
  }
  if (source.reached != before) {
    const std::size_t erased = order_.erase({before, rank});
    PIF_ASSERT(erased == 1 && before < source.reached, rank);
    order_.insert({source.reached, rank});
  }
  return {};
}

// The record that was given has been seen.
Status StreamMerge::go_on() {
  if (!taken_) return {};
  const std::uint32_t rank = *std::exchange(taken_, std::nullopt);
  Source& source = sources_[rank];
  PIF_ASSERT(source.has_bytes >= FrameHead::kBytes, rank, source.has_bytes);
  source.at += std::exchange(source.has_bytes, 0);
  PIF_TRY(look(rank));
  return source.is_over && source.has_bytes == 0 ? drop(rank) : Status();
}

Result<std::optional<StreamMerge::Taken>> StreamMerge::next() {
  PIF_TRY(go_on());
  // Of one key one worker has the record, and others may have come as far.
  for (auto it = order_.begin(); it != order_.end() && it->first == order_.begin()->first; ++it) {
    Source& source = sources_[it->second];
    if (source.has_bytes == 0) continue;
    taken_ = it->second;
    return Taken{source.reached, left(source).substr(FrameHead::kBytes, source.has_bytes - FrameHead::kBytes)};
  }
  return std::nullopt;
}

}  // namespace pif::tool
