// One state of the model `seal`: what is durable, what is in page caches, and what only the model knows. All of it is
// bytes without padding, so that equal states have equal bytes.
//
// The file has four records in two groups: 0 and 1 are page 0, 2 and 3 are page 1. Content is the number of the create
// or append that wrote it; 0 is nothing.
#pragma once

#include <type_traits>

#include "parity-model/cluster.h"

namespace pif::parity_model::seal {

inline constexpr std::size_t kRecords = 4;
inline constexpr std::size_t kPages = 2;
inline constexpr Byte kGarbage = 255;  // what comes out where parity does not fit its members

// What a reader finds, and what a power cut leaves.
struct Row {
  Byte written = 0;
  Byte durable = 0;
  [[nodiscard]] bool dirty() const { return written != durable; }
  void set(Byte content) { written = durable = content; }
};

// A page stands for the content that each member had when its parity was computed: what its vector of hashes says.
struct Page {
  std::array<Byte, kMembers> of{};
  [[nodiscard]] bool whole() const { return of[0] != 0 && of[1] != 0; }
  bool operator==(const Page&) const = default;
};

struct StoredPage {
  Page written, durable;
  [[nodiscard]] bool dirty() const { return written != durable; }
  void set(const Page& page) { written = durable = page; }
};

struct Node {
  Byte up = 1;
  Byte view = 0;     // the newest that it has adopted
  Byte open = 1;     // it serves: it has not heard that it was lost, or has opened again
  Byte known = 0;    // records below this are published, as far as it knows: what it was told as a base or a length
  Byte fetched = 0;  // returning, it has all that was settled in this view; in memory
  Byte newest = 0;   // generation of the newest append that it has taken part in
};

// Both sequencers: LFS 0, and its deputy.
inline constexpr std::size_t kSequencers = 2;
constexpr std::size_t node_of(std::size_t sequencer) { return sequencer == 0 ? kD0 : kP; }

struct Sequencer {
  Byte length = 0;  // durable
  Byte active = 0;  // it has settled, and grants ranges
  Byte shown = 0;   // what it tells readers
};

enum class Gathered : Byte { kNo, kWritten, kSynced };

struct Create {
  Byte view = 0;
  Byte content = 1;
  Byte sealed = 0;  // members
  Gathered gathered = Gathered::kNo;
};

enum class Phase : Byte { kNone, kGranted, kNoted };

// An append. `first` is the published length at its grant: its base. `content` is its generation, too: each grant
// has a newer one, and the model grants one range at a time.
struct Append {
  Phase phase = Phase::kNone;
  Byte sequencer = 0;
  Byte view = 0;
  Byte first = 0, count = 0;
  Byte content = 0;
  Byte rows = 0;    // records that are durable at their LFS, as the client was told
  Byte copies = 0;  // records whose copies are durable at P, as the client was told
  Gathered covered = Gathered::kNo;
  [[nodiscard]] std::size_t end() const { return std::size_t{first} + count; }
  [[nodiscard]] bool holds(std::size_t record) const { return record >= first && record < end(); }
};

struct State {
  Views views;
  std::array<Node, kNodes> nodes{};
  std::array<Row, kRecords> rows{};    // each at its member
  std::array<Row, kRecords> frames{};  // at P
  std::array<StoredPage, kPages> pages{};
  Byte page_count = 0;  // published whole pages
  Byte covered = 0;     // pages of `Cover` that are not counted yet; frames of earlier groups may still be unfolded
  std::array<Sequencer, kSequencers> sequencers{};
  Create create;
  Append append;  // the one under way
  Append late;    // the one before it: its requests may still come
  Byte committed = 0;
  Byte directory_length = 0;
  Byte contents = 1;  // numbers given
  // The model's.
  std::array<Byte, kRecords> right{};  // content of published records
  Byte seen = 0;                       // the highest length that anybody was told
  Byte appends = 0, crashes = 0, losses = 0;
};

static_assert(std::has_unique_object_representations_v<State>, "equal states have equal bytes");
static_assert(std::is_trivially_copyable_v<State>);

// Whether requests of `view` count `node` as absent.
inline bool is_absent(const State& s, Byte view, std::size_t node) { return s.views.at(view).is_absent(node); }

// Whether `node` cannot be asked, by the newest view, whatever it believes.
inline bool is_gone(const State& s, std::size_t node) {
  const View& view = s.views.last();
  return view.is_absent(node) || (view.is_returning(node) && s.nodes[node].open == 0);
}

inline bool is_in_page(const State& s, std::size_t page) { return page < s.page_count || has(s.covered, page); }

// The content of a lost member's row, from P: of the page, with the row of the other member, or of its frame.
inline Byte from_parity(const State& s, std::size_t record, Byte Row::*where) {
  const std::size_t page = page_of(record), other = record ^ 1u;
  if (!is_in_page(s, page)) return s.frames[record].*where;
  const Page& stored = where == &Row::durable ? s.pages[page].durable : s.pages[page].written;
  return stored.of[member_of(other)] == s.rows[other].*where ? stored.of[member_of(record)] : kGarbage;
}

}  // namespace pif::parity_model::seal
