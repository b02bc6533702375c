#include "pif/daemon/fibers.h"

#include <random>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

#include "pif/daemon/mode_lock.h"

namespace pif::daemon {
namespace {

class HandClock final : public Clock {
 public:
  Time now() const override { return at; }
  std::int64_t wall_seconds() const override { return 0; }
  Time at{};
};

// Does nothing before it is told to.
class LateExecutor final : public Executor {
 public:
  void submit(std::function<void()> work, std::function<void()> done) override {
    works.emplace_back(std::move(work), std::move(done));
  }
  void drain() override { works.clear(); }
  void run() {
    for (auto& [work, done] : std::exchange(works, {})) {
      work();
      done();
    }
  }
  std::vector<std::pair<std::function<void()>, std::function<void()>>> works;
};

struct Fixture {
  HandClock clock;
  Fibers fibers{clock};
  std::string log;
};

TEST_CASE("a fiber runs until it waits, and goes on when it is woken") {
  Fixture f;
  Fibers::WaitId id{};
  const bool ended = f.fibers.start([&] {
    f.log += "a";
    id = f.fibers.begin_wait();
    CHECK(f.fibers.wait(id));
    f.log += "b";
  });
  CHECK_FALSE(ended);
  CHECK(f.fibers.count() == 1);
  f.fibers.run();
  CHECK(f.log == "a");
  f.fibers.wake(id);
  CHECK(f.fibers.next_deadline() == Time::min());
  f.fibers.run();
  CHECK(f.log == "ab");
  CHECK(f.fibers.count() == 0);
  f.fibers.wake(id);  // has no effect any more
  CHECK(f.fibers.next_deadline() == kNever);
}

struct Counter {
  void count(const std::string& what, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      fibers.settle();
      log += what;
    }
  }
  Fibers& fibers;
  std::string log;
};

TEST_CASE("a fiber that works for an object has copies of what it is given") {
  Fixture f;
  Counter counter{f.fibers, {}};
  std::string what = "a";
  CHECK_FALSE(f.fibers.start<&Counter::count>(counter, what, 2u));
  what = "b";
  CHECK(f.fibers.start<&Counter::count>(counter, what, 0u));
  f.fibers.run();
  CHECK(counter.log == "aa");
}

TEST_CASE("a wait that was ended before it began costs no switch, and counts") {
  Fixture f;
  CHECK(f.fibers.start([&] {
    const auto id = f.fibers.begin_wait();
    f.fibers.wake(id);
    CHECK(f.fibers.wait(id));
    CHECK(f.fibers.waits() == 1);
  }));
}

TEST_CASE("a wait ends by its time") {
  Fixture f;
  bool woken = true;
  f.fibers.start([&] { woken = f.fibers.wait(f.fibers.begin_wait(), Time(std::chrono::seconds(5))); });
  CHECK(f.fibers.next_deadline() == Time(std::chrono::seconds(5)));
  f.clock.at = Time(std::chrono::seconds(4));
  f.fibers.run();
  CHECK(woken);
  f.clock.at = Time(std::chrono::seconds(5));
  f.fibers.run();
  CHECK_FALSE(woken);
  CHECK(f.fibers.next_deadline() == kNever);
}

TEST_CASE("fibers that settle go on after all others") {
  Fixture f;
  f.fibers.start([&] {
    f.fibers.settle();
    f.log += "last";
  });
  for (const char* name : {"a", "b"})
    f.fibers.start([&f, name] {
      for (int i = 0; i < 3; ++i) {
        const auto id = f.fibers.begin_wait();
        f.fibers.start([&f, id] { f.fibers.wake(id); });
        f.fibers.wait(id);
        f.log += name;
      }
    });
  f.fibers.run();
  CHECK(f.log == "ababablast");
}

TEST_CASE("work away from the loop gives its result to the fiber that waits") {
  Fixture f;
  LateExecutor executor;
  int result = 0;
  f.fibers.start([&] {
    const int seven = 7;
    result = disk(f.fibers, executor, [&] { return seven * 6; });
  });
  CHECK(result == 0);
  executor.run();
  f.fibers.run();
  CHECK(result == 42);
}

TEST_CASE("a call back is awaited, whether it comes at once or later") {
  Fixture f;
  std::function<void(int)> later;
  std::string got;
  f.fibers.start([&] {
    got += std::to_string(await<int>(f.fibers, [](const auto& done) { done(1); }));
    got += std::to_string(await<int>(f.fibers, [&](auto done) { later = std::move(done); }));
  });
  CHECK(got == "1");
  later(2);
  f.fibers.run();
  CHECK(got == "12");
}

TEST_CASE("fibers that are ended run their destructors, and nothing else") {
  Fixture f;
  LateExecutor executor;
  f.fibers.start([&] {
    const AtExit note([&] { f.log += "end"; });
    f.fibers.sleep_until(kNever - std::chrono::seconds(1));
    f.log += "not this";
  });
  f.fibers.start([&] {
    const AtExit note([&] { f.log += "end"; });
    (void)disk(f.fibers, executor, [] { return 1; });
    f.log += "nor this";
  });
  executor.drain();
  f.fibers.end_all();
  CHECK(f.log == "endend");
  CHECK(f.fibers.count() == 0);
}

TEST_CASE("what a fiber throws comes out where it is run") {
  Fixture f;
  Fibers::WaitId id{};
  f.fibers.start([&] {
    id = f.fibers.begin_wait();
    f.fibers.wait(id);
    throw std::runtime_error("thrown");
  });
  f.fibers.wake(id);
  CHECK_THROWS_WITH(f.fibers.run(), "thrown");
  CHECK(f.fibers.count() == 0);
  CHECK_THROWS_AS(f.fibers.start([] { throw std::logic_error("at once"); }), std::logic_error);
}

TEST_CASE("many are done, so many at once") {
  Fixture f;
  std::size_t inside = 0, most = 0, sum = 0;
  bool is_done = false;
  f.fibers.start([&] {
    each(f.fibers, 1000, 7, [&](std::size_t index) {
      most = std::max(most, ++inside);
      f.fibers.sleep_until(f.clock.at + std::chrono::milliseconds(1 + index % 3));
      --inside;
      sum += index;
    });
    each(f.fibers, 0, 1, [](std::size_t) { FAIL(); });
    is_done = true;
  });
  while (!is_done) {
    f.clock.at += std::chrono::milliseconds(1);
    f.fibers.run();
  }
  CHECK(most == 7);
  CHECK(sum == 999 * 1000 / 2);
}

TEST_CASE("fibers that nobody needs any more are given up") {
  Fixture f;
  for (int i = 0; i < 2000; ++i) f.fibers.start([&] { f.fibers.sleep_until(Time(std::chrono::seconds(1))); });
  CHECK(f.fibers.count() == 2000);
  f.clock.at = Time(std::chrono::seconds(1));
  f.fibers.run();
  CHECK(f.fibers.count() == 0);
  CHECK(f.fibers.kept() < 1000);
}

TEST_CASE("an event wakes all who wait at that moment") {
  Fixture f;
  Event event(f.fibers);
  for (int i = 0; i < 3; ++i)
    f.fibers.start([&] {
      CHECK(event.wait());
      f.log += "x";
      if (f.log.size() < 3) event.wait(Time(std::chrono::seconds(1)));
    });
  event.notify();
  f.fibers.run();
  CHECK(f.log == "xxx");
  CHECK(event.has_waiters());
  f.clock.at = Time(std::chrono::seconds(1));
  f.fibers.run();
  CHECK_FALSE(event.has_waiters());
}

TEST_CASE("slots are given first come first served") {
  Fixture f;
  Slots slots(f.fibers, 2);
  std::vector<Fibers::WaitId> inside;
  for (const char* name : {"a", "b", "c", "d"})
    f.fibers.start([&, name] {
      const auto slot = slots.acquire();
      f.log += name;
      inside.push_back(f.fibers.begin_wait());
      f.fibers.wait(inside.back());
    });
  CHECK(f.log == "ab");
  f.fibers.wake(inside[1]);
  f.fibers.run();
  CHECK(f.log == "abc");
  f.fibers.wake(inside[0]);
  f.fibers.run();
  CHECK(f.log == "abcd");
  f.fibers.end_all();
}

TEST_CASE("a thousand fibers of random waits all end, whatever goes on first") {
  HandClock clock;
  std::mt19937 random(7);
  Fibers fibers(clock, [&](std::size_t count) { return random() % count; });
  Event event(fibers);
  unsigned ended = 0;
  for (unsigned i = 0; i < 1000; ++i)
    fibers.start([&, i] {
      for (unsigned step = 0; step < 20; ++step) {
        if ((i + step) % 3 == 0)
          fibers.sleep_until(clock.at + std::chrono::milliseconds(random() % 10));
        else
          event.wait(clock.at + std::chrono::milliseconds(random() % 20));
        if (random() % 4 == 0) event.notify();
      }
      ++ended;
    });
  for (unsigned turn = 0; ended < 1000; ++turn) {
    REQUIRE(turn < 10'000);
    clock.at += std::chrono::milliseconds(1);
    fibers.run();
  }
}

[[noreturn]] void throw_it(const BrokenAssertion& broken) { throw std::logic_error(broken.to_string()); }

TEST_CASE("a fresh value is one until its fiber waits, and to use it after that is an assertion") {
  Fixture f;
  const AssertionHandler before = set_assertion_handler(&throw_it);
  const AtExit back([&] { set_assertion_handler(before); });
  const auto look = [&](bool waits) {
    f.fibers.start([&f, waits] {
      const Fresh<int> value(f.fibers, 7);
      f.log += std::to_string(*value);
      if (waits) f.fibers.settle();
      f.log += std::to_string(*value);
    });
  };
  look(false);
  CHECK(f.log == "77");
  look(true);
  CHECK_THROWS_AS(f.fibers.run(), std::logic_error);
  CHECK(f.log == "777");
}

TEST_CASE("a stack that is given up tells how much of it was used") {
  constexpr std::size_t kDeep = 24u << 10;
  FiberStacks stacks(64u << 10, 0);
  {
    Fiber fiber(stacks, [] {
      std::array<volatile char, kDeep> deep;
      deep[0] = 1;
    });
    fiber.resume();
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  CHECK(stacks.used_max() == 0);
#else
  CHECK(stacks.used_max() >= kDeep);
  CHECK(stacks.used_max() <= stacks.bytes() / 2);
#endif
}

// ---- ModeLock ------------------------------------------------------------------------------------------------------

enum : unsigned { kRead, kWrite };
constexpr std::array<std::uint32_t, 2> kReadersBeside = {1u << kRead, 0};

struct LockFixture : Fixture {
  ModeLock lock{kReadersBeside};
  std::vector<Fibers::WaitId> inside;
  void enter(const char* name, unsigned mode) {
    fibers.start([this, name, mode] {
      const auto held = lock.acquire(fibers, mode, kNever);
      log += name;
      inside.push_back(fibers.begin_wait());
      fibers.wait(inside.back());
    });
  }
  void leave(std::size_t index) {
    fibers.wake(inside.at(index));
    fibers.run();
  }
  ~LockFixture() { fibers.end_all(); }
};

TEST_CASE("modes that go beside each other are held together, others wait, and nobody overtakes") {
  LockFixture f;
  f.enter("r", kRead);
  f.enter("R", kRead);
  f.enter("w", kWrite);
  f.enter("q", kRead);  // would go beside the readers, but the writer came first
  CHECK(f.log == "rR");
  CHECK_FALSE(f.lock.try_acquire(kRead).is_held());
  f.leave(0);
  CHECK(f.log == "rR");
  f.leave(1);
  CHECK(f.log == "rRw");
  CHECK(f.lock.is_held(kWrite));
  f.leave(2);
  CHECK(f.log == "rRwq");
  CHECK(f.lock.try_acquire(kRead).is_held());
}

TEST_CASE("a lock that is relaxed lets in those who go beside it now") {
  LockFixture f;
  auto held = f.lock.try_acquire(kWrite);
  f.enter("r", kRead);
  f.enter("w", kWrite);
  held.relax(kRead);
  f.fibers.run();
  CHECK(f.log == "r");
  CHECK_FALSE(f.lock.is_held(kWrite));
  held.release();
  f.leave(0);
  CHECK(f.log == "rw");
}

TEST_CASE("a fiber that is ended while it waits for a lock leaves the line") {
  LockFixture f;
  f.enter("w", kWrite);
  f.enter("x", kWrite);
  CHECK(f.lock.waiting() == 1);
  f.fibers.end_all();
  CHECK(f.lock.waiting() == 0);
  CHECK_FALSE(f.lock.is_held(kWrite));
}

enum : unsigned { kLeft, kLeftToo, kRight };
constexpr std::array<std::uint32_t, 3> kSidesBeside = {1u << kRight, 1u << kRight, 1u << kLeft | 1u << kLeftToo};

TEST_CASE("who goes beside all that hold a lock or wait for it does not wait for them") {
  Fixture f;
  ModeLock lock(kSidesBeside);
  auto left = lock.try_acquire(kLeft);
  f.fibers.start([&] {
    const auto held = lock.acquire(f.fibers, kLeftToo, kNever);
    f.log += "l";
    f.fibers.sleep_until(Time(std::chrono::seconds(1)));
  });
  CHECK(lock.is_wanted(kLeftToo));
  CHECK_FALSE(lock.is_held(kLeftToo));
  CHECK_FALSE(lock.may_acquire(kLeft));
  auto right = lock.try_acquire(kRight);
  CHECK(right.is_held());
  f.fibers.start([&] {
    const auto held = lock.acquire(f.fibers, kRight, kNever);
    f.log += "r";
  });
  f.fibers.start([&] {
    const auto held = lock.acquire(f.fibers, kLeft, kNever);
    f.log += "L";
  });
  right.release();
  f.fibers.run();
  CHECK(f.log == "r");  // past two who go beside it
  left.release();
  f.fibers.run();
  CHECK(f.log == "rl");  // in their order
  f.clock.at = Time(std::chrono::seconds(1));
  f.fibers.run();
  CHECK(f.log == "rlL");
  CHECK(lock.is_free());
}

TEST_CASE("a wait for a lock ends by its time, and those behind go on as if it had never been") {
  LockFixture f;
  f.enter("r", kRead);
  f.fibers.start([&] {
    CHECK_FALSE(f.lock.acquire(f.fibers, kWrite, Time(std::chrono::seconds(5))).is_held());
    f.log += "late";
  });
  f.enter("q", kRead);
  CHECK(f.log == "r");
  f.clock.at = Time(std::chrono::seconds(5));
  f.fibers.run();
  CHECK(f.log == "rlateq");
  CHECK_FALSE(f.lock.is_wanted(kWrite));
  CHECK(f.lock.waiting() == 0);
}

TEST_CASE("whose turn comes in the moment in which his time is over has the lock") {
  LockFixture f;
  auto held = f.lock.try_acquire(kWrite);
  f.fibers.start([&] {
    f.fibers.sleep_until(Time(std::chrono::seconds(5)));
    held.release();  // the other one is ready already, by its time
  });
  f.fibers.start([&] { CHECK(f.lock.acquire(f.fibers, kWrite, Time(std::chrono::seconds(5))).is_held()); });
  f.clock.at = Time(std::chrono::seconds(5));
  f.fibers.run();
  CHECK(f.fibers.count() == 0);
  CHECK(f.lock.is_free());
}

TEST_CASE(
    "of many who want a lock for random times nobody is inside beside whom he must not be, and all wait bounded") {
  HandClock clock;
  std::mt19937 random(11);
  Fibers fibers(clock, [&](std::size_t count) { return random() % count; });
  ModeLock lock(kSidesBeside);
  std::array<unsigned, 3> inside{};
  unsigned came = 0, late = 0;
  for (unsigned i = 0; i < 300; ++i)
    fibers.start([&, mode = i % 3] {
      for (unsigned turn = 0; turn < 10; ++turn) {
        const auto held = lock.acquire(fibers, mode, clock.at + std::chrono::milliseconds(random() % 400));
        ++(held.is_held() ? came : late);
        if (!held.is_held()) continue;
        ++inside[mode];
        CHECK(inside[kLeft] + inside[kLeftToo] <= 1);
        CHECK(inside[kRight] <= 1);
        fibers.sleep_until(clock.at + std::chrono::milliseconds(1 + random() % 3));
        --inside[mode];
      }
    });
  for (unsigned turn = 0; fibers.count() > 0; ++turn) {
    REQUIRE(turn < 20'000);
    clock.at += std::chrono::milliseconds(1);
    fibers.run();
  }
  CHECK(came > 500);
  CHECK(late > 500);
  CHECK(lock.is_free());
}

}  // namespace
}  // namespace pif::daemon
