// What must hold in every state.
#include <algorithm>

#include "parity-model/seal/steps.h"

namespace pif::parity_model::seal {

const char* Steps::check(const State& s) const {
  if (s.committed == 0) return nullptr;
  constexpr std::size_t kNobody = kNodes;
  std::size_t gone = kNobody;
  for (std::size_t node = 0; node < kNodes; ++node)
    if (is_gone(s, node)) gone = node;
  for (std::size_t lost = 0; lost <= kNobody; ++lost) {
    if (gone != kNobody && lost != gone) continue;
    if (const char* wrong = check_loss(s, lost)) return wrong;
  }
  if (const char* wrong = check_pages(s)) return wrong;
  return check_readers(s);
}

// With the disk of `lost` gone, all that anybody was told is there, and all that the next sequencer will find to be
// published; with none gone, P covers it.
const char* Steps::check_loss(const State& s, std::size_t lost) const {
  Byte length = s.directory_length;
  if (lost != kD0) length = std::max(length, s.sequencers[0].length);
  if (lost != kP) length = std::max(length, s.sequencers[1].length);
  if (length < s.seen) return "a length that was told is lost";
  for (std::size_t record = 0; record < length; ++record) {
    const bool at_member = member_of(record) != lost;
    const Byte there = at_member ? s.rows[record].durable : from_parity(s, record, &Row::durable);
    const Byte right = record < s.seen ? s.right[record] : there;
    if (right == 0 || right == kGarbage) return "a length is durable, and not its records";
    if (at_member && s.rows[record].durable != right) return "a published record is not at its LFS";
    if (at_member && lost != kNodes) continue;
    if (from_parity(s, record, &Row::durable) == right) continue;
    return at_member ? "a published record is not covered by P" : "a published record of a lost LFS is not at P";
  }
  return nullptr;
}

// `pages` counts only whole groups of published rows.
const char* Steps::check_pages(const State& s) const {
  if (is_gone(s, kP)) return nullptr;
  const std::size_t counted = s.page_count * kMembers;
  if (counted > s.seen && !is(Weak::kFoldNoted)) return "a page is counted before its rows are published";
  for (std::size_t record = 0; record < std::min<std::size_t>(counted, s.seen); ++record)
    if (s.pages[page_of(record)].durable.of[member_of(record)] != s.right[record])
      return "a counted page is not that of its rows";
  return nullptr;
}

// Whoever answers readers now answers what is right.
const char* Steps::check_readers(const State& s) const {
  const bool tells = !is_gone(s, kD0) || is(Weak::kZombieTellsLength);
  if ((s.sequencers[0].active != 0 && tells && s.sequencers[0].shown < s.seen) ||
      (s.sequencers[1].active != 0 && s.sequencers[1].shown < s.seen))
    return "a length is told that is less than one told before";
  for (std::size_t record = 0; record < s.seen; ++record) {
    const std::size_t member = member_of(record), other = record ^ 1u;
    const Node &own = s.nodes[member], &parity = s.nodes[kP];
    const bool opens_early = is(Weak::kServesBeforeOpen) && s.views.at(own.view).is_returning(member);
    const bool reads = own.up != 0 && own.view == s.views.newest && (own.open != 0 || opens_early);
    if (reads && s.rows[record].written != s.right[record]) return "a wrong record is read at its LFS";
    const bool asks_p = is_gone(s, member) && parity.up != 0 && parity.view == s.views.newest;
    const bool with_other = s.nodes[member_of(other)].up != 0 && s.nodes[member_of(other)].view == parity.view;
    if (asks_p && with_other && from_parity(s, record, &Row::written) != s.right[record])
      return "a wrong record is read at P for an absent LFS";
  }
  return nullptr;
}

}  // namespace pif::parity_model::seal
