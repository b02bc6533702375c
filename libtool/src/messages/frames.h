// A stream from a worker to its controller consists of frames, each a head, and the bytes that the worker put.
#pragma once

#include <cstdint>
#include <limits>
#include <tuple>

#include "pif/tool/head.h"
#include "pif/tool/stream.h"

namespace pif::tool {

struct FrameHead {
  // As a length: no bytes follow, and nothing before this key.
  static constexpr std::uint32_t kPassed = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kBytes = 16;  // as it travels

  std::uint32_t input = 0;
  std::uint64_t record = 0;
  std::uint32_t length = 0;
  static auto members(auto& self) { return std::tie(self.input, self.record, self.length); }

  StreamKey key() const { return {input, record}; }
  bool is_record() const { return length != kPassed; }
  std::size_t frame_bytes() const { return kBytes + (is_record() ? length : 0); }
};

}  // namespace pif::tool
