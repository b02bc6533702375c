#include "../../libtool/src/controller/letter_ledger.h"

#include <catch2/catch.hpp>

namespace pif::tool {
namespace {

// What worker 0 says, of worker 1 and itself.
job::LetterCounts sent_to_1(std::uint64_t sent) {
  job::LetterCounts counts;
  counts.add_sent(0);
  counts.add_sent(sent);
  return counts;
}
// What worker 1 says.
job::LetterCounts taken_of_0(std::uint64_t taken, std::uint64_t highest) {
  job::LetterCounts counts;
  counts.add_taken(taken);
  counts.add_highest(highest);
  return counts;
}

// So often worker 1 says it, and nothing is found to be lost.
void report_missing(LetterLedger& ledger, unsigned times, std::uint64_t taken, std::uint64_t highest) {
  for (unsigned i = 0; i < times; ++i) REQUIRE(!ledger.take_wait(1, taken_of_0(taken, highest)));
}

constexpr unsigned kMany = 100;
constexpr unsigned kAllButOne = LetterLedger::kReportsMax - 1;

TEST_CASE("a letter that was sent is lost when its receiver has said often enough that it lacks it") {
  for (const bool has_ended : {false, true}) {
    LetterLedger ledger(2);
    if (has_ended)
      ledger.take_sent(0, sent_to_1(7));
    else
      REQUIRE(!ledger.take_wait(0, sent_to_1(7)));
    report_missing(ledger, kAllButOne, 4, 4);
    const auto lost = ledger.take_wait(1, taken_of_0(4, 4));
    REQUIRE(lost);
    CHECK((lost->from == 0 && lost->count == 3));
  }
}

TEST_CASE("a letter is lost when later ones have come, though its sender says nothing") {
  LetterLedger ledger(2);
  report_missing(ledger, kAllButOne, 4, 6);
  const auto lost = ledger.take_wait(1, taken_of_0(4, 6));
  REQUIRE(lost);
  CHECK((lost->from == 0 && lost->count == 2));
}

TEST_CASE("who lacks nothing may wait for ever, and what it says before a letter is sent does not count") {
  LetterLedger ledger(2);
  report_missing(ledger, kMany, 4, 4);
  REQUIRE(!ledger.take_wait(0, sent_to_1(4)));
  report_missing(ledger, kMany, 4, 4);
  REQUIRE(!ledger.take_wait(0, sent_to_1(5)));
  report_missing(ledger, kAllButOne, 4, 4);
  CHECK(ledger.take_wait(1, taken_of_0(4, 4)));
}

TEST_CASE("letters that come late, one after another, are not lost") {
  LetterLedger ledger(2);
  REQUIRE(!ledger.take_wait(0, sent_to_1(kMany)));
  for (std::uint64_t taken = 0; taken < kMany; ++taken) report_missing(ledger, kAllButOne, taken, taken);
  report_missing(ledger, kMany, kMany, kMany);
}

TEST_CASE("counts of more workers than there are do not fit") {
  LetterLedger ledger(2);
  CHECK(ledger.fits({}));
  CHECK(ledger.fits(sent_to_1(1)));
  CHECK(ledger.fits(taken_of_0(1, 1)));
  job::LetterCounts counts = sent_to_1(1);
  counts.add_sent(0);
  CHECK(!ledger.fits(counts));
  counts = taken_of_0(1, 1);
  counts.add_taken(0);
  CHECK(!ledger.fits(counts));  // of one more taken than highest
}

}  // namespace
}  // namespace pif::tool
