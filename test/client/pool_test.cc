// The threads that share the work of a transfer.
#include "../../client/src/session/pool.h"

#include <stdexcept>
#include <thread>

#include <catch2/catch.hpp>

using namespace pif;

TEST_CASE("what is thrown on the caller's thread of a pool goes on when the other threads have returned") {
  client::Pool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  for (int again = 0; again < 10; ++again) {
    std::atomic<int> inside = 0;
    std::atomic<bool> is_leaving = false;
    const auto work = [&](std::size_t) {
      if (std::this_thread::get_id() == caller) {
        while (inside == 0) std::this_thread::yield();
        is_leaving = true;
        throw std::runtime_error("broken");
      }
      ++inside;
      while (!is_leaving) std::this_thread::yield();
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      --inside;
    };
    CHECK_THROWS_WITH(pool.run(1000, work), "broken");
    CHECK(inside == 0);
  }
  std::atomic<int> done = 0;
  pool.run(100, [&](std::size_t) { ++done; });
  CHECK(done == 100);
}
