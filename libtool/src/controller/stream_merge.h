// The streams of all workers of a job (pif/tool/stream.h) as one, in the order of keys. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/frames.h"
#include "pif/base/assert.h"
#include "pif/tool/stream_taker.h"

namespace pif::tool {

class StreamMerge {
 public:
  // Bytes of one worker, kept here: more only where its first frame is longer, or its first head is not whole.
  static constexpr std::size_t kBytesMax = 1u << 20;

  explicit StreamMerge(std::size_t workers);

  // How many bytes of its stream have come, and how many more may come now.
  std::uint64_t come(std::uint32_t rank) const {
    PIF_ASSERT(rank < sources_.size(), rank, sources_.size());
    return sources_[rank].come;
  }
  std::size_t room(std::uint32_t rank) const;
  // More of it. kInvalid: it is no stream, or goes back.
  [[nodiscard]] Status add(std::uint32_t rank, std::string_view bytes);
  // No more of it comes. kInvalid: it ends within a frame.
  [[nodiscard]] Status end(std::uint32_t rank);

  struct Taken {
    StreamKey key;
    std::string_view bytes;  // valid until the next call of anything here
  };
  // The next one of all, if it is known; nothing: something must come first, or all is over. kInvalid: as add().
  [[nodiscard]] Result<std::optional<Taken>> next();

 private:
  struct Source {
    std::string bytes;          // of frames that were not taken
    std::size_t at = 0;         // where the first of them begins
    std::uint64_t come = 0;     // bytes of all
    StreamKey reached;          // the first record that is here, or nothing comes before it
    std::size_t has_bytes = 0;  // of the record that is here whole, with its head; 0: none is
    bool is_over = false;
  };
  std::string_view left(const Source& source) const { return std::string_view(source.bytes).substr(source.at); }
  // Looks at the frame that is first now.
  [[nodiscard]] Status look(std::uint32_t rank);
  [[nodiscard]] Status go_on();
  // It is over, and all its records were taken.
  [[nodiscard]] Status drop(std::uint32_t rank);

  std::vector<Source> sources_;
  std::set<std::pair<StreamKey, std::uint32_t>> order_;  // of those that are not over, by what they have reached
  std::optional<std::uint32_t> taken_;                   // whose record next() gave
};

}  // namespace pif::tool
