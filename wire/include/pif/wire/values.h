// Names for numbers in messages (proto/). The numbers never change: other releases have them, too.
#pragma once

#include <cstdint>

namespace pif::wire {

// Heartbeat.stage
enum BeatStage : std::uint32_t {
  kServes = 0,
  kAsks = 1,      // to be admitted
  kConfirms = 2,  // that it has kept the incarnation which it was offered
};

// HeartbeatReply.verdict
enum Verdict : std::uint32_t {
  kGoOn = 1,
  kAdmitted = 2,
  kIsStale = 3,
  kServerBehind = 4,
  kNotYet = 5,  // others are waited for: it asks again
};

// FileMark.kind
enum MarkKind : std::uint32_t {
  kMarkMixed = 1,  // rows may be old ones
  kMarkLost = 2,   // rows are gone
};

}  // namespace pif::wire
