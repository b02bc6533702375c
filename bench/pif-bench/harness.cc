#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pif/client/client.h"

extern char** environ;

namespace pif::bench {

void Report::add(Result result) {
  fmt::print("{:<44} {:>14} {:>14} {:>9.3g} {} {:<8.3g} {}  {}\n", result.name, result.ours, result.other, result.value,
             result.at_least ? ">=" : "<=", result.goal, result.reached() ? "ok   " : "SHORT", result.spread);
  std::fflush(stdout);
  results_.push_back(std::move(result));
}

void Report::note(const std::string& text) {
  fmt::print("# {}\n", text);
  std::fflush(stdout);
  notes_.push_back(text);
}

bool Report::all_reached() const {
  return std::all_of(results_.begin(), results_.end(), [](const Result& r) { return r.reached(); });
}

std::string Report::json() const {
  nlohmann::json out = {{"results", nlohmann::json::array()}, {"notes", notes_}};
  for (const Result& r : results_)
    out["results"].push_back({{"name", r.name},
                              {"ours", r.ours},
                              {"other", r.other},
                              {"value", r.value},
                              {"goal", r.goal},
                              {"at_least", r.at_least},
                              {"reached", r.reached()},
                              {"spread", r.spread}});
  return out.dump(2);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void die(const std::string& text) { throw Died(text); }

namespace {

std::atomic<int> interrupted_by{0};  // a signal handler can reach nothing else

void check_interrupt() {
  if (interrupted_by != 0) die("interrupted");
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = [](int number) { interrupted_by = number; };
    sigaction(signal, &action, nullptr);
  }
}

void die_of_interrupt() {
  const int number = interrupted_by;
  if (number == 0) return;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

Ran run(const std::vector<std::string>& command, MemoryWatch* watch, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const double start = now();
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) die(fmt::format("cannot run {}: {}", command[0], std::strerror(error)));
  if (watch != nullptr) {
    const auto slash = command[0].rfind('/');
    watch->watch(pid, command[0].substr(slash == std::string::npos ? 0 : slash + 1));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {now() - start, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

double must_run(const std::vector<std::string>& command, MemoryWatch* watch) {
  const std::string log = fmt::format("/tmp/pif-bench-{}.log", getpid());
  const Ran ran = run(command, watch, log);
  if (interrupted_by != 0) unlink(log.c_str());
  check_interrupt();
  if (ran.status != 0) {
    std::ifstream in(log);
    std::stringstream text;
    text << in.rdbuf();
    unlink(log.c_str());
    die(fmt::format("{} exited with {}: {}", fmt::join(command, " "), ran.status, text.str()));
  }
  unlink(log.c_str());
  return ran.seconds;
}

void touch_memory(const Context& context) {
  if (!context.options.smoke) run({context.self, "--touch"});
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Pair pair(unsigned repeats, const std::function<void()>& prepare, const std::function<double()>& ours,
          const std::function<double()>& other) {
  std::vector<double> mine, theirs, ratios;
  for (unsigned i = 0; i <= repeats; ++i) {
    check_interrupt();
    prepare();
    const double a = ours();
    prepare();
    const double b = other();
    if (i == 0) continue;  // warm-up
    mine.push_back(a);
    theirs.push_back(b);
    ratios.push_back(b / a);
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  return {median(mine), median(theirs), median(ratios), *low, *high};
}

System::System(const Options& options, std::string name, unsigned lfss, std::vector<std::string> up_options,
               MemoryWatch& watch, const std::string& under)
    : options_(options), folder_((under.empty() ? options.folder : under) + "/" + name) {
  std::vector<std::string> up = {options.bin + "/pif", "up", "-q", "-n", std::to_string(lfss)};
  up.insert(up.end(), up_options.begin(), up_options.end());
  up.push_back(folder_);
  seconds_to_start_ = must_run(up);
  auto client = Client::connect({.where = folder_});
  if (!client) die("cannot connect to " + folder_ + ": " + client.error().to_string());
  auto status = client->status();
  if (!status) die("no status of " + folder_ + ": " + status.error().to_string());
  for (const Node& node : status->nodes) {
    daemons_.push_back(static_cast<int>(node.pid));
    watch.watch(daemons_.back(), "pif-lfs");
  }
  std::ifstream lock(folder_ + "/server/lock");
  if (int pid = 0; lock >> pid) {
    daemons_.push_back(pid);
    watch.watch(pid, "pif-server");
  }
}

System::~System() {
  run({options_.bin + "/pif", "down", "-q", folder_});
  run({"rm", "-rf", folder_});
}

std::vector<std::string> System::command(std::vector<std::string> args, const std::vector<std::string>& options) const {
  std::vector<std::string> out = {options_.bin + "/" + args[0]};
  if (out[0].ends_with("/pif")) {
    out.push_back(args[1]);
    args.erase(args.begin());
  }
  out.insert(out.end(), {"--pif", folder_, "-q"});
  out.insert(out.end(), options.begin(), options.end());
  out.insert(out.end(), args.begin() + 1, args.end());
  return out;
}

void System::settle() const {
  auto client = Client::connect({.where = folder_});
  if (!client) die(client.error().to_string());
  for (const double end = now() + 30; now() < end;) {
    auto status = client->status();
    if (!status) die(status.error().to_string());
    if (status->doomed == 0) break;
    ::poll(nullptr, 0, 5);
  }
  ::sync();
}

// Xorshift, seeded by the size.
void make_source(const std::string& path, std::uint64_t bytes) {
  std::ofstream out(path, std::ios::binary);
  std::vector<std::uint64_t> block(128 << 10);
  std::uint64_t x = bytes | 1;
  for (std::uint64_t done = 0; done < bytes;) {
    for (std::uint64_t& word : block) word = (x ^= x << 13, x ^= x >> 7, x ^= x << 17);
    const auto n = std::min<std::uint64_t>(bytes - done, block.size() * 8);
    out.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(n));
    done += n;
  }
  if (!out.flush()) die("cannot write " + path);
}

bool same_bytes(const std::string& a, const std::string& b) { return run({"cmp", "-s", a, b}).status == 0; }

std::string last_line(const std::string& path) {
  std::ifstream in(path);
  std::string last;
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) last = line;
  return last;
}

std::string seconds_text(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string rate_text(double bytes_per_second) { return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9); }

}  // namespace pif::bench
