#include <catch2/catch.hpp>

#include "../../lfs/src/context/request_dedup.h"

using namespace pif;
using lfs::RequestDedup;
using lfs::RequestKey;
using Known = RequestDedup::Known;
using std::chrono::seconds;

namespace {

Time at(int s) { return Time{} + seconds(s); }

}  // namespace

TEST_CASE("a request that was carried out is known, of its session only") {
  RequestDedup dedup;
  CHECK(dedup.look({7, 1}) == Known::kNew);
  dedup.add({7, 1}, at(0));
  dedup.add({7, 1}, at(0));
  CHECK(dedup.look({7, 1}) == Known::kDone);
  CHECK(dedup.look({8, 1}) == Known::kNew);
  CHECK(dedup.look({7, 2}) == Known::kNew);
}

TEST_CASE("of a request without a session nothing is remembered") {
  RequestDedup dedup;
  dedup.add({0, 1}, at(0));
  CHECK(dedup.look({0, 1}) == Known::kNew);
}

TEST_CASE("after a minute nobody knows whether a request was done, nor of those before it; later ones are new") {
  RequestDedup dedup;
  dedup.add({7, 10}, at(0));
  dedup.add({7, 12}, at(50));
  dedup.add({8, 3}, at(61));
  CHECK(dedup.look({7, 10}) == Known::kForgotten);
  CHECK(dedup.look({7, 9}) == Known::kForgotten);
  CHECK(dedup.look({7, 11}) == Known::kNew);
  CHECK(dedup.look({7, 12}) == Known::kDone);
  CHECK(dedup.look({8, 1}) == Known::kNew);
  dedup.expire(at(120));
  CHECK(dedup.look({7, 12}) == Known::kForgotten);
  CHECK(dedup.look({7, 13}) == Known::kNew);
  CHECK(dedup.look({8, 3}) == Known::kDone);
}

TEST_CASE("of so many requests only the newest are known, and those before them are not done again") {
  RequestDedup dedup;
  constexpr std::uint64_t kMax = RequestDedup::kRequestsMax;
  for (std::uint64_t request = 1; request <= kMax + 5; ++request) dedup.add({7, request}, at(1));
  CHECK(dedup.look({7, 5}) == Known::kForgotten);
  CHECK(dedup.look({7, 6}) == Known::kDone);
  CHECK(dedup.look({7, kMax + 5}) == Known::kDone);
  CHECK(dedup.look({7, kMax + 6}) == Known::kNew);
  CHECK(dedup.snapshot().done.size() == kMax);
  CHECK(dedup.snapshot().forgotten == std::vector<RequestKey>{{7, 5}});
}

TEST_CASE("processes that share a session and count from elsewhere know nothing of one another's requests") {
  RequestDedup dedup;
  constexpr std::uint64_t kOther = std::uint64_t{5} << RequestDedup::kSenderShift;
  dedup.add({7, kOther + 9}, at(0));
  dedup.expire(at(100));
  CHECK(dedup.look({7, kOther + 2}) == Known::kForgotten);
  CHECK(dedup.look({7, 2}) == Known::kNew);
  CHECK(dedup.look({7, 2 * kOther}) == Known::kNew);
}

TEST_CASE("what is written into the log comes back from it, and lasts from then") {
  RequestDedup dedup;
  dedup.add({7, 1}, at(0));
  dedup.add({7, 2}, at(59));
  dedup.add({9, 4}, at(61));
  RequestDedup later;
  later.load(dedup.snapshot(), at(1000));
  CHECK(later.look({7, 1}) == Known::kForgotten);
  CHECK(later.look({7, 2}) == Known::kDone);
  CHECK(later.look({9, 4}) == Known::kDone);
  later.expire(at(1060));
  CHECK(later.look({9, 4}) == Known::kDone);
  later.expire(at(1061));
  CHECK(later.look({9, 4}) == Known::kForgotten);
}

TEST_CASE("of very many senders those are given up of which nothing was forgotten for the longest time") {
  RequestDedup dedup;
  for (std::uint64_t sender = 1; sender <= RequestDedup::kSendersMax + 1; ++sender) {
    dedup.add({sender, 5}, at(static_cast<int>(sender)));
    dedup.expire(at(static_cast<int>(sender) + 61));
  }
  CHECK(dedup.look({1, 5}) == Known::kNew);
  CHECK(dedup.look({RequestDedup::kSendersMax, 5}) == Known::kForgotten);
  CHECK(dedup.look({RequestDedup::kSendersMax + 1, 5}) == Known::kForgotten);
}
