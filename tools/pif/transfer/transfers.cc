#include "transfer/transfers.h"

#include <utility>

namespace pif::cli {

TransferPool::~TransferPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status TransferPool::add(Work work) {
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [this] { return !ended_ || queue_.size() < threads_max_; });
  PIF_TRY(ended_);
  queue_.push_back(std::move(work));
  const bool start_one = idle_ < queue_.size() && threads_.size() < threads_max_;
  lock.unlock();
  if (start_one) threads_.emplace_back([this] { run(); });
  wanted_.notify_one();
  return {};
}

Status TransferPool::drain() {
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [this] { return queue_.empty() && busy_ == 0; });
  return ended_;
}

void TransferPool::run() {
  std::optional<Client> client;  // made for the first work
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wanted_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    ++busy_;
    taken_.notify_all();
    lock.unlock();
    Status outcome = perform(work, client);
    lock.lock();
    --busy_;
    take_outcome(std::move(outcome));
    taken_.notify_all();
  }
}

Status TransferPool::perform(const Work& work, std::optional<Client>& client) {
  if (!client) {
    auto made = program_.connect_one_of(threads_max_);
    if (!made && ends_all(made.error())) return fail(std::move(made.error()));
    if (!made) return fail(Code::kCancelled, made.error().text, made.error().node);  // the next one would fail as well
    client.emplace(std::move(*made));
  }
  return work(*client);
}

// With the lock.
void TransferPool::take_outcome(Status outcome) {
  if (outcome) return;
  if (!ends_all(outcome.error())) return failures_.add(outcome.error());
  queue_.clear();
  if (ended_) ended_ = std::move(outcome);
}

}  // namespace pif::cli
