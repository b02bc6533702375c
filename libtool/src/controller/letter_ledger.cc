#include "controller/letter_ledger.h"

#include <algorithm>

#include "pif/base/assert.h"

namespace pif::tool {

bool LetterLedger::fits(const job::LetterCounts& counts) const {
  const int longest = std::max({counts.sent_size(), counts.taken_size(), counts.highest_size()});
  return static_cast<std::size_t>(longest) <= workers_ && counts.highest_size() == counts.taken_size();
}

LetterLedger::Line& LetterLedger::line(std::uint32_t from, std::uint32_t to) {
  PIF_ASSERT(from < workers_ && to < workers_, from, to, workers_);
  if (lines_.empty()) lines_.resize(workers_ * workers_);
  return lines_[to * workers_ + from];
}

void LetterLedger::take_sent(std::uint32_t rank, const job::LetterCounts& counts) {
  PIF_ASSERT(fits(counts), rank, workers_);
  for (int to = 0; to < counts.sent_size(); ++to) {
    Line& sent = line(rank, static_cast<std::uint32_t>(to));
    sent.sent = std::max<std::uint64_t>(sent.sent, counts.sent(to));
  }
}

std::optional<LetterLedger::Lost> LetterLedger::take_wait(std::uint32_t rank, const job::LetterCounts& counts) {
  take_sent(rank, counts);
  std::optional<Lost> lost;
  for (int i = 0; i < counts.taken_size(); ++i) {
    const auto from = static_cast<std::uint32_t>(i);
    Line& come = line(from, rank);
    come.sent = std::max<std::uint64_t>(come.sent, counts.highest(i));
    if (counts.taken(i) != come.taken) come.reports = 0;
    come.taken = counts.taken(i);
    if (come.taken < come.sent && ++come.reports >= kReportsMax) lost = Lost{from, come.sent - come.taken};
  }
  return lost;
}

}  // namespace pif::tool
