#include "galley/crew.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

extern char** environ;

namespace pif::bench {
namespace {

// Of a pipe whose ends no other process of the crew keeps open.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) die("cannot make a pipe");
  }
};

}  // namespace

Crew::Process Crew::start(const std::string& self, const Task& task) {
  const Pipe to, from;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.ends[0], 0);
  posix_spawn_file_actions_adddup2(&actions, from.ends[1], 1);
  std::string role = "--galley", text = task.to_text();
  char* argv[] = {const_cast<char*>(self.c_str()), role.data(), text.data(), nullptr};
  Process process{0, to.ends[1], from.ends[0]};
  const int error = posix_spawn(&process.pid, self.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to.ends[0]);
  close(from.ends[1]);
  if (error != 0) die("cannot start a process of the benchmark");
  return process;
}

std::string Crew::line_of(const Process& process) {
  std::string line;
  char c = 0;
  while (read(process.out, &c, 1) == 1 && c != '\n') line += c;
  if (c != '\n') die("a process of the benchmark failed");
  return line;
}

Crew::Crew(const Context& context, const std::vector<Task>& tasks) {
  for (const Task& task : tasks) processes_.push_back(start(context.self, task));
  for (const Process& process : processes_) line_of(process);
}

Crew::~Crew() {
  for (const Process& process : processes_) {
    close(process.in);
    close(process.out);
    if (!finished_) kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }
}

void Crew::go() {
  for (const Process& process : processes_)
    if (write(process.in, "\n", 1) != 1) die("a process of the benchmark has gone");
}

std::vector<Turn> Crew::finish() {
  std::vector<Turn> turns;
  for (const Process& process : processes_) {
    Turn turn;
    unsigned long long records = 0;
    if (std::sscanf(line_of(process).c_str(), "%lf %lf %llu", &turn.begin, &turn.end, &records) != 3)
      die("a process of the benchmark said what nobody understands");
    turn.records = records;
    turns.push_back(turn);
  }
  finished_ = true;
  return turns;
}

std::vector<Turn> run_crew(const Context& context, const std::vector<Task>& tasks) {
  Crew crew(context, tasks);
  crew.go();
  return crew.finish();
}

double rate_of(const std::vector<Task>& tasks, const std::vector<Turn>& turns) {
  double begin = turns.at(0).begin, end = turns.at(0).end, bytes = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    begin = std::min(begin, turns[i].begin);
    end = std::max(end, turns[i].end);
    bytes += static_cast<double>(turns[i].records * tasks.at(i).record);
  }
  return bytes / (end - begin);
}

void await_go() {
  char c = 0;
  if (write(STDOUT_FILENO, "\n", 1) != 1 || read(STDIN_FILENO, &c, 1) != 1) die("nobody waits for this process");
}

void report(const Turn& turn) {
  const std::string line = fmt::format("{:.9f} {:.9f} {}\n", turn.begin, turn.end, turn.records);
  if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    die("nobody waits for this process");
}

}  // namespace pif::bench
