// The controller's end of what workers find, as they find it (pif/tool/stream.h).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string_view>

#include "pif/base/ids.h"
#include "pif/base/result.h"

namespace pif::tool {

// Where something stands in the stream of all: of that input of the job, that record.
struct StreamKey {
  std::uint32_t input = 0;
  RecordNumber record = 0;
  auto operator<=>(const StreamKey&) const = default;
};

// The controller's end (Job::stream), called on the thread of Controller::run().
struct StreamTaker {
  // Something that a worker put; `bytes` are valid during the call. false: enough was seen, and the job ends well, with
  // no results of workers. An error ends it, too.
  std::function<Result<bool>(StreamKey key, std::string_view bytes)> take;
  // Whether nothing may be taken now: asked every millisecond while it is. Empty: never.
  std::function<bool()> is_full = {};
  // All that has come is taken, and more may come: a moment to show it, not to wait. An error ends the job. Empty:
  // none.
  std::function<Status()> pause = {};

  // Whether anybody takes anything.
  explicit operator bool() const { return static_cast<bool>(take); }
};

}  // namespace pif::tool
