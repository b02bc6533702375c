#include "sim/executor.h"

#include <algorithm>

#include "sim/links.h"

namespace pif::sim {

void SimExecutor::submit(std::function<void()> work, std::function<void()> done) {
  const auto longest = static_cast<std::uint64_t>(world_.options().work_max.count());
  if (longest == 0) {
    work();
    return done();
  }
  if (actor_.killed) return;
  const Time due = world_.now() + Duration(static_cast<std::int64_t>(world_.pick(longest)));
  works_.push_back({due, std::move(work), std::move(done)});
}

Time SimExecutor::next() const {
  Time out = kNever;
  for (const auto& work : works_) out = std::min(out, work.due);
  return out;
}

void SimExecutor::finish_one() {
  const auto first =
      std::min_element(works_.begin(), works_.end(), [](const Work& a, const Work& b) { return a.due < b.due; });
  Work work = std::move(*first);
  works_.erase(first);
  work.work();
  if (actor_.killed) return;
  done_.push_back(std::move(work.done));
  actor_.woken.store(true);
}

void SimExecutor::run_done() {
  while (!done_.empty()) {
    const auto done = std::move(done_.front());
    done_.pop_front();
    done();
  }
}

void SimExecutor::drop_all() {
  const auto works = std::exchange(works_, {});
  const auto done = std::exchange(done_, {});
}

}  // namespace pif::sim
