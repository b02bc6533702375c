// Names for numbers in messages (proto/). The numbers never change: other releases have them, too.
#pragma once

#include <cstddef>
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
  kEnd = 6,     // it is lost, and its process ends
};

// NodeInfo.state, as an LFS says it of itself; the server shows others, too
enum OwnState : std::uint32_t {
  kStateUp = 1,
  kStateFailing = 6,  // its disk fails: NodeInfo.trouble says how
};

// FileMark.kind
enum MarkKind : std::uint32_t {
  kMarkMixed = 1,  // rows may be old ones
  kMarkLost = 2,   // rows are gone
};

// An LFS's number: its era (ViewNode.era) in the bits from here on, a count below.
inline constexpr unsigned kEraShift = 40;

// ViewNode.state
enum ViewState : std::uint32_t {
  kViewMember = 1,
  kViewLost = 2,
  kViewRebuilding = 3,
  kViewReturning = 4,  // rows and lengths go to it again; it does not answer yet
};

// FileLayout.form
inline constexpr std::uint32_t kFormParity = 1;  // its LFSs keep parity

// Other.kind
enum OtherKind : std::uint32_t {
  kOtherLink = 1,
  kOtherFifo = 2,
  kOtherSocket = 3,
  kOtherCharacterDevice = 4,
  kOtherBlockDevice = 5,
};
inline constexpr std::size_t kTargetBytesMax = 4095;  // Other.target: as long as Linux has them

// MembersReply.One.state, StoredMember.state
enum MemberState : std::uint32_t {
  kMemberWriting = 1,
  kMemberDone = 2,
  kMemberDropped = 3,
  kMemberGone = 4,  // never stored: it was writing, and its session has ended
};

// RebuildStatusReply.state
enum RebuildState : std::uint32_t {
  kRebuilt = 1,         // nothing to rebuild: a member
  kRebuildWaits = 2,    // for Rebuild
  kRebuilding = 3,      // under way
  kRebuildPauses = 4,   // what is left failed, and is tried again in a moment
  kRebuildSettles = 5,  // all is there, and the server is notified
};

}  // namespace pif::wire
