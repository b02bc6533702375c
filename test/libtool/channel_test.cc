// Workers that talk over channels, in the simulated world.
#include "pif/tool/channel.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "libtool/liar.h"
#include "pif/tool/team.h"

namespace pif {
namespace {

constexpr unsigned kLfss = 11;  // more than one worker hears in a tree

struct Word {
  std::uint32_t number = 0;
  static auto members(auto& self) { return std::tie(self.number); }
};
using Words = tool::Channel<Word>;

struct Fixture : sim::LiarFixture {
  explicit Fixture(tool::WorkerFunction work) : LiarFixture(kLfss, std::move(work)) {}
  std::string run_tool(bool apart = false) {
    std::string error;
    run([&](Client& client) { error = run_once(client, apart); });
    return error;
  }
  static std::string run_once(Client& client, bool apart) {
    tool::ControllerOptions options = sim::sim_controller();
    options.apart = apart;
    tool::Controller controller(client, options);
    CreateOptions create;
    create.format = Format::fixed(1);
    create.width = kLfss;
    sim::must(controller.create("/out", create));
    const auto done = controller.run({});
    return done ? std::string() : done.error().to_string();
  }
};

tool::ChannelOptions small_window(tool::Credit::Unit unit, std::uint64_t window) {
  tool::ChannelOptions options;
  options.unit = unit;
  options.window = window;
  return options;
}

// Every worker sends every worker so many messages at once, of so many bytes; they come whole, and in order.
Status flood(tool::Worker& worker, std::uint32_t count, std::size_t bytes, const tool::ChannelOptions& options) {
  PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
  tool::Talk talk(team);
  std::vector<std::uint32_t> come(worker.width());
  Words words(talk, 1, options, [&](const Words::Item& item) -> Status {
    if (item.head.number != come[item.from]++) return fail(Code::kInternal, "out of order");
    if (item.body.size() != bytes) return fail(Code::kInternal, "of another size");
    return {};
  });
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t to = 0; to < worker.width(); ++to) PIF_TRY(words.send(to, {i}, net::Buffer(bytes)));
  }
  PIF_TRY(talk.until([&] { return std::count(come.begin(), come.end(), count) == worker.width(); }));
  return talk.end();
}

}  // namespace

TEST_CASE("what is beyond the credit waits, and comes in order") {
  using Unit = tool::Credit::Unit;
  for (const auto& options : {small_window(Unit::kBytes, 1000), small_window(Unit::kMessages, 1),
                              small_window(Unit::kMessages, 7), tool::ChannelOptions()}) {
    Fixture fixture([&](tool::Worker& worker) { return flood(worker, 12, 300, options); });
    CHECK(fixture.run_tool() == "");
    CHECK(fixture.run_tool(true) == "");
  }
}

TEST_CASE("any number of short messages may be sent to one who does not listen, and they wait") {
  Fixture fixture([](tool::Worker& worker) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    tool::Talk talk(team);
    std::uint32_t come = 0;
    Words words(talk, 1, {}, [&](const Words::Item& item) -> Status {
      return item.head.number == come++ ? Status() : fail(Code::kInternal, "out of order");
    });
    if (worker.rank() == 1) {
      for (std::uint32_t i = 0; i < 10'000; ++i) PIF_TRY(words.send(0, {i}));
    }
    if (worker.rank() == 0) PIF_TRY(talk.until([&] { return come == 10'000; }));
    return talk.end();
  });
  CHECK(fixture.run_tool() == "");
}

TEST_CASE("a message longer than the window goes, when nothing else is under way") {
  Fixture fixture(
      [](tool::Worker& worker) { return flood(worker, 3, 5000, small_window(tool::Credit::Unit::kBytes, 1000)); });
  CHECK(fixture.run_tool() == "");
}

TEST_CASE("a receiver that keeps what came holds its sender up until it is done with it") {
  Fixture fixture([](tool::Worker& worker) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    tool::Talk talk(team);
    tool::ChannelOptions options = small_window(tool::Credit::Unit::kMessages, 2);
    options.is_kept = true;
    std::uint32_t kept = 0, come = 0;
    Words words(talk, 1, options, [&](const Words::Item&) -> Status {
      ++come;
      return ++kept <= 2 ? Status() : fail(Code::kInternal, "more than it may keep");
    });
    const std::uint32_t to = worker.rank() ^ 1;  // the last one is alone
    const std::uint32_t receiver = to < worker.width() ? to : worker.rank();
    for (std::uint32_t i = 0; i < 20; ++i) PIF_TRY(words.send(receiver, {i}));
    while (come < 20 || kept > 0) {
      if (kept > 0) PIF_TRY(words.settle(receiver, std::exchange(kept, 0)));
      if (come < 20) PIF_TRY(talk.go_on(true));
    }
    return talk.end();
  });
  CHECK(fixture.run_tool() == "");
}

TEST_CASE("values of any length go up a tree of workers and down again") {
  Fixture fixture([](tool::Worker& worker) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    const auto value_of = [](std::uint32_t rank) {
      return std::string(rank % 3 == 0 ? 0 : std::size_t{rank} * 700'000, static_cast<char>('a' + rank));
    };
    PIF_TRY_VALUE(const auto all, team.all_gather(value_of(worker.rank())));
    for (std::uint32_t rank = 0; rank < worker.width(); ++rank)
      if (all.at(rank) != value_of(rank)) return fail(Code::kInternal, fmt::format("another value of {}", rank));
    PIF_TRY_VALUE(const std::string said, team.broadcast(fmt::format("from {}", worker.rank()), 9));
    if (said != "from 9") return fail(Code::kInternal, said);
    std::string seen;
    PIF_TRY(team.in_turn([&](std::string& state) -> Status {
      state += std::string(1'000'000, static_cast<char>('a' + worker.rank()));
      seen = state;
      return {};
    }));
    return seen.size() == (worker.rank() + 1) * 1'000'000u ? team.barrier() : fail(Code::kInternal, "another state");
  });
  CHECK(fixture.run_tool() == "");
  CHECK(fixture.run_tool(true) == "");
}

TEST_CASE("memory that all share is everybody's, whoever handed it out") {
  Fixture fixture([](tool::Worker& worker) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    PIF_TRY_VALUE(const auto own, tool::SharedMemory::make(worker.rank() % 4 == 3 ? 0 : 4096));
    for (const std::byte& byte : own.bytes()) const_cast<std::byte&>(byte) = std::byte(worker.rank() + 1);
    PIF_TRY_VALUE(const auto all, team.share_near(own));
    for (std::uint32_t rank = 0; rank < worker.width(); ++rank) {
      if (rank % 4 == 3 ? !all[rank].empty() : all[rank].bytes()[4095] != std::byte(rank + 1))
        return fail(Code::kInternal, fmt::format("other memory of {}", rank));
    }
    return team.barrier();
  });
  CHECK(fixture.run_tool() == "");
}

TEST_CASE("where workers are on several machines, only memory of their own is shared, and else that is an error") {
  Fixture fixture([](tool::Worker& worker) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    PIF_TRY_VALUE(const auto own, tool::SharedMemory::make(4096));
    PIF_TRY_VALUE(const auto near, team.share_near(own));
    for (std::uint32_t rank = 0; rank < worker.width(); ++rank)
      if (near[rank].empty() != (rank != worker.rank())) return fail(Code::kInternal, "a far one's memory");
    PIF_TRY(team.share(own));
    return {};
  });
  CHECK(fixture.run_tool(true).find("is on another machine, where nothing can be shared") != std::string::npos);
}

