// Whose turn it is, and what it costs.
#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "pif/net/fair_queue.h"

namespace pif::net {
namespace {

constexpr PeerId kA = 1, kB = 2, kC = 3;

// The peers in the order of their turns, as letters; each request costs `cost(peer)` beside the least.
template <typename Cost>
std::string served(FairQueue<int>& queue, std::size_t count, Cost cost) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto taken = queue.pop();
    REQUIRE(taken.has_value());
    out += static_cast<char>('A' + taken->peer - 1);
    queue.charge(taken->peer, cost(taken->peer));
  }
  return out;
}
std::string served(FairQueue<int>& queue, std::size_t count) {
  return served(queue, count, [](PeerId) { return 0u; });
}

void push(FairQueue<int>& queue, PeerId peer, int count) {
  for (int i = 0; i < count; ++i) queue.push(peer, i);
}

TEST_CASE("peers are served in turn, however much one of them has asked for") {
  FairQueue<int> queue;
  push(queue, kA, 5);
  push(queue, kB, 2);
  push(queue, kC, 2);
  CHECK(served(queue, 9) == "ABCABCAAA");
  CHECK(!queue.pop());
}

TEST_CASE("what one peer asks for keeps its order") {
  FairQueue<int> queue;
  push(queue, kA, 20);
  push(queue, kB, 20);
  int next_a = 0, next_b = 0;
  while (const auto taken = queue.pop()) {
    queue.charge(taken->peer, 100'000);
    CHECK(taken->item == (taken->peer == kA ? next_a++ : next_b++));
  }
  CHECK((next_a == 20 && next_b == 20));
}

TEST_CASE("who asks for ten times as much by request is served a tenth as often: bytes are equal, not requests") {
  FairQueue<int> queue;
  push(queue, kA, 100);
  push(queue, kB, 100);
  const std::string order = served(queue, 110, [](PeerId peer) { return peer == kA ? 9 * kTurnBytes : 0; });
  CHECK(std::count(order.begin(), order.end(), 'A') == 10);
  CHECK(std::count(order.begin(), order.end(), 'B') == 100);
  CHECK(order.find("AA") == std::string::npos);
}

TEST_CASE("a peer that asks for one thing at a time pays for what it had before it gets more") {
  FairQueue<int> queue;
  queue.push(kA, 0);
  CHECK(!queue.owes(kB));
  CHECK(queue.pop()->peer == kA);
  queue.charge(kA, 3 * kTurnBytes);
  push(queue, kB, 10);
  queue.push(kA, 1);
  CHECK(queue.owes(kA));
  CHECK(served(queue, 6) == "BBBBAB");
}

TEST_CASE("who owes does not wait when nobody else does, and a queue that has been empty forgives") {
  FairQueue<int> queue;
  push(queue, kA, 2);
  CHECK(queue.pop()->item == 0);
  queue.charge(kA, 100 * kTurnBytes);
  CHECK(queue.pop()->item == 1);
  queue.charge(kA, 100 * kTurnBytes);
  CHECK(queue.owes(kA));
  queue.forgive();
  CHECK(!queue.owes(kA));
  push(queue, kA, 1);
  push(queue, kB, 1);
  CHECK(served(queue, 2) == "AB");
}

TEST_CASE("nobody saves up turns while he wants nothing") {
  FairQueue<int> queue;
  queue.push(kA, 0);
  push(queue, kB, 50);
  CHECK(served(queue, 31) == "A" + std::string(30, 'B'));
  push(queue, kA, 10);
  const std::string order = served(queue, 8);
  CHECK(order.find("AA") == std::string::npos);
}

TEST_CASE("a debt has a bound: nobody is shut out for ever") {
  FairQueue<int> queue;
  queue.push(kA, 0);
  queue.push(kA, 1);
  CHECK(queue.pop()->peer == kA);
  queue.charge(kA, UINT64_MAX);
  queue.charge(kA, UINT64_MAX);
  push(queue, kB, 1000);
  const std::string order = served(queue, 1000);
  CHECK(order.find('A') != std::string::npos);
}

TEST_CASE("a peer that is gone leaves nothing, and gets back what waited in its order") {
  FairQueue<int> queue;
  push(queue, kA, 3);
  queue.push(kB, 7, 500);
  queue.push(kC, 8, 100);
  CHECK(queue.bytes() == 600);
  CHECK(queue.peer_bytes(kB) == 500);
  CHECK(queue.drop(kA) == std::vector<int>{0, 1, 2});
  CHECK(queue.drop(kA).empty());
  queue.drop(kB);
  CHECK(queue.size() == 1);
  CHECK(queue.bytes() == 100);
  queue.charge(kA, 5);  // of what was answered later
  CHECK(!queue.owes(kA));
  CHECK(queue.pop()->item == 8);
  CHECK((queue.empty() && queue.bytes() == 0));
}

TEST_CASE("who waits, with how much") {
  FairQueue<int> queue;
  queue.push(kA, 0, 10);
  queue.push(kA, 0, 20);
  queue.push(kB, 0);
  (void)queue.pop();
  const auto waiting = queue.waiting();
  REQUIRE(waiting.size() == 2);
  for (const auto& one : waiting) {
    CHECK(one.count == 1);
    CHECK(one.bytes == (one.peer == kA ? 20 : 0));
  }
}

}  // namespace
}  // namespace pif::net
