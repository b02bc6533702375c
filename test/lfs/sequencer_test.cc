#include <map>
#include <random>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../lfs/src/append/sequencer.h"

using namespace pif;
using lfs::Sequencer;

namespace {

constexpr Duration kPatience = std::chrono::seconds(5);
const Time kStart = Time(std::chrono::seconds(100));

Sequencer fixed(const FileLength& published = {}) { return {Format::fixed(10), published, 1, kPatience}; }

template <typename T>
Code code_of(const Result<T>& result) {
  return result ? Code::kOk : result.error().code;
}

}  // namespace

TEST_CASE("grants follow one another, and only the done prefix is published") {
  auto s = fixed({5, 50});
  const auto a = s.reserve(3, 30, false, kStart).value();
  const auto b = s.reserve(2, 20, false, kStart).value();
  CHECK(a.start == FileLength{5, 50});
  CHECK(b.start == FileLength{8, 80});
  CHECK(b.base == FileLength{5, 50});
  REQUIRE(s.done(b.ticket).value() == Sequencer::Outcome::kWait);
  CHECK_FALSE(s.to_publish().has_value());
  REQUIRE(s.done(a.ticket).value() == Sequencer::Outcome::kWait);
  const auto publication = s.to_publish().value();
  CHECK(publication.file_length == FileLength{10, 100});
  CHECK(s.publish(publication) == std::vector{a.ticket, b.ticket});
  CHECK(s.done(a.ticket).value() == Sequencer::Outcome::kPublished);
  CHECK(s.idle());
}

TEST_CASE("a grant is known by ticket and generation, until it is cancelled") {
  auto s = fixed();
  const auto a = s.reserve(1, 10, false, kStart).value();
  const auto b = s.reserve(1, 10, false, kStart).value();
  CHECK(s.knows(a.ticket, 1));
  CHECK_FALSE(s.knows(a.ticket, 2));
  CHECK_FALSE(s.knows(b.ticket + 1, 1));
  REQUIRE(s.done(a.ticket).has_value());
  (void)s.publish(s.to_publish().value());
  CHECK(s.knows(a.ticket, 1));
  CHECK_FALSE(s.knows(a.ticket, 2));
  CHECK(s.expire(kStart + kPatience) == std::vector{b.ticket});
  CHECK_FALSE(s.knows(b.ticket, 1));
  const auto c = s.reserve(1, 10, false, kStart).value();
  REQUIRE(s.done(c.ticket).has_value());
  (void)s.publish(s.to_publish().value());
  CHECK(s.knows(c.ticket, 2));
  CHECK_FALSE(s.knows(c.ticket, 1));
}

TEST_CASE("all grants are cancelled, done or not, and what follows is of a higher generation") {
  auto s = fixed({5, 50});
  const auto a = s.reserve(1, 10, false, kStart).value();
  const auto b = s.reserve(2, 20, false, kStart).value();
  REQUIRE(s.done(a.ticket).has_value());
  CHECK(s.cancel_all() == std::vector{a.ticket, b.ticket});
  CHECK(s.idle());
  CHECK_FALSE(s.to_publish().has_value());
  CHECK(s.generation() == 2);
  s.begin({7, 70}, 9);
  const auto c = s.reserve(1, 10, false, kStart).value();
  CHECK(c.generation == 9);
  CHECK(c.start == FileLength{7, 70});
  CHECK(c.base == FileLength{7, 70});
  CHECK(c.ticket > b.ticket);
}

TEST_CASE("a lapsed grant takes all later ones with it and raises the generation; the done prefix stays") {
  auto s = fixed();
  const auto a = s.reserve(1, 10, false, kStart).value();
  const auto b = s.reserve(1, 10, false, kStart).value();
  const auto c = s.reserve(1, 10, false, kStart).value();
  REQUIRE(s.done(a.ticket).has_value());
  REQUIRE(s.done(c.ticket).has_value());
  CHECK(s.expire(kStart + kPatience - std::chrono::nanoseconds(1)).empty());
  CHECK(s.next_deadline() == kStart + kPatience);
  CHECK(s.expire(kStart + kPatience) == std::vector{b.ticket, c.ticket});
  CHECK(s.generation() == 2);
  CHECK(code_of(s.done(b.ticket)) == Code::kRetry);
  CHECK(code_of(s.done(c.ticket)) == Code::kRetry);
  const auto d = s.reserve(1, 10, false, kStart).value();
  CHECK(d.generation == 2);
  CHECK(d.start == FileLength{1, 10});
  CHECK(d.base == FileLength{1, 10});
  CHECK(s.to_publish()->file_length == FileLength{1, 10});
}

