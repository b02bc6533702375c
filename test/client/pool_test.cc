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

TEST_CASE("tasks of a pool run while their owner does other things, and beside the work of a transfer") {
  for (const unsigned threads : {1u, 2u, 4u}) {
    client::Pool pool(threads);
    std::atomic<int> done = 0;
    client::Pool::Tasks tasks;
    for (int i = 0; i < 100; ++i) tasks.emplace_back([&done] { ++done; });
    for (auto& task : tasks) pool.start(task);
    std::atomic<int> parts = 0;
    pool.run(50, [&](std::size_t) { ++parts; });
    CHECK(parts == 50);
    pool.finish(tasks);
    CHECK(done == 100);
    for (const auto& task : tasks) CHECK(task.is_done());
  }
}

TEST_CASE("a pool with a thread of its own runs a task that nobody waits for") {
  client::Pool pool(2);
  client::Pool::Tasks tasks;
  tasks.emplace_back([] {});
  pool.start(tasks.front());
  while (!tasks.front().is_done()) std::this_thread::yield();
}

TEST_CASE("a task that no thread has begun can be run by its owner, once") {
  client::Pool pool(2);
  std::atomic<bool> may_end = false;
  std::atomic<int> begun = 0;
  client::Pool::Tasks tasks;
  tasks.emplace_back([&] {
    ++begun;
    while (!may_end) std::this_thread::yield();
  });
  std::thread::id ran_on;
  tasks.emplace_back([&] { ran_on = std::this_thread::get_id(); });
  CHECK_FALSE(pool.run_if_queued(tasks[1]));  // it is not started
  pool.start(tasks[0]);
  while (begun == 0) std::this_thread::yield();
  pool.start(tasks[1]);
  CHECK_FALSE(pool.run_if_queued(tasks[0]));  // it runs
  CHECK(pool.run_if_queued(tasks[1]));
  CHECK(ran_on == std::this_thread::get_id());
  CHECK_FALSE(pool.run_if_queued(tasks[1]));  // it is done
  may_end = true;
  pool.finish(tasks);
}

TEST_CASE("tasks that are cancelled are not begun any more, and what runs has ended") {
  client::Pool pool(2);
  std::atomic<bool> is_inside = false, may_end = false, has_ended = false;
  std::atomic<int> begun = 0;
  client::Pool::Tasks tasks;
  tasks.emplace_back([&] {
    is_inside = true;
    while (!may_end) std::this_thread::yield();
    has_ended = true;
  });
  for (int i = 0; i < 10; ++i) tasks.emplace_back([&] { ++begun; });
  for (auto& task : tasks) pool.start(task);
  while (!is_inside) std::this_thread::yield();
  std::thread lets_end([&] {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    may_end = true;
  });
  pool.cancel(tasks);
  CHECK(has_ended);
  CHECK(begun == 0);
  lets_end.join();
}

TEST_CASE("what a task throws on the thread that waits for it goes on from there") {
  client::Pool pool(1);
  client::Pool::Tasks tasks;
  tasks.emplace_back([] { throw std::runtime_error("broken"); });
  CHECK_THROWS_WITH(pool.start(tasks.front()), "broken");
  pool.cancel(tasks);
  CHECK(tasks.front().is_done() == false);
}
