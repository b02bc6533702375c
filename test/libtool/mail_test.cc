#include "../../libtool/src/messages/letter_order.h"

#include <algorithm>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace pif::tool {
namespace {

using Order = LetterOrder<std::uint64_t>;

std::vector<std::uint64_t> all_of(Order& order) {
  std::vector<std::uint64_t> letters;
  while (const auto letter = order.take()) letters.push_back(*letter);
  return letters;
}

TEST_CASE("mail: letters that are overtaken or repeated come once each, in their order") {
  std::mt19937 random(7);
  std::vector<std::uint64_t> letters;
  for (std::uint64_t number = 1; number <= 2000; ++number) letters.insert(letters.end(), 1 + random() % 3, number);
  for (std::size_t begin = 0; begin + 40 < letters.size(); begin += 40) {
    std::shuffle(letters.begin() + static_cast<std::ptrdiff_t>(begin),
                 letters.begin() + static_cast<std::ptrdiff_t>(begin + 40), random);
  }
  Order order;
  std::uint64_t next = 1;
  for (const std::uint64_t number : letters) {
    order.add(number, number);
    for (const std::uint64_t came : all_of(order)) CHECK(came == next++);
  }
  CHECK(next == 2001);
}

TEST_CASE("mail: a letter that is lost holds up what comes after it, and that has an end") {
  Order order;
  order.add(1, 1);
  CHECK(all_of(order) == std::vector<std::uint64_t>{1});
  for (std::uint64_t number = 3; number < 2 * Order::kWaitingMax; ++number) order.add(number, number);
  CHECK(all_of(order).empty());
  order.add(2, 2);
  CHECK(all_of(order).size() == 1 + Order::kWaitingMax);  // those beyond are lost, too
  order.add(2 * Order::kWaitingMax, 0);
  CHECK(all_of(order).empty());
}

TEST_CASE("mail: it is known how many letters were taken, and the highest that has come") {
  Order order;
  CHECK((order.taken() == 0 && order.highest() == 0));
  order.add(1, 1);
  CHECK((order.taken() == 0 && order.highest() == 1));
  CHECK(all_of(order).size() == 1);
  CHECK((order.taken() == 1 && order.highest() == 1));
  for (const std::uint64_t number : {5, 3, 5, 1}) order.add(number, number);  // 2 and 4 are missing
  CHECK(all_of(order).empty());
  CHECK((order.taken() == 1 && order.highest() == 5));
  order.add(2, 2);
  CHECK(all_of(order).size() == 2);
  CHECK((order.taken() == 3 && order.highest() == 5));
  order.add(4, 4);
  CHECK(all_of(order).size() == 2);
  CHECK((order.taken() == 5 && order.highest() == 5));
}

}  // namespace
}  // namespace pif::tool
