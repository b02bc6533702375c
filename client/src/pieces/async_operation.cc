#include "pieces/async_operation.h"

#include "pif/base/assert.h"
#include "session/one_user.h"

namespace pif::client {

namespace {

constexpr std::uint64_t kParallelBytes = 256u << 10;  // less is done sooner than another thread has woken up

}  // namespace

AsyncOperation::AsyncOperation(Session& session, access::Grant& grant, bool is_foreground)
    : session_(session), grant_(grant), is_foreground_(is_foreground) {
  make_requests();
}

AsyncOperation::~AsyncOperation() { stop(); }

// A forked child has neither the pool's threads nor a use for what they do.
void AsyncOperation::stop() {
  if (!tasks_are_done() && !session_.user().is_in_child()) session_.pool().cancel(tasks_);
  tasks_.clear();
}

void AsyncOperation::make_requests() { requests_.emplace(session_.links(), grant_); }

bool AsyncOperation::tasks_are_done() const {
  for (const Pool::Task& task : tasks_) {
    if (!task.is_done()) return false;
  }
  return true;
}

void AsyncOperation::start_tasks(std::uint64_t bytes) {
  PIF_ASSERT(requests_.has_value() && !has_ended_, tasks_.size());
  static_cast<void>(requests_->step().has_value());  // under way meanwhile; an error stays for the next step
  if (is_foreground_ && (bytes < kParallelBytes || tasks_.size() == 1)) {
    for (Pool::Task& task : tasks_) Pool::run_here(task);
  } else {
    for (Pool::Task& task : tasks_) session_.pool().start(task);
  }
}

bool AsyncOperation::move_on(bool may_wait) {
  while (!has_ended_) {
    if (status_) status_ = requests_->step();
    if (!tasks_are_done()) return false;
    if (status_ && !requests_->idle()) return false;
    tasks_.clear();
    if (!status_ && !may_wait) return true;
    if (!status_ && may_go_on(status_.error())) {
      make_requests();
      status_ = {};
    }
    PIF_ASSERT(!status_ || (tasks_.empty() && requests_->idle()), tasks_.size());  // what next() may rely on
    auto more = status_ ? next() : Result<bool>(false);
    if (!more) {
      status_ = fail(std::move(more.error()));
      requests_->drop_all();
    } else if (!*more) {
      has_ended_ = true;
    }
  }
  return true;
}

Status AsyncOperation::run() {
  while (!move_on(true)) {
    if (!tasks_are_done()) {
      session_.pool().finish(tasks_);
      continue;
    }
    auto pumped = session_.pump(*requests_);
    if (!pumped && requests_->step()) return pumped;  // else it is the requests' own, which move_on() finds
  }
  PIF_ASSERT(has_ended_ && tasks_.empty(), tasks_.size());
  return status_;
}

}  // namespace pif::client
