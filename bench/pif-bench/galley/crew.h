// Processes of this program that begin a task at the same moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "galley/task.h"
#include "harness.h"

namespace pif::bench {

// What one process did.
struct Turn {
  double begin = 0, end = 0;  // now(), the same clock in all processes
  std::uint64_t records = 0;  // that it moved
};

class Crew {
 public:
  // Starts a process for each task; returns when all are ready. Ends the program if one fails.
  Crew(const Context& context, const std::vector<Task>& tasks);
  ~Crew();  // waits for those that have ended their task, and kills the others
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  // They begin. Once.
  void go();
  // Waits for all; ends the program if one failed.
  std::vector<Turn> finish();

 private:
  struct Process {
    int pid = 0;
    int in = -1;   // they are told here
    int out = -1;  // they tell here
  };
  static Process start(const std::string& self, const Task& task);
  static std::string line_of(const Process& process);
  std::vector<Process> processes_;
  bool finished_ = false;
};

// Runs all, and says what each did.
std::vector<Turn> run_crew(const Context& context, const std::vector<Task>& tasks);
// Bytes per second of all together, from the first that began to the last that ended.
double rate_of(const std::vector<Task>& tasks, const std::vector<Turn>& turns);

// In such a process: says that it is ready, and waits until it is told to begin.
void await_go();
// Says what it did.
void report(const Turn& turn);

}  // namespace pif::bench
