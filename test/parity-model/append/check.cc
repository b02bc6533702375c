// What must hold in every state.
#include <algorithm>

#include "parity-model/append/steps.h"

namespace pif::parity_model::append {

const char* Steps::check(const State& s) const {
  const std::size_t nobody = s.node_count;
  std::size_t gone = nobody;
  for (std::size_t node = 0; node < s.node_count; ++node)
    if (is_gone(s, node)) gone = node;
  for (std::size_t lost = 0; lost <= nobody; ++lost) {
    if (gone != nobody && lost != gone) continue;
    if (const char* wrong = check_loss(s, lost)) return wrong;
  }
  return check_readers(s);
}

// With the disk of `lost` gone, all that anybody was told is there, and all that the next sequencer will find to be
// published; with none gone, P covers it.
const char* Steps::check_loss(const State& s, std::size_t lost) const {
  Byte length = 0;
  if (lost != kD0) length = std::max(length, s.sequencers[0].length);
  if (lost != s.deputy) length = std::max(length, s.sequencers[1].length);
  if (length < s.seen) return "a length that was told is lost";
  for (std::size_t record = 0; record < length; ++record) {
    const bool at_member = member_of(record) != lost;
    const Byte there = at_member ? s.rows[record] : from_parity(s, record);
    const Byte right = record < s.seen ? s.right[record] : there;
    if (right == 0 || right == kGarbage) return "a length is durable, and not its records";
    if (at_member && s.rows[record] != right) return "a published record is not at its LFS";
    if (at_member && lost != s.node_count) continue;
    if (from_parity(s, record) == right) continue;
    return at_member ? "a published record is not covered by P" : "a published record of a lost LFS is not at P";
  }
  return nullptr;
}

// LFS 0 tells lengths while it has its lease; its deputy when it has taken over, and before that what it knows to be
// published.
const char* Steps::check_readers(const State& s) const {
  const bool tells = !s.views.last().is_absent(kD0) || s.lease != 0 || is(Weak::kZombieTellsLength);
  for (std::size_t sequencer = 0; sequencer < kSequencers; ++sequencer) {
    const Sequencer& own = s.sequencers[sequencer];
    if (own.active != 0 && own.shown < s.seen && (sequencer == 1 || tells))
      return "a length is told that is less than one told before";
  }
  const Node& deputy = s.nodes[s.deputy];
  const bool is_asked = deputy.up != 0 && deputy.open != 0 && !is_gone(s, s.deputy);
  if (is_asked && deputy.known > s.seen) return "the deputy tells a length that is not published";
  const bool folded = !is_gone(s, kP) && is_folded(s, 0);
  if (folded && s.seen < kMembers) return "a page is counted before its rows are published";
  return nullptr;
}

}  // namespace pif::parity_model::append
