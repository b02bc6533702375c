// One new file that several processes write in interleaved pieces of 64 bytes, durable, and read; against ROMIO, the
// MPI-IO of MPICH, on the same disk.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/crew.h"
#include "galley/need.h"
#include "galley/task.h"
#include "harness.h"

namespace pif::bench {
namespace {

constexpr std::uint64_t kSeed = 4;  // romio.c has the same
constexpr std::uint64_t kBytesMax = 512u << 20;
constexpr const char* kModes[] = {"independent", "large", "collective"};  // of romio.c

struct Rates {
  double write = 0, read = 0;
};

class Shared {
 public:
  Shared(Context& context, const System& system)
      : c_(context),
        system_(system),
        bytes_(std::min(context.options.bytes, kBytesMax)),
        has_romio_(::access(PIF_ROMIO, X_OK) == 0),
        client_(connect_to(system.folder())) {
    if (!has_romio_) c_.report.note("one shared file against ROMIO: not measured: no MPICH when this was built");
  }

  void compare(unsigned processes, bool by_message, double write_goal, double read_goal, double collective_goal) {
    std::vector<Rates> ours, theirs, collectives;
    for (unsigned round = 0; round < std::min(3u, c_.options.repeats); ++round) {
      system_.settle();
      ours.push_back(ours_with(processes, by_message));
      theirs.emplace_back();
      for (const char* mode : kModes) {
        if (!has_romio_) continue;
        const Rates rates = romio_with(processes, mode);
        theirs.back().write = std::max(theirs.back().write, rates.write);
        theirs.back().read = std::max(theirs.back().read, rates.read);
        if (std::string(mode) == "collective") collectives.push_back(rates);
      }
    }
    const std::string name = fmt::format("by {}{}", processes, by_message ? ", messages" : "");
    if (write_goal > 0) add(name + " : ROMIO", ours, theirs, write_goal, read_goal);
    if (collective_goal > 0) add(name + " : ROMIO collective", ours, collectives, collective_goal, collective_goal);
  }

 private:
  void add(const std::string& name, const std::vector<Rates>& ours, const std::vector<Rates>& theirs, double write_goal,
           double read_goal) {
    for (const auto& [part, what, goal] : {std::tuple{&Rates::write, "write shared ", write_goal},
                                           std::tuple{&Rates::read, "read shared ", read_goal}}) {
      std::vector<double> a, b, ratios;
      for (std::size_t i = 0; i < ours.size(); ++i) {
        a.push_back(ours[i].*part);
        b.push_back(has_romio_ ? theirs.at(i).*part : 0);
        ratios.push_back(has_romio_ ? a.back() / b.back() : 0);
      }
      c_.report.add({what + name, rate_text(median(a)), has_romio_ ? rate_text(median(b)) : "not measured",
                     median(ratios), has_romio_ ? goal : 0, true, ""});
    }
  }

  std::vector<Task> tasks_of(unsigned processes, bool by_message, Work work) const {
    Task task;
    task.folder = system_.folder();
    task.path = "/shared";
    task.work = work;
    task.by_message = by_message;
    task.route = by_message ? "ipc" : "auto";
    task.count = processes;
    task.bytes = bytes_;
    task.seed = kSeed;
    std::vector<Task> tasks(processes, task);
    for (unsigned i = 0; i < processes; ++i) tasks[i].index = i;
    return tasks;
  }

  Rates ours_with(unsigned processes, bool by_message) {
    Rates out{write_ours(tasks_of(processes, by_message, Work::kWrite)), 0};
    const std::vector<Task> readers = tasks_of(processes, by_message, Work::kRead);
    out.read = rate_of(readers, run_crew(c_, readers));
    need(client_.remove("/shared"));
    return out;
  }

  // Until it is durable and committed.
  double write_ours(std::vector<Task> tasks) {
    File file = need(client_.create("/shared"));
    const std::string token = to_hex(need(file.share()));
    for (Task& task : tasks) task.token = token;
    const std::vector<Turn> turns = run_crew(c_, tasks);
    double begin = turns[0].begin, end = turns[0].end;
    for (const Turn& turn : turns) begin = std::min(begin, turn.begin), end = std::max(end, turn.end);
    const double start = now();
    need(file.commit());
    const double commit = now() - start;
    File whole = need(client_.open("/shared"));
    check_written(whole, tasks, turns, {});
    return static_cast<double>(bytes_) / (end - begin + commit);
  }

  Rates romio_with(unsigned processes, const std::string& mode) {
    const std::string path = c_.options.folder + "/romio", log = path + ".log";
    unlink(path.c_str());
    Rates out{romio_run(processes, mode, "write", path, log), romio_run(processes, mode, "read", path, log)};
    unlink(path.c_str());
    return out;
  }

  double romio_run(unsigned processes, const std::string& mode, const char* way, const std::string& path,
                   const std::string& log) {
    unlink(log.c_str());
    const Ran ran =
        run({PIF_MPIEXEC, "-n", std::to_string(processes), PIF_ROMIO, path, way, mode, std::to_string(bytes_)}, nullptr,
            log);
    double seconds = 0;
    if (ran.status != 0 || std::sscanf(last_line(log).c_str(), "%lf", &seconds) != 1 || seconds <= 0)
      die("pif-romio: " + last_line(log));
    unlink(log.c_str());
    return static_cast<double>(bytes_) / seconds;
  }

  Context& c_;
  const System& system_;
  const std::uint64_t bytes_;
  const bool has_romio_;
  Client client_;
};

}  // namespace

void bench_galley_shared(Context& c) {
  const System system(c.options, "galley", 4, {}, c.watch);
  touch_memory(c);
  Shared shared(c, system);
  shared.compare(2, false, 0.9, 1.0, 0);
  shared.compare(4, false, 2, 1.5, 5);
  shared.compare(2, true, 0, 0, 1);
}

}  // namespace pif::bench
