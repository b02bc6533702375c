#include "../../lfs/src/rebuild/rate_limit.h"

#include <catch2/catch.hpp>

using namespace pif;
using namespace pif::lfs;
using namespace std::chrono_literals;

namespace {

const Time kBegin = Time{} + 100s;

}  // namespace

TEST_CASE("who has spent more than there was waits until that is made up for") {
  RateLimit rate;
  rate.set(1000, kBegin);
  CHECK(rate.is_free(kBegin));
  rate.spend(2000, kBegin);
  CHECK(!rate.is_free(kBegin + 1999ms));
  CHECK(rate.next() == kBegin + 2s);
  CHECK(rate.is_free(kBegin + 2s));
  rate.set(0, kBegin);
  rate.spend(2000, kBegin);
  CHECK(rate.is_free(kBegin));
}

TEST_CASE("a rate has a deadline as long as somebody waits for it") {
  RateLimit rate;
  rate.set(1000, kBegin);
  rate.begin_turn();
  CHECK(rate.next_deadline() == kNever);
  rate.spend(1000, kBegin);
  CHECK(rate.next_deadline() == kNever);  // who spent it is busy with that
  CHECK(!rate.is_free(kBegin + 10ms));
  CHECK(rate.next_deadline() == kBegin + 1s);
  rate.begin_turn();
  CHECK(rate.is_free(kBegin + 1s));
  CHECK(rate.next_deadline() == kNever);
}
