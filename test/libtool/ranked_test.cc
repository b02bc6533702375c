// Records with numbers on their way to where these belong.
#include "pif/tool/numbered.h"

#include <deque>
#include <map>
#include <string>

#include <fmt/format.h>
#include <catch2/catch.hpp>

using namespace pif;
using namespace pif::tool;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// What arrived, by destination and row.
using Arrived = std::map<std::pair<std::uint32_t, Row>, std::string>;

struct Sender {
  explicit Sender(bool fixed, Credit credit = Credit(Credit::Unit::kRows, 1000, 1000), std::uint64_t piece_rows = 1000)
      : length(fixed ? 3 : 0), credits{credit, credit}, ranked(2, fixed, piece_rows, [](std::uint64_t number) {
          const Cell cell = Placement(2).locate(number);
          return NumberedPlace{cell.lfs, cell.row};
        }) {
    for (const std::uint32_t to : {0U, 1U}) ranked.open(to, credits[to], {});
  }

  void put(std::uint64_t number, const std::string& text) {
    texts.push_back(text);
    ranked.put(number, {}, bytes_of(texts.back()));
  }
  bool step() {
    const auto sent = ranked.step([this](RowMessage message) {
      credits[message.to].use(message.counted_bytes(credits[message.to]), message.rows());
      return for_each_record(
          message.first, message.count, length, std::as_const(message.body).span(),
          [&](Row row, std::span<const std::byte> record) -> Status {
            arrived[{message.to, row}] = std::string(reinterpret_cast<const char*>(record.data()), record.size());
            return {};
          });
    });
    REQUIRE(sent);
    return *sent;
  }

  std::uint32_t length;
  Credit credits[2];
  NumberedSender ranked;
  std::deque<std::string> texts;
  Arrived arrived;
};

}  // namespace

TEST_CASE("every record arrives where its number belongs, whatever its length") {
  for (const bool fixed : {true, false}) {
    Sender sender(fixed);
    for (const std::uint64_t number : {1, 2, 5, 6}) sender.put(number, fixed ? "abc" : std::string(number, 'x'));
    CHECK(sender.ranked.is_empty());  // nothing goes before the flush
    CHECK(!sender.step());
    sender.ranked.flush();
    CHECK(sender.step());
    CHECK(sender.ranked.is_empty());
    Arrived wanted;
    for (const std::uint64_t number : {1, 2, 5, 6}) {
      wanted[{static_cast<std::uint32_t>(number & 1), number >> 1}] = fixed ? "abc" : std::string(number, 'x');
    }
    CHECK(sender.arrived == wanted);
  }
}

TEST_CASE("rows beyond the window wait for room, and the lowest go first") {
  Sender sender(true, Credit(Credit::Unit::kRows, 4, 10), 2);
  for (const std::uint64_t number : {8, 10}) sender.put(number, "new");  // rows 4 and 5
  sender.ranked.flush();
  CHECK(!sender.step());
  for (const std::uint64_t number : {0, 2}) sender.put(number, "old");  // rows 0 and 1, known later
  sender.ranked.flush();
  CHECK(sender.step());
  CHECK(sender.arrived.size() == 2);
  CHECK(sender.arrived.contains({0, 0}));
  CHECK(sender.credits[0].settle(2));
  CHECK(sender.step());
  CHECK(sender.arrived.contains({0, 5}));
}

TEST_CASE("no more than its share is under way to a destination, but always one message") {
  Sender sender(false, Credit(Credit::Unit::kRows, 100, 100, 10), 1);
  for (const std::uint64_t number : {0, 2, 4}) sender.put(number, std::string(20, 'x'));
  sender.ranked.flush();
  CHECK(sender.step());
  CHECK(sender.arrived.size() == 1);
  CHECK(!sender.step());
  CHECK(sender.credits[0].settle(1));
  CHECK(sender.step());
  CHECK(sender.arrived.size() == 2);
  CHECK(sender.ranked.queued_bytes() > 0);
}

// Else both would wait: the receiver is done with rows in their order.
TEST_CASE("a row that comes before all that is under way goes, however much that is") {
  Sender sender(false, Credit(Credit::Unit::kRows, 100, 100, 10), 100);
  sender.put(100, std::string(20, 'x'));  // row 50
  sender.ranked.flush();
  CHECK(sender.step());
  for (const std::uint64_t number : {80, 120}) sender.put(number, std::string(20, 'x'));  // rows 40 and 60, known later
  sender.ranked.flush();
  CHECK(sender.step());
  CHECK(sender.arrived.size() == 3);
  sender.put(102, std::string(20, 'x'));  // row 51
  sender.ranked.flush();
  CHECK(!sender.step());
  CHECK(sender.credits[0].settle(51));
  CHECK(sender.step());
}

TEST_CASE("a message that is not what it says is refused") {
  const auto ignore = [](Row, std::span<const std::byte>) { return Status(); };
  const std::vector<std::byte> body(1 + 3);
  CHECK(for_each_record(0, 1, 3, body, ignore));
  CHECK(!for_each_record(0, 1, 4, body, ignore));
  CHECK(!for_each_record(0, 1, 2, body, ignore));
  CHECK(!for_each_record(0, 2, 3, body, ignore));
  CHECK(!for_each_record(0, UINT64_MAX, 3, body, ignore));
}

TEST_CASE("what there is room for in a destination's memory is put there at once, round it too, and the rest waits") {
  Sender sender(true, Credit(Credit::Unit::kRows, 4, 10), 2);
  std::string window(4 * 3, '.');  // of destination 0; the other one has none
  sender.ranked.open(0, sender.credits[0], std::as_writable_bytes(std::span(window)));
  std::vector<RowMessage> messages;
  const auto step = [&] {
    sender.ranked.flush();
    REQUIRE(sender.ranked.step([&](RowMessage message) {
      messages.push_back(std::move(message));
      return Status();
    }));
  };
  CHECK(sender.credits[0].settle(3));
  for (const std::uint64_t number : {1, 6, 8, 10, 14})
    sender.put(number, fmt::format("{:03}", number));  // rows 3, 4, 5, and 7: no room
  CHECK(window == "008010...006");
  step();
  REQUIRE(messages.size() == 3);
  CHECK(messages[0].placed);
  CHECK(messages[0].body.size() == 1);
  CHECK((messages[1].placed && messages[1].first == 4 && messages[1].count == 2));
  CHECK((!messages[2].placed && messages[2].to == 1));
  CHECK(sender.credits[0].settle(4));
  step();
  REQUIRE(messages.size() == 4);
  CHECK(!messages[3].placed);
  REQUIRE(place_records(messages[3], 3, std::as_writable_bytes(std::span(window))));
  CHECK(window == "008010...014");
}
