// Waits that more than one part must agree on, or that others notice; docs/PROTOCOL.md "Timers" is the table of them. A
// wait that is nobody else's business stands where it is used.
#pragma once

#include "pif/base/clock.h"

namespace pif {

// ---- who says nothing ----
inline constexpr Duration kSignEvery = std::chrono::seconds(1);  // `working`, of a daemon that is still at it
inline constexpr Duration kSilenceMax =
    std::chrono::seconds(8);  // of a peer that owes an answer; and of a ZeroMQ connection
inline constexpr Duration kHeartbeatEvery = std::chrono::seconds(1);  // of a ZeroMQ connection
// A process that looks at a deadline later than this was stopped, or busy: messages that came meanwhile get as long to
// be read.
inline constexpr Duration kCameLate = std::chrono::seconds(1);

// ---- LFSs, as the server sees them ----
inline constexpr Duration kSuspectAfter = std::chrono::seconds(3);
inline constexpr Duration kDownAfter = std::chrono::seconds(10);
inline constexpr Duration kLostAfter = std::chrono::seconds(10);  // where the server declares that by itself
// An LFS may act alone for so long from the sending of a heartbeat that was answered (docs/PROTOCOL.md "Views").
inline constexpr Duration kLease = std::chrono::seconds(6);
inline constexpr Duration kLeaseOver = std::chrono::seconds(7);  // from the server's answer: others may act for it

// ---- sessions at the server ----
inline constexpr Duration kAliveEvery =
    std::chrono::seconds(20);  // a client that only talks to LFSs says that it is there
inline constexpr Duration kSilentSession = std::chrono::seconds(60);  // over ZeroMQ
inline constexpr Duration kProbeEvery = std::chrono::seconds(5);      // whether a silent ZeroMQ peer is still connected
inline constexpr Duration kAbortGrace = std::chrono::seconds(30);     // for a creator to come back

// ---- jobs ----
inline constexpr Duration kJobHold = std::chrono::milliseconds(500);  // a JobWait at its LFS, if nothing happens
inline constexpr Duration kJobHoldMax = std::chrono::seconds(1);      // of any request that waits for news
inline constexpr Duration kJobClaim = std::chrono::seconds(10);  // from a job's spawn to its controller's first JobWait
inline constexpr Duration kJobLease =
    std::chrono::seconds(60);  // of a controller over ZeroMQ; a Unix socket's end tells
inline constexpr Duration kJobOver =
    std::chrono::seconds(2);  // of a job that is over and whose controller has got all of it
inline constexpr Duration kWorkerSilenceMax =
    std::chrono::minutes(10);  // of all others, for a worker that waits for them

// ---- components ----
inline constexpr Duration kWritersPatience = std::chrono::seconds(3);  // of a Seal, with who could still write
inline constexpr Duration kUnsettledAfter =
    std::chrono::seconds(60);  // untouched, before the server is asked what became of it

}  // namespace pif
