#include "store/published_tickets.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr int kGenerationsMax = 16;

}  // namespace

void add_ticket(proto::PublishedTickets& tickets, std::uint64_t generation, std::uint64_t ticket) {
  PIF_ASSERT(tickets.generations_size() == tickets.tickets_size(), tickets.generations_size(), tickets.tickets_size());
  if (ticket == 0) return;
  auto& generations = *tickets.mutable_generations();
  auto& last = *tickets.mutable_tickets();
  const auto at = std::lower_bound(generations.begin(), generations.end(), generation);
  const auto index = static_cast<int>(at - generations.begin());
  if (at != generations.end() && *at == generation) {
    last.Set(index, std::max(last.Get(index), ticket));
    return;
  }
  generations.Add(generation);
  last.Add(ticket);
  std::rotate(generations.begin() + index, generations.end() - 1, generations.end());
  std::rotate(last.begin() + index, last.end() - 1, last.end());
  if (generations.size() <= kGenerationsMax) return;
  generations.erase(generations.begin());
  last.erase(last.begin());
  PIF_ASSERT(generations.size() == kGenerationsMax && last.size() == kGenerationsMax, generations.size());
}

void add_tickets(proto::PublishedTickets& tickets, const proto::PublishedTickets& others) {
  for (int i = 0; i < others.generations_size(); ++i) add_ticket(tickets, others.generations(i), others.tickets(i));
}

bool has_more(const proto::PublishedTickets& others, const proto::PublishedTickets& tickets) {
  proto::PublishedTickets all = tickets;
  add_tickets(all, others);
  return !std::equal(all.generations().begin(), all.generations().end(), tickets.generations().begin(),
                     tickets.generations().end()) ||
         !std::equal(all.tickets().begin(), all.tickets().end(), tickets.tickets().begin(), tickets.tickets().end());
}

WasPublished was_published(const proto::PublishedTickets& tickets, std::uint64_t generation, std::uint64_t ticket) {
  PIF_ASSERT(tickets.generations_size() == tickets.tickets_size(), tickets.generations_size(), tickets.tickets_size());
  const auto& generations = tickets.generations();
  if (ticket == 0) return WasPublished::kNo;
  const auto at = std::lower_bound(generations.begin(), generations.end(), generation);
  if (at != generations.end() && *at == generation) {
    const std::uint64_t last = tickets.tickets(static_cast<int>(at - generations.begin()));
    return ticket <= last ? WasPublished::kYes : WasPublished::kNo;
  }
  const bool may_be_forgotten = at == generations.begin() && generations.size() == kGenerationsMax;
  return may_be_forgotten ? WasPublished::kUnknown : WasPublished::kNo;
}

Status check_generation(std::uint64_t generation) {
  if (generation < kGenerationEnd) return {};
  return fail(Code::kInvalid, fmt::format("a generation of {}, which no sequencer gives out", generation));
}

std::uint64_t newest_generation(const proto::ComponentState& state) {
  return std::max({state.grants(), state.noted_generation(), state.generation(), state.parity_generation()});
}

Status check_tickets(const proto::PublishedTickets& tickets) {
  const auto& generations = tickets.generations();
  const bool is_right = generations.size() == tickets.tickets_size() && generations.size() <= kGenerationsMax &&
                        std::is_sorted(generations.begin(), generations.end(), std::less_equal<>()) &&
                        std::count(tickets.tickets().begin(), tickets.tickets().end(), 0u) == 0;
  if (is_right) return generations.empty() ? Status() : check_generation(*generations.rbegin());
  return fail(Code::kInvalid, "a list of published tickets bears each of at most 16 generations once, in order");
}

}  // namespace pif::lfs
