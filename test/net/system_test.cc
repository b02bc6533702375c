#include "pif/net/system.h"

#include <atomic>
#include <csignal>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

#include "net/world.h"

using namespace pif;
using namespace pif::net;

TEST_CASE("receive returns at its deadline, and at once when the deadline has passed") {
  const auto messenger = make_messenger();
  const Time until = messenger->clock().now() + std::chrono::milliseconds(20);
  REQUIRE(!must(messenger->receive(until)));
  REQUIRE(messenger->clock().now() >= until);
  REQUIRE(!must(messenger->receive(Time{})));
}

TEST_CASE("a thread and a signal handler can wake a messenger that waits for ever") {
  const auto messenger = make_messenger();
  std::thread waker([&] { messenger->wake(); });
  REQUIRE(must(messenger->receive(kNever))->kind == Delivery::Kind::kWake);
  waker.join();
  static Messenger* target = nullptr;
  target = messenger.get();
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { target->wake(); };
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  REQUIRE(must(messenger->receive(kNever))->kind == Delivery::Kind::kWake);
  sigaction(SIGUSR1, &before, nullptr);
  messenger->wake();
  messenger->wake();  // two become one
  REQUIRE(must(messenger->receive(kNever))->kind == Delivery::Kind::kWake);
  REQUIRE(!must(messenger->receive(Time{})));
}

TEST_CASE("an executor runs work on other threads, at most so many at once, and completions on the loop's") {
  const auto messenger = make_messenger();
  ThreadExecutor executor(*messenger, 3);
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  std::mutex mutex;
  std::set<std::thread::id> workers;
  int completed = 0;
  for (int i = 0; i < 100; ++i) {
    executor.submit(
        [&] {
          const int now = ++at_once;
          int seen = most;
          while (seen < now && !most.compare_exchange_weak(seen, now)) continue;
          {
            const std::lock_guard lock(mutex);
            workers.insert(std::this_thread::get_id());
          }
          --at_once;
        },
        [&, loop = std::this_thread::get_id()] {
          REQUIRE(std::this_thread::get_id() == loop);
          ++completed;
        });
  }
  while (completed < 100) {
    REQUIRE(must(messenger->receive(kNever))->kind == Delivery::Kind::kWake);
    executor.run_completions();
  }
  REQUIRE(most <= 3);
  REQUIRE(workers.size() <= 3);
  REQUIRE(!workers.contains(std::this_thread::get_id()));
}

TEST_CASE("an executor that ends waits for the work under way") {
  const auto messenger = make_messenger();
  std::atomic<bool> started = false;
  std::atomic<bool> finished = false;
  {
    ThreadExecutor executor(*messenger, 1);
    executor.submit(
        [&] {
          started = true;
          started.notify_one();
          std::this_thread::yield();
          finished = true;
        },
        [] {});
    started.wait(false);
  }
  REQUIRE(finished);
}

TEST_CASE("a buffer owns its bytes once, and gives foreign memory back once") {
  static int released = 0;
  released = 0;
  std::byte bytes[4] = {};
  {
    Buffer first(bytes, 4, &released, [](void* owner) { ++*static_cast<int*>(owner); });
    Buffer second = std::move(first);
    REQUIRE(first.empty());
    REQUIRE(second.data() == bytes);
    second.shrink(2);
    REQUIRE(second.size() == 2);
    second.shrink(3);  // never grows
    REQUIRE(second.size() == 2);
    second = Buffer(10);
    REQUIRE(released == 1);
    Buffer copy = Buffer::copy_of(second.span());
    REQUIRE(copy.size() == 10);
    REQUIRE(copy.data() != second.data());
  }
  REQUIRE(released == 1);
  REQUIRE(Buffer(0).data() == nullptr);
}

TEST_CASE("clocks go forward and random numbers differ") {
  const SystemClock clock;
  const Time first = clock.now();
  REQUIRE(clock.now() >= first);
  REQUIRE(clock.wall_seconds() > 1'600'000'000);
  SystemEntropy entropy;
  REQUIRE(entropy.next() != entropy.next());
}
