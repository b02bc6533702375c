// What may be sent, and how heads of messages travel.
#include "pif/tool/credit.h"

#include <random>

#include <catch2/catch.hpp>

#include "pif/tool/head.h"

namespace pif::tool {
namespace {

using Unit = Credit::Unit;

struct Plain {
  std::uint64_t number = 0;
  std::uint8_t small = 0;
  bool flag = false;
  std::string text;
  static auto members(auto& self) { return std::tie(self.number, self.small, self.flag, self.text); }
};
struct Nothing {
  static auto members(auto&) { return std::tie(); }
};
using OneOf = std::variant<Nothing, Plain>;

}  // namespace

TEST_CASE("of messages and bytes, a window may be under way, and a longer message when less than a quarter is") {
  constexpr std::uint64_t kEach = Credit::kMessageBytes;
  Credit bytes(Unit::kBytes, 100'000);
  CHECK(bytes.allows(500'000));
  bytes.use(500'000);
  CHECK(!bytes.allows(0));
  CHECK(bytes.settle(500'000 + kEach));
  CHECK(bytes.is_settled());
  bytes.use(30'000);
  CHECK(!bytes.allows(100'000));
  CHECK(bytes.allows(50'000));
  CHECK(!bytes.allows(70'000 - 2 * kEach + 1));

  Credit messages(Unit::kMessages, 2);
  messages.use(1u << 20);
  messages.use(1u << 20);
  CHECK(!messages.allows(0));
  CHECK(messages.settle(1));
  CHECK(messages.allows(0));
}

TEST_CASE("of rows, those of the window may go, and of unequal ones a share of bytes or one message") {
  Credit rows(Unit::kRows, 10, 100);
  CHECK(rows.allows(1u << 30, {9, 10}));
  CHECK(!rows.allows(0, {10, 11}));
  CHECK(!rows.reaches(10));
  rows.use(1u << 30, {9, 10});
  CHECK(rows.allows(1u << 30, {3, 4}));  // what is known later
  CHECK(rows.settle(5));
  CHECK(rows.limit() == 15);
  CHECK(!rows.is_settled());
  CHECK(rows.settle(10));
  CHECK(rows.is_settled());

  Credit lines(Unit::kRows, 10, 100, 500);
  lines.use(900, {0, 1});
  CHECK(!lines.allows(1, {1, 2}));
  CHECK(lines.settle(1));
  lines.use(300, {1, 2});
  CHECK(lines.free_bytes() == 200);
  CHECK(!lines.allows(201, {2, 3}));
  CHECK(lines.allows(200, {2, 3}));
}

TEST_CASE("words about credit may come late and twice, but not of what there is not") {
  Credit rows(Unit::kRows, 10, 100);
  CHECK(rows.settle(50));
  CHECK(rows.settle(20));
  CHECK(rows.limit() == 60);
  CHECK(!rows.settle(101));
  CHECK(!rows.settle(UINT64_MAX));
  CHECK(rows.limit() == 60);
  Credit bytes(Unit::kBytes, 1000);
  bytes.use(36);
  CHECK(!bytes.settle(37 + Credit::kMessageBytes));
  CHECK(bytes.settle(36 + Credit::kMessageBytes));
  CHECK(!Credit().allows(0, {0, 1}));
}

TEST_CASE("what is told by quarters of a window never holds a sender up for ever") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t window = 1 + random() % 1000;
    Credit credit(Unit::kBytes, window);
    std::uint64_t come = 0, told = 0;  // all that comes is done with at once, and told by parts
    for (int message = 0; message < 50; ++message) {
      const std::uint64_t bytes = random() % (3 * window);
      REQUIRE(credit.allows(bytes));
      credit.use(bytes);
      come += credit.cost(bytes);
      if (come - told < Credit::grant_step(window)) continue;
      told = come;
      REQUIRE(credit.settle(told));
    }
  }
}

TEST_CASE("a head comes as it went, and nothing else is one") {
  const Plain plain{UINT64_MAX - 1, 200, true, std::string("a\0b", 3)};
  const std::string bytes = pack_head(plain);
  const auto back = unpack_head<Plain>(bytes);
  REQUIRE(back);
  CHECK(Plain::members(*back) == Plain::members(plain));
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK(!unpack_head<Plain>(bytes.substr(0, size)));
  CHECK(!unpack_head<Plain>(bytes + "x"));
  std::string no_bool = bytes;
  no_bool[9] = 2;
  CHECK(!unpack_head<Plain>(no_bool));
  std::string long_text = bytes;
  long_text[13] = '\x7f';  // its length's last byte
  CHECK(!unpack_head<Plain>(long_text));

  const auto one = unpack_head<OneOf>(pack_head(OneOf(plain)));
  REQUIRE(one);
  CHECK(std::get<Plain>(*one).text == plain.text);
  REQUIRE(unpack_head<OneOf>(pack_head(OneOf())));
  CHECK(!unpack_head<OneOf>(""));
  CHECK(!unpack_head<OneOf>("\x02"));
  CHECK(!unpack_head<OneOf>(std::string("\0x", 2)));
}

}  // namespace pif::tool
