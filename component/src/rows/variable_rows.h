// Both writers of variable rows do this with their lengths: checks, and the ends that .idx has.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "pif/base/limits.h"
#include "pif/base/result.h"
#include "stream/stream.h"

namespace pif::component {

// lengths: of rows that are `data` together, and come behind `before` bytes of the component. kInvalid: they do not add
// up; kTooLarge: a row, or the component, would be.
inline Status check_rows(FileId file, std::uint64_t before, std::span<const std::uint32_t> lengths,
                         std::span<const std::byte> data) {
  const std::uint64_t total = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  if (total != data.size())
    return fail(Code::kInvalid, fmt::format("rows of {} bytes came with {} bytes", total, data.size()));
  for (const std::uint32_t length : lengths)
    if (length > kRecordLengthMax)
      return fail(Code::kTooLarge,
                  fmt::format("a record of {} bytes; at most {} are possible", length, kRecordLengthMax));
  if (data.size() > kLengthMax - before)
    return fail(Code::kTooLarge, fmt::format("file {}: the component would be too long", file.value));
  return {};
}

// put(bytes) for the ends of these rows, which come behind `before` bytes, in order and in pieces.
template <typename Put>
[[nodiscard]] Status put_ends(std::uint64_t before, std::span<const std::uint32_t> lengths, const Put& put) {
  std::array<std::uint64_t, 1024> ends;
  for (std::uint64_t end = before; !lengths.empty();) {
    const std::size_t count = std::min(lengths.size(), ends.size());
    for (std::size_t i = 0; i < count; ++i) ends[i] = end += lengths[i];
    PIF_TRY(put(std::as_bytes(std::span(ends).first(count))));
    lengths = lengths.subspan(count);
  }
  return {};
}

}  // namespace pif::component