TEST_CASE("a worker that says nonsense on a channel ends the job, by a name") {
  using Change = std::function<bool(job::Mail&, net::Buffer&)>;
  const auto is_word = [](const job::Mail& m) { return m.has_item() && m.item().channel() == 1; };
  const std::vector<std::tuple<const char*, const char*, Change>> lies = {
      {"another channel", "something on channel 77",
       [&](job::Mail& m, net::Buffer&) { return is_word(m) && (m.mutable_item()->set_channel(77), true); }},
      {"no head", "its message cannot be read",
       [&](job::Mail& m, net::Buffer&) { return is_word(m) && (m.mutable_item()->set_head("x"), true); }},
      {"leave to send what there is not", "leave to send up to",
       [](job::Mail& m, net::Buffer&) {
         return m.has_grant() && m.grant().channel() == 1 && (m.mutable_grant()->set_limit(UINT64_MAX), true);
       }},
      {"leave to send less than at first", "leave to send up to",
       [](job::Mail& m, net::Buffer&) {
         return m.has_grant() && m.grant().channel() == 1 && (m.mutable_grant()->set_limit(1), true);
       }},
      {"letters taken that were not sent", "that it took 99 letters of",
       [&](job::Mail& m, net::Buffer&) { return is_word(m) && (m.mutable_taken()->set_letters(99), true); }},
      {"descriptors", "something that is not of this step",
       [&](job::Mail& m, net::Buffer&) { return is_word(m) && (m.mutable_pass(), true); }},
  };
  Fixture fixture(
      [](tool::Worker& worker) { return flood(worker, 6, 600, small_window(tool::Credit::Unit::kBytes, 2000)); });
  fixture.run([&](Client& client) {
    for (const auto& [what, words, change] : lies) {
      INFO(what);
      fixture.liar().begin(change, 2);  // when some are under way
      const std::string error = fixture.run_once(client, false);
      INFO(error);
      CHECK(fixture.liar().has_lied());
      CHECK(error.find(fmt::format("worker 1 sent nonsense: {}", words)) != std::string::npos);
    }
  });
  CHECK(fixture.thrown() == "");
}

TEST_CASE("a worker that sends past its credit ends the job, by a name") {
  Fixture fixture([](tool::Worker& worker) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    tool::Talk talk(team);
    tool::ChannelOptions options = small_window(tool::Credit::Unit::kBytes, 1000);
    options.is_kept = true;
    std::uint32_t come = 0;
    Words words(talk, 1, options, [&](const Words::Item&) -> Status { return ++come, Status(); });
    for (std::uint32_t i = 0; i < 2; ++i) {
      for (std::uint32_t to = 0; to < worker.width(); ++to) PIF_TRY(words.send(to, {i}, net::Buffer(300)));
    }
    PIF_TRY(talk.until([&] { return come == 2 * worker.width(); }));
    return talk.end();
  });
  fixture.run([&](Client& client) {
    REQUIRE(fixture.run_once(client, false) == "");
    const auto longer = [](job::Mail& m, net::Buffer& body) {
      return m.has_item() && m.item().channel() == 1 && (body = net::Buffer(1u << 20), true);
    };
    fixture.liar().begin(longer, kLfss - 1);  // when one to each is under way
    const std::string error = fixture.run_once(client, false);
    INFO(error);
    CHECK(error.find("worker 1 sent nonsense: more than it may on channel 1") != std::string::npos);
  });
}

TEST_CASE("who waits for a worker that says nothing is told so") {
  Fixture fixture([](tool::Worker& worker) -> Status {
    PIF_TRY_VALUE(tool::Team team, tool::Team::join(worker));
    tool::Talk talk(team, std::chrono::seconds(30));
    Words words(talk, 1, {}, [](const Words::Item&) { return Status(); });
    return talk.until([] { return false; });
  });
  CHECK(fixture.run_tool().find("no other worker has said anything for 30 s") != std::string::npos);
}

}  // namespace pif
