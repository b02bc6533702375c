// Groups of a parallel-open, without a server: rounds, who waits and until when, and who ends what.
#include "../../server/src/context/parallel_groups.h"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

namespace pif::server {
namespace {

constexpr std::uint64_t kGroup = 5;
constexpr std::uint64_t kController = 100;

// Members are of the sessions 1, 2, ...; what is asked and answered is text: "released 3", "done 2", "waits", ....
struct Groups {
  explicit Groups(std::uint32_t members, std::uint64_t position = 0) {
    REQUIRE(groups.open(kGroup, kController, {.file = 9, .members = members, .position = position, .uid = 7}));
  }
  void all_join(std::uint32_t members) {
    for (std::uint32_t i = 0; i < members; ++i) REQUIRE(groups.join(kGroup, i + 1, i));
  }
  static std::string text(const Error& error) { return fmt::format("{}: {}", code_name(error.code), error.text); }
  static std::string text(const ParallelGroups::Done& done) { return fmt::format("done {}", done.rounds); }
  static std::string text(const ParallelGroups::Released& released) {
    return fmt::format("released {}{}", released.rounds, released.ended ? ", ended" : "");
  }
  template <typename T>
  static std::string text(const Result<std::optional<T>>& said) {
    if (!said) return text(said.error());
    return *said ? text(**said) : "waits";
  }
  std::string release(std::uint64_t released, std::uint64_t wait_for, std::uint64_t session = kController) {
    return text(groups.release(kGroup, session, released, wait_for, waiter(true)));
  }
  std::string await(std::uint32_t member, std::uint64_t done) { return await(member, done, member + 1); }
  std::string await(std::uint32_t member, std::uint64_t done, std::uint64_t session) {
    return text(groups.await(kGroup, session, member, done, waiter(false)));
  }
  ParallelGroups::Waiter waiter(bool is_controller) {
    return [this, is_controller, number = ++request](const ParallelGroups::News& news) {
      said.push_back({number, is_controller, news});
    };
  }
  // "2: released 1; 1: done 1": to which request what was said.
  std::string answers() {
    std::string all;
    for (const auto& [number, to_controller, news] : take()) {
      if (!all.empty()) all += "; ";
      const std::string what = std::visit([](const auto& one) { return text(one); }, news);
      all += fmt::format("{}: {}", number, what);
      CHECK(to_controller == (std::get_if<ParallelGroups::Done>(&news) != nullptr || what.starts_with("unavailable")));
    }
    return all;
  }
  struct Said {
    std::uint64_t request;
    bool to_controller;
    ParallelGroups::News what;
  };
  std::vector<Said> take() { return std::exchange(said, {}); }

