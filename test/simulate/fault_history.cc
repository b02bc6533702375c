#include "simulate/fault_history.h"

#include <fmt/format.h>

#include "simulate/files_history.h"

namespace pif::simulate {
namespace {

using namespace std::chrono_literals;
using Where = FaultSpec::Where;

constexpr std::size_t kA = 0, kB = 1, kC = 2, kD = 3;  // paths
constexpr Duration kPatienceMax = 90s;                 // for one operation: some deadlines, one after another

Plan quiet_plan() {
  Plan plan;
  plan.seed = 7;
  plan.lfss = 2;
  plan.clients = 1;
  plan.log_bytes = 20u << 10;  // so that it is emptied on the way
  plan.world.delay_max = 100us;
  return plan;
}

class FaultHistory final : public FilesHistory {
 public:
  FaultHistory(const FaultSpec& wanted, const std::function<void(const std::string&)>& tell)
      : FilesHistory(quiet_plan(), tell), spec_(wanted) {}

  FaultOutcome judge() {
    FaultOutcome out;
    out.outcome = run();
    out.happened = happened_;
    out.failed_call = failed_call_;
    out.errors = shared_.errors;
    if (!cluster_.last_words().empty()) out.errors.push_back(cluster_.last_words());
    return out;
  }

 private:
  sim::Faults& faults() {
    const bool server = spec_.where == Where::kServer || spec_.where == Where::kServerStart;
    return server ? cluster_.server_faults() : cluster_.faults(0);
  }
  void first(sim::Actor& self) override;
  void work(sim::Actor& self, unsigned index) override;
  // One operation; none may take for ever.
  template <typename Operation>
  void timed(sim::Actor& self, const char* what, const Operation& operation);
  void restart(sim::Actor& self);
  void read_again(Workload& client);

  const FaultSpec spec_;
  bool happened_ = false;
  std::string failed_call_;
};

void FaultHistory::first(sim::Actor& self) {
  Workload client(shared_, self, "first", 1);
  if (!is_served(client)) return;
  client.put_as(kA, Format::fixed(1500), 7);
  client.put_as(kB, Format::variable(), 9);
  client.put_as(kC, Format::fixed(100), 5);
}

template <typename Operation>
void FaultHistory::timed(sim::Actor& self, const char* what, const Operation& operation) {
  const Time begin = self.clock().now();
  operation();
  if (self.clock().now() - begin > kPatienceMax) accuse(fmt::format("{} takes for ever", what));
}

// The daemon dies with entries in its log, and recovers while its calls fail.
void FaultHistory::restart(sim::Actor& self) {
  if (spec_.where == Where::kServerStart) cluster_.kill_server();
  if (spec_.where == Where::kLfsStart) cluster_.kill_lfs(0);
  faults().fail_at(spec_.call, spec_.fault, spec_.sticky);
  if (spec_.where == Where::kServerStart) cluster_.restart_server();
  if (spec_.where == Where::kLfsStart) cluster_.restart_lfs(0);
  self.pause(3s);
}

void FaultHistory::work(sim::Actor& self, unsigned) {
  Workload client(shared_, self, "client", 2);
  if (!client.connect()) return;
  const bool starts = spec_.where == Where::kLfsStart || spec_.where == Where::kServerStart;
  if (starts) client.overwrite(kA);
  if (starts) client.put_as(kD, Format::fixed(16), 3);
  if (starts) restart(self);
  if (!starts) faults().fail_at(spec_.call, spec_.fault, spec_.sticky);
  shared_.may_seem_corrupt = spec_.fault == sim::Fault::kShort;
  timed(self, "overwrite", [&] { client.overwrite(kA); });
  timed(self, "overwrite of variable records", [&] { client.overwrite(kB); });
  timed(self, "append", [&] { client.append(kC); });
  timed(self, "append to variable records", [&] { client.append(kB); });
  timed(self, "overwrite", [&] { client.overwrite(kA); });
  timed(self, "put", [&] { client.put_as(kD, Format::fixed(16), 8); });
  timed(self, "read", [&] { client.read(kA, true); });
  timed(self, "rename over", [&] { client.rename(kC, kD, false); });
  timed(self, "copy", [&] { client.copy(kA); });
  timed(self, "remove", [&] { client.remove(kB); });
  self.pause(1s);
  happened_ = faults().has_failed();
  failed_call_ = faults().failed_call();
  faults().stop_failing();
  shared_.may_seem_corrupt = false;
  if (cluster_.server_runs() && cluster_.lfs_runs(0)) read_again(client);
}

// The disk works again, but nobody has started anything again: what is not served says why.
void FaultHistory::read_again(Workload& client) {
  for (const std::size_t path : {kA, kB, kC, kD}) {
    if (client.read(path, true) || client.last_error().code == Code::kNotFound) continue;
    if (client.last_error().text.find("until the LFS is started again") == std::string::npos)
      accuse("with a disk that works again: " + client.last_error().to_string());
  }
}

}  // namespace

std::string FaultSpec::to_string() const {
  constexpr const char* kPlaces[] = {"LFS", "server", "LFS's start", "server's start"};
  constexpr const char* kFaults[] = {"EIO", "ENOSPC", "short"};
  return fmt::format("{}: {} at call {}{}", kPlaces[static_cast<std::size_t>(where)],
                     kFaults[static_cast<std::size_t>(fault)], call, sticky ? " and all after it" : "");
}

FaultOutcome run_fault_history(const FaultSpec& wanted, const std::function<void(const std::string&)>& tell) {
  FaultHistory history(wanted, tell);
  return history.judge();
}

}  // namespace pif::simulate
