// Daemons that a command starts, and stops again unless all goes well.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cluster/daemons.h"
#include "pif/client/client.h"

namespace pif::cli {

class Startup {
 public:
  Startup() = default;
  Startup(const Startup&) = delete;
  Startup& operator=(const Startup&) = delete;
  ~Startup();

  // Starts those that nobody runs.
  [[nodiscard]] Status start_missing(const std::vector<Daemon>& daemons);
  // kUnavailable if one has ended already: which, and why.
  [[nodiscard]] Status check_alive();
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
  };
  [[nodiscard]] static Status ended(const Child& child);
  void undo();

  std::vector<Child> children_;
  bool kept_ = false;
};

// Connects as soon as the server listens.
[[nodiscard]] Result<Client> await_server(const cluster::Cluster& cluster, Startup& startup,
                                          std::chrono::steady_clock::time_point deadline);

}  // namespace pif::cli
