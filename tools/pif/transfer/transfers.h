// Transfers of many files at once: a few threads, each with a Client of its own. `put`, `get`, and whoever moves trees.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "command/failures.h"
#include "command/program.h"
#include "pif/client/client.h"

namespace pif::cli {

// How many files go into one piece of work: as many as share the daemons' transactions and syncs well, and no more than
// memory for them is bounded. Files larger than `alone` are pieces of work of their own.
struct BatchLimits {
  std::size_t files = 256;
  std::uint64_t bytes = 8u << 20;
  std::uint64_t alone = 1u << 20;
};
inline constexpr BatchLimits kBatch{};
// Up to this size the bytes of a file travel in messages (CreateOptions::is_small).
inline constexpr std::uint64_t kSmallFileBytes = 64u << 10;

class TransferPool {
 public:
  // One file, or a batch of them. It adds to the failures by itself; an error of which ends_all() says so ends the
  // pool, any other one is added to the failures. Runs on any of the threads.
  using Work = std::function<Status(Client&)>;

  static constexpr unsigned kThreads = 4;

  // Both outlive the pool.
  TransferPool(const Program& program, Failures& failures, unsigned threads = kThreads)
      : program_(program), failures_(failures), threads_max_(threads) {}
  ~TransferPool();  // drops what has not begun, and waits for the rest
  TransferPool(const TransferPool&) = delete;
  TransferPool& operator=(const TransferPool&) = delete;

  // Waits while too much waits already. An error: the pool has ended by it, and nothing is begun any more.
  [[nodiscard]] Status add(Work work);
  // Until nothing waits and nothing is under way. Then more may be added.
  [[nodiscard]] Status drain();

 private:
  void run();
  Status perform(const Work& work, std::optional<Client>& client);
  void take_outcome(Status outcome);

  const Program& program_;
  Failures& failures_;
  const unsigned threads_max_;
  std::vector<std::thread> threads_;  // of the thread that adds
  std::mutex mutex_;                  // guards all below
  std::condition_variable wanted_;    // work, or the end
  std::condition_variable taken_;     // there is room, or nothing is left
  std::deque<Work> queue_;
  unsigned idle_ = 0;
  unsigned busy_ = 0;
  bool stopping_ = false;
  Status ended_;
};

}  // namespace pif::cli
