#include "append/sequencer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "store/published_tickets.h"

namespace pif::lfs {
namespace {

constexpr std::size_t kGrantsMax = 4096;  // under way, per file
constexpr std::size_t kRangesRemembered = 64;
constexpr std::uint64_t kAppendBytesMax = std::uint64_t{1} << 48;

}  // namespace

Sequencer::Sequencer(const Format& format, const FileLength& published, std::uint64_t generation, Duration patience)
    : format_(format), patience_(patience), published_(published), base_(published), generation_(generation) {}

Result<FileLength> Sequencer::end_of(const FileLength& start, std::uint64_t records, std::uint64_t bytes,
                                     bool fill) const {
  if (bytes > kAppendBytesMax || records > kAppendBytesMax)
    return fail(Code::kTooLarge, fmt::format("an append of {} records, {} bytes", records, bytes));
  // Reservations cost nothing, and a seal may say any length of variable records: the sum must fit all the same.
  if (start.records > INT64_MAX - records || start.bytes > INT64_MAX - bytes)
    return fail(Code::kTooLarge, fmt::format("an append of {} records, {} bytes to a file of {} records, {} bytes",
                                             records, bytes, start.records, start.bytes));
  if (!format_.is_fixed()) {
    if (fill) return fail(Code::kInvalid, "bytes can be appended to files of fixed-length records only");
    if (records == 0) return fail(Code::kInvalid, "an append of no records");
    return FileLength{start.records + records, start.bytes + bytes};
  }
  if (!is_fixed_file_length(format_.record_length, start))
    return fail(Code::kCorrupt, fmt::format("a file of {} records of {} bytes cannot have {} bytes", start.records,
                                            format_.record_length, start.bytes));
  const std::uint64_t length = format_.record_length;
  if (bytes == 0) return fail(Code::kInvalid, "an append of no bytes");
  if (fill) return fixed_file_length(format_.record_length, start.bytes + bytes);
  if (start.bytes != start.records * length)
    return fail(Code::kInvalid, fmt::format("the last record has {} of {} bytes: append bytes, not records",
                                            start.bytes - (start.records - 1) * length, length));
  if (bytes > records * length || records == 0 || bytes <= (records - 1) * length)
    return fail(Code::kInvalid, fmt::format("{} bytes are not {} records of {} bytes", bytes, records, length));
  return FileLength{start.records + records, start.bytes + bytes};
}

Result<Sequencer::Grant> Sequencer::reserve(std::uint64_t records, std::uint64_t bytes, bool fill, Time now,
                                            std::uint64_t owner) {
  if (grants_.size() >= kGrantsMax)
    return fail(Code::kRetry, fmt::format("{} appends to this file are under way", kGrantsMax));
  const bool is_last = (generation_ + 1) % (std::uint64_t{1} << kIncarnationShift) == 0;
  if (is_last || !check_generation(generation_))  // the next one would be another incarnation's
    return fail(Code::kBusy,
                "so many appends to this file were cancelled that it takes no more until the LFS is started again");
  const FileLength start = grants_.empty() ? published_ : grants_.back().grant.end;
  PIF_ASSERT(grants_.empty() || grants_.back().grant.ticket < next_ticket_, next_ticket_);
  PIF_ASSERT(grants_.empty() || grants_.back().grant.generation == generation_ || grants_.back().done, generation_);
  PIF_TRY_VALUE(const FileLength end, end_of(start, records, bytes, fill));
  // Deadlines rise with positions even if the clock should not.
  const Time deadline = grants_.empty() ? now + patience_ : std::max(now + patience_, grants_.back().grant.deadline);
  PIF_ASSERT(end.records >= start.records && end.bytes >= start.bytes, end.records, start.records);
  const Grant grant{next_ticket_++, generation_, start, end, base_, deadline, owner};
  grants_.push_back({grant});
  return grant;
}

std::deque<Sequencer::Pending>::iterator Sequencer::find(std::uint64_t ticket) {
  const auto at = std::lower_bound(grants_.begin(), grants_.end(), ticket,
                                   [](const Pending& p, std::uint64_t t) { return p.grant.ticket < t; });
  return at != grants_.end() && at->grant.ticket == ticket ? at : grants_.end();
}

Result<Sequencer::Outcome> Sequencer::done(std::uint64_t ticket) {
  if (const auto at = find(ticket); at != grants_.end()) {
    at->done = true;
    return Outcome::kWait;
  }
  for (const Range& range : published_tickets_)
    if (ticket >= range.first && ticket <= range.last) return Outcome::kPublished;
  return fail(Code::kRetry, "the reserved range was cancelled: its deadline, or that of a range before it, passed");
}

void Sequencer::give_up(std::uint64_t ticket) {
  if (const auto at = find(ticket); at != grants_.end()) at->given_up = true;
}

void Sequencer::give_up_owner(std::uint64_t owner) {
  for (Pending& pending : grants_)
    if (pending.grant.owner == owner) pending.given_up = true;
}

std::optional<Sequencer::Publication> Sequencer::to_publish() const {
  std::optional<Publication> out;
  for (const auto& pending : grants_) {
    if (!pending.done) break;
    out = {pending.grant.end, pending.grant.ticket, pending.grant.generation};
  }
  return out;
}

std::vector<std::uint64_t> Sequencer::publish(const Publication& publication) {
  std::vector<std::uint64_t> out;
  while (!grants_.empty() && grants_.front().grant.ticket <= publication.ticket) {
    PIF_ASSERT(grants_.front().done, grants_.front().grant.ticket, publication.ticket);
    const auto [ticket, generation] = std::pair(grants_.front().grant.ticket, grants_.front().grant.generation);
    out.push_back(ticket);
    grants_.pop_front();
    if (published_tickets_.empty() || published_tickets_.back().last + 1 != ticket ||
        published_tickets_.back().generation != generation)
      published_tickets_.push_back({generation, ticket, ticket});
    published_tickets_.back().last = ticket;
  }
  PIF_ASSERT(publication.file_length.records >= published_.records, publication.file_length.records,
             published_.records);
  PIF_ASSERT(publication.file_length.bytes >= published_.bytes, publication.file_length.bytes, published_.bytes);
  published_ = publication.file_length;
  while (published_tickets_.size() > kRangesRemembered) published_tickets_.pop_front();
  return out;
}

void Sequencer::raise_generation(const FileLength& base) {
  ++generation_;
  base_ = base;
}

std::vector<std::uint64_t> Sequencer::expire(Time now) {
  auto first = std::find_if(grants_.begin(), grants_.end(), [](const Pending& p) { return !p.done; });
  if (first == grants_.end() || (!first->given_up && first->grant.deadline > now)) return {};
  std::vector<std::uint64_t> cancelled;
  const FileLength base = first->grant.start;
  PIF_ASSERT(base.records >= published_.records && base.bytes >= published_.bytes, base.records, published_.records);
  for (auto at = first; at != grants_.end(); ++at) cancelled.push_back(at->grant.ticket);
  grants_.erase(first, grants_.end());
  PIF_ASSERT(!cancelled.empty());
  raise_generation(base);
  return cancelled;
}

bool Sequencer::knows(std::uint64_t ticket, std::uint64_t generation) const {
  const auto at = std::lower_bound(grants_.begin(), grants_.end(), ticket,
                                   [](const Pending& p, std::uint64_t t) { return p.grant.ticket < t; });
  if (at != grants_.end() && at->grant.ticket == ticket) return at->grant.generation == generation;
  return std::any_of(published_tickets_.begin(), published_tickets_.end(), [&](const Range& range) {
    return generation == range.generation && ticket >= range.first && ticket <= range.last;
  });
}

std::vector<std::uint64_t> Sequencer::cancel_all() {
  std::vector<std::uint64_t> cancelled;
  for (const Pending& pending : grants_) cancelled.push_back(pending.grant.ticket);
  grants_.clear();
  raise_generation(published_);
  return cancelled;
}

void Sequencer::begin(const FileLength& published, std::uint64_t generation) {
  PIF_ASSERT(grants_.empty() && generation >= generation_, grants_.size(), generation, generation_);
  PIF_ASSERT(published.records >= published_.records && published.bytes >= published_.bytes, published.records,
             published_.records);
  published_ = base_ = published;
  generation_ = generation;
}

Time Sequencer::next_deadline() const {
  const auto first = std::find_if(grants_.begin(), grants_.end(), [](const Pending& p) { return !p.done; });
  return first == grants_.end() ? kNever : first->grant.deadline;
}

}  // namespace pif::lfs
