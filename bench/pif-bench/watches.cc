// Who holds how much memory, seen from outside.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "harness.h"

namespace pif::bench {
namespace {

// RssAnon + RssShmem; nothing if the process has gone.
std::optional<std::uint64_t> own_memory(int pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  std::optional<std::uint64_t> bytes;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:"))
      bytes = bytes.value_or(0) + (std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) << 10);
  return bytes;
}

std::vector<int> children_of(int pid) {
  std::vector<int> children;
  std::error_code gone;
  std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", pid), gone);
  for (; !gone && task != std::filesystem::directory_iterator(); task.increment(gone)) {
    std::ifstream in(task->path() / "children");
    for (int child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

std::uint64_t memory_of_tree(int pid) {
  std::uint64_t bytes = own_memory(pid).value_or(0);
  for (const int child : children_of(pid)) bytes += memory_of_tree(child);
  return bytes;
}

}  // namespace

MemoryWatch::MemoryWatch() : thread_([this] { sample(); }) {}

MemoryWatch::~MemoryWatch() {
  stop_ = true;
  thread_.join();
}

void MemoryWatch::watch(int pid, const std::string& name) {
  const std::lock_guard lock(mutex_);
  pids_[pid] = name;
}

std::map<std::string, std::uint64_t> MemoryWatch::peaks() const {
  const std::lock_guard lock(mutex_);
  return peaks_;
}

void MemoryWatch::sample() {
  while (!stop_) {
    {
      const std::lock_guard lock(mutex_);
      for (auto it = pids_.begin(); it != pids_.end();) {
        if (const auto bytes = own_memory(it->first)) {
          peaks_[it->second] = std::max(peaks_[it->second], *bytes);
          ++it;
        } else {
          it = pids_.erase(it);
        }
      }
    }
    ::poll(nullptr, 0, 10);
  }
}

SumWatch::SumWatch(std::vector<int> roots) : roots_(std::move(roots)), thread_([this] { sample(); }) {}

SumWatch::~SumWatch() {
  stop_ = true;
  thread_.join();
}

void SumWatch::sample() {
  while (!stop_) {
    std::uint64_t sum = 0;
    for (const int pid : roots_) sum += memory_of_tree(pid);
    for (const int child : children_of(getpid())) sum += memory_of_tree(child);
    peak_ = std::max<std::uint64_t>(peak_, sum);
    ::poll(nullptr, 0, 20);
  }
}

}  // namespace pif::bench
