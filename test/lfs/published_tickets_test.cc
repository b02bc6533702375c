// What is remembered of published ranges.
#include "../../lfs/src/store/published_tickets.h"

#include <catch2/catch.hpp>

namespace pif::lfs::test {
namespace {

TEST_CASE("of each generation the tickets up to the last one were published") {
  proto::PublishedTickets tickets;
  add_ticket(tickets, 7, 3);
  add_ticket(tickets, 5, 9);
  add_ticket(tickets, 7, 2);
  add_ticket(tickets, 8, 0);  // names nothing
  CHECK(was_published(tickets, 7, 3) == WasPublished::kYes);
  CHECK(was_published(tickets, 7, 4) == WasPublished::kNo);
  CHECK(was_published(tickets, 5, 1) == WasPublished::kYes);
  CHECK(was_published(tickets, 6, 1) == WasPublished::kNo);
  CHECK(was_published(tickets, 1, 1) == WasPublished::kNo);  // nothing is forgotten yet
  CHECK(was_published(tickets, 8, 0) == WasPublished::kNo);
  CHECK(check_tickets(tickets));
}

TEST_CASE("sixteen generations are remembered, and of older ones nothing is said") {
  proto::PublishedTickets tickets;
  for (std::uint64_t generation = 20; generation > 0; --generation) add_ticket(tickets, 10 * generation, generation);
  CHECK(tickets.generations_size() == 16);
  CHECK(was_published(tickets, 50, 5) == WasPublished::kYes);
  CHECK(was_published(tickets, 51, 1) == WasPublished::kNo);
  CHECK(was_published(tickets, 40, 4) == WasPublished::kUnknown);
  proto::PublishedTickets newer;
  for (std::uint64_t generation = 210; generation < 214; ++generation) add_ticket(newer, generation, 1);
  CHECK(has_more(newer, tickets));
  add_tickets(tickets, newer);
  CHECK_FALSE(has_more(newer, tickets));
  CHECK(was_published(tickets, 80, 8) == WasPublished::kUnknown);
  CHECK(was_published(tickets, 90, 9) == WasPublished::kYes);
}

TEST_CASE("a list that a peer made up is refused") {
  const auto code = [](const std::vector<std::uint64_t>& generations, const std::vector<std::uint64_t>& last) {
    proto::PublishedTickets tickets;
    for (const auto one : generations) tickets.add_generations(one);
    for (const auto one : last) tickets.add_tickets(one);
    const Status ok = check_tickets(tickets);
    return ok ? Code::kOk : ok.error().code;
  };
  CHECK(code({}, {}) == Code::kOk);
  CHECK(code({1, 2}, {1, 1}) == Code::kOk);
  CHECK(code({1, 2}, {1}) == Code::kInvalid);
  CHECK(code({2, 1}, {1, 1}) == Code::kInvalid);
  CHECK(code({2, 2}, {1, 1}) == Code::kInvalid);
  CHECK(code({1}, {0}) == Code::kInvalid);
  const std::vector<std::uint64_t> many{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  CHECK(code(many, std::vector<std::uint64_t>(17, 1)) == Code::kInvalid);
}

}  // namespace
}  // namespace pif::lfs::test
