// Daemons that a command starts, and stops again unless all goes well.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemons/daemons.h"
#include "daemons/ready.h"
#include "pif/client/client.h"

namespace pif::cli {

class Startup {
 public:
  // notify: where those that are started say that they serve; empty: nowhere.
  explicit Startup(std::string notify = {}) : notify_(std::move(notify)) {}
  Startup(const Startup&) = delete;
  Startup& operator=(const Startup&) = delete;
  ~Startup();

  // Starts those that nobody runs. The server, kTimeout: it holds its lock and does not answer; kBusy: it runs without
  // a lock. Such an LFS, or one that cannot be started, is noted in failed().
  [[nodiscard]] Status start_missing(const std::vector<Daemon>& daemons);
  // kUnavailable if the server has ended already: why. An LFS that has ended is noted in failed().
  [[nodiscard]] Status check_alive();
  // LFSs that were started and have ended, or are not up, each with why. The others go on without them.
  const std::map<std::string, Error>& failed() const { return failed_; }
  std::vector<Error> errors() const;  // of these
  void note_failed(const std::string& name, Error why);
  // Waits until all that were started have said so to `listener`, or failed. kUnavailable: the server has ended, or
  // all have; kTimeout: one is silent.
  [[nodiscard]] Status await_ready(const ReadyListener& listener, std::chrono::steady_clock::time_point deadline);
  // Waits for all that were started to end by themselves: kUnavailable if one failed, or has not ended at the deadline.
  [[nodiscard]] Status await_end(std::chrono::steady_clock::time_point deadline);
  std::size_t started() const { return children_.size(); }
  // 0: not started here.
  pid_t pid_of(const std::string& name) const;
  void keep() { kept_ = true; }

 private:
  struct Child {
    Daemon daemon;
    pid_t pid = 0;
    std::uint64_t log_begin = 0;  // bytes of the log when it was started
  };
  [[nodiscard]] Status start_one(const Daemon& daemon, std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] static Error ended(const Child& child, int status);
  void undo();

  std::string notify_;
  std::vector<Child> children_;
  std::map<std::string, Error> failed_;
  std::set<std::string> served_;  // daemons whose folders processes served at the start
  bool kept_ = false;
};

// LFSs by name, each with the process that was started just now, or 0.
using StartedLfss = std::map<std::string, pid_t>;
// Waits until the server takes these for up, but for those in startup.failed(). kStaleServer: a person has to decide,
// waiting does not help; kStaleNode: the same, of one of them, when the others are up or late; kUnavailable: the
// server, or all LFSs, were started here and have ended; kTimeout: none has come. Where only some are late, that is
// noted in startup.failed().
[[nodiscard]] Status await_up(const cluster::Cluster& cluster, Startup& startup, const StartedLfss& lfss);

// Connects as soon as the server listens.
[[nodiscard]] Result<Client> await_server(const cluster::Cluster& cluster, Startup& startup,
                                          std::chrono::steady_clock::time_point deadline);

// One error that says all of these, with the code of the first; none if there is none.
[[nodiscard]] Status all_of(const std::vector<Error>& errors);

}  // namespace pif::cli
