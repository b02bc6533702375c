#include <chrono>
#include <thread>

#include "pif/cluster/cluster.h"

namespace pif::cluster {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(300);
constexpr auto kPoll = std::chrono::milliseconds(5);

}  // namespace

Status lock_patiently(const std::function<Status()>& lock) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    Status locked = lock();
    if (locked || locked.error().code != Code::kBusy || std::chrono::steady_clock::now() >= deadline) return locked;
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace pif::cluster