TEST_CASE("a grant that is given up lapses at once, but not before what is under way below it") {
  auto s = fixed();
  const auto a = s.reserve(1, 10, false, kStart, 1).value();
  const auto b = s.reserve(1, 10, false, kStart, 2).value();
  const auto c = s.reserve(1, 10, false, kStart, 1).value();
  const auto d = s.reserve(1, 10, false, kStart, 2).value();
  s.give_up(b.ticket);
  CHECK(s.expire(kStart).empty());
  REQUIRE(s.done(a.ticket).has_value());
  CHECK(s.expire(kStart) == std::vector{b.ticket, c.ticket, d.ticket});
  CHECK(s.reserve(1, 10, false, kStart, 1)->start == FileLength{1, 10});
  s.give_up(a.ticket);  // done, and not yet published
  s.give_up(c.ticket);  // not known any more
  CHECK(s.expire(kStart).empty());
  CHECK(s.to_publish()->file_length == FileLength{1, 10});
  s.give_up_owner(2);
  CHECK(s.expire(kStart).empty());
  s.give_up_owner(1);
  CHECK(s.expire(kStart).size() == 1);
  CHECK(s.published() == FileLength{});
  CHECK(s.publish(*s.to_publish()) == std::vector{a.ticket});
  CHECK(s.idle());
}

TEST_CASE("fixed records may end in a short one, which only a fill goes on from") {
  auto s = fixed();
  const auto a = s.reserve(2, 13, false, kStart).value();
  CHECK(a.end == FileLength{2, 13});
  CHECK(code_of(s.reserve(1, 10, false, kStart)) == Code::kInvalid);
  const auto b = s.reserve(0, 9, true, kStart).value();
  CHECK(b.start == FileLength{2, 13});
  CHECK(b.end == FileLength{3, 22});
  CHECK(code_of(s.reserve(2, 31, true, kStart)) == Code::kOk);
  for (const auto& [records, bytes] : {std::pair{2, 10}, std::pair{1, 11}, std::pair{0, 0}, std::pair{0, 5}})
    CHECK(code_of(fixed().reserve(static_cast<std::uint64_t>(records), static_cast<std::uint64_t>(bytes), false,
                                  kStart)) == Code::kInvalid);
  CHECK(code_of(fixed().reserve(UINT64_MAX, UINT64_MAX, false, kStart)) == Code::kTooLarge);
  Sequencer variable(Format::variable(), {}, 1, kPatience);
  CHECK(variable.reserve(3, 0, false, kStart)->end == FileLength{3, 0});
  CHECK(code_of(variable.reserve(0, 5, false, kStart)) == Code::kInvalid);
  CHECK(code_of(variable.reserve(1, 5, true, kStart)) == Code::kInvalid);
}

// Nobody has written so much: reservations are free, and a seal of variable records may say any number of bytes.
TEST_CASE("a file that would get longer than 64 bits can say takes no more") {
  Sequencer variable(Format::variable(), {3, UINT64_MAX}, 1, kPatience);
  CHECK(code_of(variable.reserve(1, 5, false, kStart)) == Code::kTooLarge);
  Sequencer many(Format::variable(), {UINT64_MAX, 3}, 1, kPatience);
  CHECK(code_of(many.reserve(1, 5, false, kStart)) == Code::kTooLarge);
  auto full = fixed(fixed_file_length(10, INT64_MAX - 7));
  CHECK(code_of(full.reserve(0, 10, true, kStart)) == Code::kTooLarge);
  CHECK(code_of(full.reserve(0, 5, true, kStart)) == Code::kOk);
}