  ParallelGroups groups;
  std::uint64_t request = 0;
  std::vector<Said> said;
};

}  // namespace

TEST_CASE("members go as far as is released, and whoever releases hears when all are there") {
  Groups g(2);
  g.all_join(2);
  CHECK(g.await(0, 0) == "waits");    // request 1
  CHECK(g.release(2, 1) == "waits");  // 2
  CHECK(g.answers() == "1: released 2");
  CHECK(g.await(1, 0) == "released 2");  // 3
  CHECK(g.await(0, 1) == "released 2");  // 4
  CHECK(g.answers().empty());
  CHECK(g.await(1, 2) == "waits");  // 5
  CHECK(g.answers() == "2: done 1");
  CHECK(g.release(2, 1) == "done 1");  // 6
  CHECK(g.await(0, 2) == "waits");     // 7
  CHECK(g.release(5, 2) == "done 2");  // 8
  CHECK(g.answers() == "7: released 5; 5: released 5");
  CHECK(g.groups.waiting() == 0);
}

TEST_CASE("members that have not joined yet have done nothing, and are waited for") {
  Groups g(3);
  REQUIRE(g.groups.join(kGroup, 1, 0));
  CHECK(g.release(4, 1) == "waits");
  CHECK(g.await(0, 4) == "waits");
  REQUIRE(g.groups.join(kGroup, 3, 2));
  CHECK(g.await(2, 2) == "released 4");
  CHECK(g.answers().empty());
  REQUIRE(g.groups.join(kGroup, 2, std::nullopt));
  CHECK(g.await(1, 3) == "released 4");
  CHECK(g.answers() == "1: done 2");
}

TEST_CASE("a request that gives up is told how far it is, and hears nothing later") {
  Groups g(2);
  g.all_join(2);
  CHECK(g.release(3, 3) == "waits");
  CHECK(g.await(0, 3) == "waits");
  CHECK(g.groups.waiting() == 2);
  CHECK(g.text(g.groups.give_up_release(kGroup)) == "done 0");
  CHECK(g.text(g.groups.give_up_await(kGroup, 0)) == "released 3");
  CHECK(g.groups.waiting() == 0);
  CHECK(g.await(1, 3) == "waits");
  CHECK(g.release(4, 4) == "waits");
  CHECK(g.answers() == "3: released 4");
}

TEST_CASE("of two requests of one member, or of the controller, the older one is answered at once") {
  Groups g(1);
  g.all_join(1);
  CHECK(g.await(0, 0) == "waits");
  CHECK(g.await(0, 0) == "waits");
  CHECK(g.answers() == "1: released 0");
  CHECK(g.release(1, 1) == "waits");  // 3
  CHECK(g.answers() == "2: released 1");
  CHECK(g.release(1, 1) == "waits");  // 4
  CHECK(g.answers() == "3: done 0");
  CHECK(g.groups.waiting() == 1);
}

TEST_CASE("rounds neither fall nor run ahead of what is released, and records have numbers") {
  Groups g(2, 10);
  g.all_join(2);
  CHECK(g.release(3, 4) == "invalid: 4 rounds are waited for, and 3 released");
  CHECK(g.release(3, 0) == "done 0");
  CHECK(g.release(2, 0) == "invalid: 3 rounds are released already, not 2");
  CHECK(g.await(0, 4) == "invalid: 4 rounds are done, and only 3 released");
  CHECK(g.await(0, 2) == "released 3");
  CHECK(g.await(0, 1) == "invalid: 2 rounds are done already, not 1");
  CHECK(g.await(2, 0).starts_with("invalid: there is no member 2"));
  const std::uint64_t most = (INT64_MAX - 10) / 2;
  CHECK(g.release(most + 1, 0).starts_with("invalid"));
  CHECK(g.release(most, 0) == "done 0");
  CHECK(g.release(UINT64_MAX, 0).starts_with("invalid"));
}

TEST_CASE("only the controller releases and closes, and a member speaks for itself") {
  Groups g(2);
  REQUIRE(g.groups.join(kGroup, 1, 0));
  CHECK(g.release(1, 0, 1).starts_with("permission-denied"));
  CHECK(g.groups.close(kGroup, 1).error().code == Code::kPermission);
  CHECK(g.await(0, 0, 2).starts_with("permission-denied: another program is member 0"));
  CHECK(g.await(1, 0, 2).starts_with("permission-denied: nobody is member 1"));
}

TEST_CASE("members get the numbers that they ask for, or the lowest that is free, and each once") {
  Groups g(4);
  CHECK(g.groups.join(kGroup, 1, 1)->member == 1);
  CHECK(g.groups.join(kGroup, 1, std::nullopt)->member == 0);
  CHECK(g.groups.join(kGroup, 2, std::nullopt)->member == 2);
  CHECK(g.groups.join(kGroup, 2, 1).error().code == Code::kExists);
  CHECK(g.groups.join(kGroup, 2, 2).error().code == Code::kExists);
  CHECK(g.groups.join(kGroup, 2, 4).error().code == Code::kInvalid);
  CHECK(g.groups.join(kGroup, 3, std::nullopt)->shape.file == 9);
  CHECK(g.groups.join(kGroup, 3, std::nullopt).error().code == Code::kExists);
  CHECK(g.groups.join(kGroup + 1, 3, std::nullopt).error().code == Code::kNotFound);
}

TEST_CASE("a closed group lets its members do what was released, tells them that it has ended, and goes") {
  Groups g(3);
  g.all_join(3);
  CHECK(g.release(2, 2) == "waits");  // 1
  CHECK(g.await(0, 2) == "waits");    // 2
  REQUIRE(g.groups.close(kGroup, kController));
  CHECK(g.answers() == "1: done 0; 2: released 2, ended");
  CHECK_FALSE(g.groups.is_in_use(kController));
  REQUIRE(g.groups.close(kGroup, kController));
  CHECK(g.release(3, 0).starts_with("not-found"));
  CHECK(g.groups.join(kGroup, 9, std::nullopt).error().code == Code::kNotFound);
  CHECK(g.await(1, 1) == "released 2, ended");
  CHECK(g.await(1, 2) == "released 2, ended");
  CHECK(g.await(1, 2) == "released 2, ended");
  CHECK(g.await(2, 0) == "released 2, ended");
  g.groups.end_session(kController, "c");
  CHECK(g.groups.contains(kGroup));
  g.groups.end_session(3, "m");
  CHECK_FALSE(g.groups.contains(kGroup));
  CHECK(g.await(1, 2).starts_with("not-found: there is no group 5: the server was started again, or the group has"));
  CHECK_FALSE(g.groups.is_in_use(1));
  REQUIRE(g.groups.close(kGroup, kController));
}

TEST_CASE("a group that nobody has joined goes when it is closed") {
  Groups g(3);
  REQUIRE(g.groups.close(kGroup, kController));
  CHECK_FALSE(g.groups.contains(kGroup));
}

TEST_CASE("a member whose session ends is named to the controller, and the others are cancelled") {
  Groups g(3);
  REQUIRE(g.groups.join(kGroup, 1, 0));
  REQUIRE(g.groups.join(kGroup, 2, 1));
  CHECK(g.release(1, 1) == "waits");  // 1
  CHECK(g.await(0, 1) == "waits");    // 2
  g.groups.end_session(2, "sorter");
  CHECK(g.answers() ==
        "1: unavailable: member 1 (sorter) of the group is gone; 2: cancelled: member 1 (sorter) of the group is gone");
  CHECK(g.release(2, 0) == "unavailable: member 1 (sorter) of the group is gone");
  CHECK(g.await(0, 1) == "cancelled: member 1 (sorter) of the group is gone");
  CHECK(g.groups.join(kGroup, 3, 2).error().code == Code::kCancelled);
  g.groups.end_session(1, "other");
  CHECK(g.release(2, 0) == "unavailable: member 1 (sorter) of the group is gone");
  REQUIRE(g.groups.close(kGroup, kController));
  CHECK_FALSE(g.groups.contains(kGroup));
  CHECK_FALSE(g.groups.is_in_use(kController));
}

TEST_CASE("a group that a member broke stays for those who have not heard of it, when it is closed") {
  Groups g(3);
  g.all_join(3);
  g.groups.end_session(2, "sorter");
  CHECK(g.await(0, 0).starts_with("cancelled"));
  REQUIRE(g.groups.close(kGroup, kController));
  CHECK(g.await(2, 0) == "cancelled: member 1 (sorter) of the group is gone");
  CHECK_FALSE(g.groups.contains(kGroup));
}

TEST_CASE("a controller whose session ends cancels its group for all members, those who ask later too") {
  Groups g(2);
  g.all_join(2);
  CHECK(g.await(0, 0) == "waits");
  CHECK(g.release(3, 3) == "waits");
  CHECK(g.answers() == "1: released 3");
  CHECK(g.await(0, 3) == "waits");
  g.groups.end_session(kController, "boss");
  const auto answers = g.take();
  REQUIRE(answers.size() == 2);
  CHECK(std::get<Error>(answers[0].what).code == Code::kCancelled);
  CHECK(answers[0].to_controller);
  CHECK(std::get<Error>(answers[1].what).text == "the controller of the group (boss) is gone");
  CHECK(g.groups.join(kGroup, 9, std::nullopt).error().code == Code::kNotFound);
  CHECK(g.await(1, 0) == "cancelled: the controller of the group (boss) is gone");
  CHECK(g.await(1, 0).starts_with("not-found"));
  CHECK(g.groups.waiting() == 0);
}

TEST_CASE("a session that is controller and member takes all of it along") {
  Groups g(2);
  REQUIRE(g.groups.join(kGroup, kController, 0));
  REQUIRE(g.groups.join(kGroup, kController, 1));
  CHECK(g.await(0, 0, kController) == "waits");
  CHECK(g.release(1, 1) == "waits");
  g.groups.end_session(kController, "all");
  CHECK_FALSE(g.groups.contains(kGroup));
  CHECK_FALSE(g.groups.is_in_use(kController));
  CHECK(g.groups.waiting() == 0);
}

TEST_CASE("a user has so many groups, and members of groups, and those that have ended make room") {
  ParallelGroups groups;
  std::uint64_t id = 0;
  CHECK(groups.open(1, 1, {.members = 0, .uid = 7}).error().code == Code::kInvalid);
  CHECK(groups.open(1, 1, {.members = kGroupMembersMax + 1, .uid = 7}).error().code == Code::kTooLarge);
  CHECK(groups.open(1, 1, {.members = 1, .position = std::uint64_t{1} << 63, .uid = 7}).error().code == Code::kInvalid);
  for (std::size_t i = 0; i < kGroupsPerUserMax; ++i) REQUIRE(groups.open(++id, 1, {.members = 1, .uid = 7}));
  CHECK(groups.open(id + 1, 1, {.members = 1, .uid = 7}).error().code == Code::kBusy);
  REQUIRE(groups.open(++id, 1, {.members = 1, .uid = 8}));
  REQUIRE(groups.join(2, 50, std::nullopt));
  REQUIRE(groups.close(2, 1));
  CHECK(groups.contains(2));  // its member has not heard of it
  REQUIRE(groups.open(++id, 1, {.members = 1, .uid = 7}));
  CHECK_FALSE(groups.contains(2));
  groups.end_session(1, "all");
  const std::uint64_t first = id + 1;
  for (std::uint64_t i = 0; i < kGroupMembersPerUserMax / kGroupMembersMax; ++i)
    REQUIRE(groups.open(++id, 1, {.members = kGroupMembersMax, .uid = 7}));
  CHECK(groups.open(id + 1, 1, {.members = 1, .uid = 7}).error().code == Code::kBusy);
  REQUIRE(groups.close(first, 1));
  CHECK(groups.open(id + 1, 1, {.members = 1, .uid = 7}));
}

TEST_CASE("whatever members do, the controller hears the least of it, and nobody waits who need not") {
  rc::check([](std::vector<std::uint8_t> moves) {
    constexpr std::uint32_t kMembers = 3;
    Groups g(kMembers);
    g.all_join(kMembers);
    std::vector<std::uint64_t> done(kMembers), asked(kMembers);
    std::uint64_t released = 0;
    std::uint64_t wait_for = 0;
    for (const std::uint8_t move : moves) {
      const std::uint32_t who = move % (kMembers + 1);
      const std::uint64_t by = (move / (kMembers + 1)) % 4;
      if (who == kMembers) {
        released += by;
        wait_for = released - std::min<std::uint64_t>(released, move % 3);
        const std::uint64_t least = *std::min_element(done.begin(), done.end());
        RC_ASSERT(g.release(released, wait_for) == (least >= wait_for ? fmt::format("done {}", least) : "waits"));
        for (const auto& answer : g.take()) {
          if (!answer.to_controller) RC_ASSERT(std::get<ParallelGroups::Released>(answer.what).rounds == released);
        }
        continue;
      }
      done[who] = std::min(done[who] + by, released);
      RC_ASSERT(g.await(who, done[who]) ==
                (done[who] < released ? fmt::format("released {}", released) : std::string("waits")));
      const std::uint64_t least = *std::min_element(done.begin(), done.end());
      for (const auto& answer : g.take()) {
        if (!answer.to_controller) continue;
        RC_ASSERT(std::get<ParallelGroups::Done>(answer.what).rounds == least);
        RC_ASSERT(least >= wait_for);
      }
    }
  });
}

}  // namespace pif::server
