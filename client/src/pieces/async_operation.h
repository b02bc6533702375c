// One started request. Messages are under way; work through descriptors runs on the session's pool. It is a small state
// machine: whoever looks at it, or waits for it, moves it on from step to step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "pif/access/grant.h"
#include "pif/access/requests.h"
#include "pif/client/session.h"
#include "session/pool.h"

namespace pif::client {

// Invariant: next() is called only while no message and no task of the step before is left. So tasks use what belongs
// to the operation, and descriptors; never what other calls of the file may change meanwhile.
class AsyncOperation {
 public:
  // is_foreground: it is waited for at once, so that what is too little for another thread is done on this one.
  AsyncOperation(Session& session, access::Grant& grant, bool is_foreground);
  // All that is under way is forgotten. Whoever has tasks calls stop() in its own destructor.
  virtual ~AsyncOperation();
  AsyncOperation(const AsyncOperation&) = delete;
  AsyncOperation& operator=(const AsyncOperation&) = delete;

  // As far as it can go without waiting. Whether run() would return at once, unless it finds who else to ask.
  bool move_on() { return move_on(false); }
  // To its end.
  [[nodiscard]] Status run();
  // The value that wait() returns.
  virtual std::uint64_t result() const = 0;

 protected:
  // Adds messages and tasks of the next step. False: there is none.
  [[nodiscard]] virtual Result<bool> next() = 0;
  // It failed: whether what it has to do next is worth trying instead. May wait.
  [[nodiscard]] virtual bool may_go_on(const Error& /*why*/) { return false; }
  // Work through descriptors. start_tasks(): `bytes` of all tasks of this step together.
  void add_task(std::function<void()> work) { tasks_.emplace_back(std::move(work)); }
  void start_tasks(std::uint64_t bytes);
  // Waits for what runs on the pool, which uses the caller's memory; the rest is not done.
  void stop();

  std::optional<access::Requests> requests_;  // always there; made anew where it goes on after an error

 private:
  bool move_on(bool may_wait);
  void make_requests();
  bool tasks_are_done() const;

  Session& session_;
  access::Grant& grant_;
  const bool is_foreground_;
  bool has_ended_ = false;
  Status status_;
  Pool::Tasks tasks_;
};

}  // namespace pif::client
