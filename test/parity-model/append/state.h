// One state of the model `append`: three records, several appends at the same time, and two sequencers that may both
// believe that they are the one. All of it is bytes without padding, so that equal states have equal bytes.
//
// What is written is durable at once: `seal` has page caches. Content is the number of the append that wrote it, from 1
// on; 0 is nothing.
#pragma once

#include <type_traits>

#include "parity-model/cluster.h"

namespace pif::parity_model::append {

inline constexpr std::size_t kRecords = 3;
inline constexpr std::size_t kAppendsMax = 4;
inline constexpr std::size_t kGrantsMax = 2;  // open at the same time
inline constexpr std::size_t kQ = 3;          // the deputy, if that is not P
inline constexpr std::size_t kNodesMax = 4;
inline constexpr Byte kSealed = 254;   // content of records that are there at the beginning
inline constexpr Byte kGarbage = 255;  // what comes out where parity does not fit its members
inline constexpr Byte kGenerationsPerView = 16;

struct Node {
  Byte up = 1;
  Byte view = 0;
  Byte open = 1;        // it serves: it has not heard that it was lost, or has opened again
  Byte known = 0;       // records below this are published, as far as it knows
  Byte generation = 0;  // the newest that it has heard of
};

inline constexpr std::size_t kSequencers = 2;

struct Sequencer {
  Byte length = 0;  // durable
  Byte active = 0;  // it has settled, and grants ranges
  Byte shown = 0;   // what it tells readers
};

// An append of one record. Requests and notes that were sent may come at any time, and again.
enum class Phase : Byte { kNone, kGranted, kDone, kAcknowledged, kDead };

struct Append {
  Phase phase = Phase::kNone;
  Byte sequencer = 0;
  Byte view = 0;
  Byte generation = 0;
  Byte record = 0;
  Byte base = 0;      // the published length at its grant
  Byte row = 0;       // the client has heard that its row is durable
  Byte copy = 0;      // and its copy at P
  Byte noted = 0;     // LFS 0 has sent the note
  Byte answered = 0;  // and has heard that the deputy has it durably
  [[nodiscard]] bool is_alive() const { return phase == Phase::kGranted || phase == Phase::kDone; }
};

struct State {
  Views views;
  Byte node_count = kNodes;
  Byte deputy = kP;  // a node
  std::array<Node, kNodesMax> nodes{};
  std::array<Sequencer, kSequencers> sequencers{};
  std::array<Append, kAppendsMax> appends{};
  std::array<Byte, kRecords> rows{};    // each at its member
  std::array<Byte, kRecords> frames{};  // at P
  std::array<Byte, kMembers> page{};    // the page of records 0 and 1: what its vector says; 0: not folded yet
  Byte lease = 0;                       // D0 is declared lost, and its lease still runs
  Byte used = 0;                        // appends
  // The model's.
  std::array<Byte, kRecords> right{};  // content of published records
  Byte seen = 0;                       // the highest length that anybody was told
  Byte crashes = 0, losses = 0;
};

static_assert(std::has_unique_object_representations_v<State>, "equal states have equal bytes");
static_assert(std::is_trivially_copyable_v<State>);

inline std::size_t node_of(const State& s, std::size_t sequencer) { return sequencer == 0 ? kD0 : s.deputy; }

inline bool is_absent(const State& s, Byte view, std::size_t node) { return s.views.at(view).is_absent(node); }

// Whether `node` cannot be asked, by the newest view, whatever it believes.
inline bool is_gone(const State& s, std::size_t node) {
  const View& view = s.views.last();
  return view.is_absent(node) || (view.is_returning(node) && s.nodes[node].open == 0);
}

// What `node` has of records from `first` on, in no page.
inline void drop(State& s, std::size_t node, std::size_t first) {
  for (std::size_t record = first; record < kRecords; ++record) {
    if (node == kP) s.frames[record] = 0;
    if (node == member_of(record)) s.rows[record] = 0;
  }
}

inline bool is_folded(const State& s, std::size_t record) { return record < kMembers && s.page[0] != 0; }

// The content of a lost member's row, from P.
inline Byte from_parity(const State& s, std::size_t record) {
  if (!is_folded(s, record)) return s.frames[record];
  const std::size_t other = record ^ 1u;
  return s.page[member_of(other)] == s.rows[other] ? s.page[member_of(record)] : kGarbage;
}

}  // namespace pif::parity_model::append