TEST_CASE("a published length that the records cannot have is not gone on from") {
  auto s = fixed({100, 10});
  CHECK(code_of(s.reserve(0, 5, true, kStart)) == Code::kCorrupt);
  CHECK(code_of(s.reserve(1, 10, false, kStart)) == Code::kCorrupt);
}

TEST_CASE("generations stay within an incarnation: when they are used up, no more is granted") {
  constexpr std::uint64_t kLast =
      (std::uint64_t{7} << Sequencer::kIncarnationShift) + (1u << Sequencer::kIncarnationShift) - 2;
  Sequencer s(Format::fixed(10), {}, kLast - 1, kPatience);
  const auto a = s.reserve(1, 10, false, kStart).value();
  s.give_up(a.ticket);
  REQUIRE(s.expire(kStart).size() == 1);
  CHECK(s.reserve(1, 10, false, kStart)->generation == kLast);
  s.give_up_owner(0);
  REQUIRE(s.expire(kStart).size() == 1);
  CHECK(code_of(s.reserve(1, 10, false, kStart)) == Code::kBusy);
}

TEST_CASE("under any order of requests and lapses: no gaps, nothing twice, nothing acknowledged is lost") {
  REQUIRE(rc::check([] {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    const auto pick = [&](std::uint64_t limit) { return random() % limit; };
    auto s = fixed();
    Time now = kStart;
    FileLength published;
    std::uint64_t last_ticket = 0;
    std::map<std::uint64_t, Sequencer::Grant> live;
    std::map<std::uint64_t, Sequencer::Grant> acknowledged;
    std::vector<std::uint64_t> cancelled;
    for (int i = 0; i < 300; ++i) {
      switch (pick(8)) {
        case 0:
        case 1: {
          const auto records = pick(5) + 1;
          const auto grant = s.reserve(records, records * 10, false, now);
          RC_ASSERT(grant.has_value());
          RC_ASSERT(grant->start == (live.empty() ? published : live.rbegin()->second.end));
          RC_ASSERT(grant->ticket > last_ticket);
          RC_ASSERT(grant->base.records <= grant->start.records);
          last_ticket = grant->ticket;
          live[grant->ticket] = *grant;
          break;
        }
        case 2:
        case 3: {
          if (live.empty()) break;
          auto at = live.begin();
          std::advance(at, static_cast<std::ptrdiff_t>(pick(live.size())));
          RC_ASSERT(s.done(at->first).value() == Sequencer::Outcome::kWait);
          break;
        }
        case 4: {
          const auto publication = s.to_publish();
          if (!publication) break;
          for (const auto ticket : s.publish(*publication)) {
            RC_ASSERT(live.at(ticket).start == published);  // no gap, nothing twice
            published = live.at(ticket).end;
            acknowledged[ticket] = live.at(ticket);
            live.erase(ticket);
          }
          RC_ASSERT(published == publication->file_length);
          break;
        }
        case 5:
          now += std::chrono::milliseconds(pick(3000));
          for (const auto ticket : s.expire(now)) {
            RC_ASSERT(live.erase(ticket) == 1u);
            cancelled.push_back(ticket);
          }
          break;
        case 6:
          if (!live.empty()) s.give_up(live.begin()->first + pick(live.rbegin()->first - live.begin()->first + 1));
          break;
        default: {  // the LFS starts again: what is not published is forgotten
          if (pick(10) != 0) break;
          for (const auto& [ticket, grant] : live) cancelled.push_back(ticket);
          live.clear();
          s = Sequencer(Format::fixed(10), published, s.generation() + 1, kPatience);
          last_ticket = 0;
          acknowledged.clear();  // tickets are the sequencer's own
          cancelled.clear();
          break;
        }
      }
      RC_ASSERT(s.published() == published);
      if (!cancelled.empty()) RC_ASSERT(code_of(s.done(cancelled[pick(cancelled.size())])) == Code::kRetry);
      if (!acknowledged.empty())
        RC_ASSERT(s.done(acknowledged.rbegin()->first).value() == Sequencer::Outcome::kPublished);
    }
  }));
}
