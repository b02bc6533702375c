#include "bulk/blocks.h"
#include "pif/base/assert.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace pif::client {

Status do_blocks(Pool& pool, std::uint64_t count, const std::function<BlockWorker()>& make_worker,
                 const std::function<Status()>& report) {
  PIF_ASSERT(pool.threads() > 0, count);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stopped{false};
  std::mutex mutex;
  Status outcome;  // guarded by mutex
  struct Stop {    // when somebody leaves, no block is left, or one failed, or something was thrown
    std::atomic<bool>& stopped;
    ~Stop() { stopped = true; }
  };
  pool.run(pool.threads(), [&](std::size_t) {
    const Stop stop{stopped};
    const BlockWorker work = make_worker();
    while (!stopped) {
      const std::uint64_t block = next++;
      if (block >= count) return;
      Status status = work(block);
      if (status && std::this_thread::get_id() == caller) status = report();
      if (status) continue;
      const std::lock_guard lock(mutex);
      if (outcome) outcome = std::move(status);
      return;
    }
  });
  return outcome;
}

}  // namespace pif::client
