// What every group of benchmarks uses: processes timed as a whole, pairs of ours against a comparison in turn, the
// memory of everybody watched, and one table of results.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pif::bench {

struct Options {
  std::string folder;  // where everything is made (and removed); on the file system to be measured
  std::string bin;     // folder of the project's programs
  std::uint64_t bytes = 1u << 30;
  unsigned repeats = 5;
  std::uint64_t records = 10'000'000;  // of 100 bytes
  std::uint64_t lines = 20'000'000;    // log lines; other lines are sized by their number
  std::uint64_t names = 20'000;        // files made per metadata run
  std::uint64_t sparse_bytes = 20ull << 30;
  std::uint64_t large_sort_bytes = 10'000'000'000;  // sorted with less memory than that:
  std::uint64_t sort_memory = 1ull << 30;
  std::uint64_t large_lines_bytes = 4'000'000'000;  // log lines, sorted with much less memory than that
  bool smoke = false;
  bool cold_memory = false;    // sort: what is measured finds the machine's memory as it is
  std::string route = "auto";  // of galley/messages
  std::string svg_file;        // galley/messages draws its ratios there; empty: nowhere
  std::set<std::string> only;  // groups; empty: all
};

// One line of the table.
struct Result {
  std::string name;
  std::string ours;   // with its unit
  std::string other;  // the comparison, with its unit
  double value = 0;   // what is held against the goal: a ratio, a rate or a time
  double goal = 0;
  bool at_least = true;  // value >= goal is good; else value <= goal
  std::string spread;    // smallest to largest
  bool reached() const { return at_least ? value >= goal : value <= goal; }
};

class Report {
 public:
  void add(Result result);  // prints the line at once
  void note(const std::string& text);
  bool all_reached() const;
  std::string json() const;

 private:
  std::vector<Result> results_;
  std::vector<std::string> notes_;
};

// A command as a process: posix_spawn, stdout and stderr to `log`, wall seconds from start to exit.
struct Ran {
  double seconds = 0;
  int status = 0;  // exit code, 128 + signal
};
// `watch`, if given, follows its memory.
class MemoryWatch;
Ran run(const std::vector<std::string>& command, MemoryWatch* watch = nullptr, const std::string& log = "/dev/null");
// run(), and the whole program ends with a message if the command fails.
double must_run(const std::vector<std::string>& command, MemoryWatch* watch = nullptr);
double now();  // seconds, steady
// Ends the program, after what is up is down again.
struct Died : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void die(const std::string& text);

// From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, are noted; must_run() and pair() end the program
// then.
void catch_interrupts();
// For the end of main: the process dies of the signal that came; returns if none did.
void die_of_interrupt();

// Touches 4 GiB in another process, so that the guest's idle memory is warm again. Not in a smoke run.
struct Context;
void touch_memory(const Context& context);

double median(std::vector<double> values);
// Runs ours and other in turn, `repeats` times after one warm-up of each; `prepare` before every run, not timed.
struct Pair {
  double ours = 0, other = 0;  // medians, seconds
  double ratio = 0;            // median of other/ours per round: speed of ours as a share of the other's
  double ratio_min = 0, ratio_max = 0;
};
Pair pair(unsigned repeats, const std::function<void()>& prepare, const std::function<double()>& ours,
          const std::function<double()>& other);

// Largest RssAnon + RssShmem seen per process name, sampled every 10 ms while it lives.
class MemoryWatch {
 public:
  MemoryWatch();
  ~MemoryWatch();
  void watch(int pid, const std::string& name);
  std::map<std::string, std::uint64_t> peaks() const;  // bytes

 private:
  void sample();
  mutable std::mutex mutex_;  // guards pids_, peaks_
  std::map<int, std::string> pids_;
  std::map<std::string, std::uint64_t> peaks_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Largest sum of RssAnon + RssShmem of some processes and all that descends from them and from this one, sampled every
// 20 ms while the object lives. Memory that several share counts once for each.
class SumWatch {
 public:
  explicit SumWatch(std::vector<int> roots);
  ~SumWatch();
  std::uint64_t peak() const { return peak_; }  // bytes

 private:
  void sample();
  const std::vector<int> roots_;
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A file system under FOLDER/name, up as long as the object lives.
class System {
 public:
  System(const Options& options, std::string name, unsigned lfss, std::vector<std::string> up_options,
         MemoryWatch& watch, const std::string& under = {});
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  const std::string& folder() const { return folder_; }
  double seconds_to_start() const { return seconds_to_start_; }
  const std::vector<int>& daemons() const { return daemons_; }  // process ids
  // The command `pif ARGS...` (or `pif-x ARGS...`) of this file system.
  std::vector<std::string> command(std::vector<std::string> args, const std::vector<std::string>& options = {}) const;
  // Waits until every deletion is finished on every LFS.
  void settle() const;

 private:
  const Options& options_;
  std::string folder_;
  double seconds_to_start_ = 0;
  std::vector<int> daemons_;
};

// A file of incompressible bytes, so that no layer can cheat.
void make_source(const std::string& path, std::uint64_t bytes);
bool same_bytes(const std::string& a, const std::string& b);
std::string last_line(const std::string& path);  // what a program said last; empty if nothing
std::string seconds_text(double seconds);
std::string rate_text(double bytes_per_second);

// The groups.
struct Context {
  const Options& options;
  Report& report;
  MemoryWatch& watch;
  std::string self;    // this program
  std::string source;  // options.bytes bytes, in the page cache
};
void bench_transfer(Context& context);            // put, get by descriptor, tcp, CURVE; lines read and counted
void bench_copy(Context& context);                // pif-copy: same layout, other width, reflink
void bench_mount(Context& context);               // a mount beside the local file system
void bench_compress(Context& context);            // compress, decompress beside zstd
void bench_search(Context& context);              // search, map, summarize beside grep, cut, awk
void bench_records(Context& context);             // 100-byte records through the C API
void bench_names(Context& context);               // create, stat, list, delete
void bench_tools(Context& context);               // a tool that does nothing; 64 LFSs
void bench_rights(Context& context);              // verification of capabilities
void bench_sort(Context& context);                // pif-sort against sort(1) and DuckDB
void bench_sort_lines(Context& context);          // the same for lines of text
void bench_sort_lines_memory(Context& context);   // many log lines with little memory
void bench_sort_memory(Context& context);         // a sort of much more than the memory it may take
void bench_transpose_memory(Context& context);    // 8 GiB with 512 MiB
void bench_transpose(Context& context);           // pif-transpose and its kernels
void bench_parity(Context& context);              // its cost, and that of a lost LFS
void bench_fairness(Context& context);            // many clients beside one that asks for much
void bench_memory(Context& context);              // the put of a sparse file, and everybody's peak
void bench_galley_messages(Context& context);     // one request for many records : one for each
void bench_galley_descriptors(Context& context);  // the same through descriptors
void bench_galley_shared(Context& context);       // a new file that several write, against ROMIO
void bench_galley_overwrites(Context& context);   // several clients in one committed file
void bench_galley_far(Context& context);          // a write far behind the end
void bench_galley_list(Context& context);         // millions of random pieces in one request
void bench_galley_rounds(Context& context);       // parallel-open
// Requests per second of `clients` threads against an empty ZeroMQ handler in another process, over ipc.
double empty_handler(Context& context, unsigned clients, std::uint64_t each);
int echo_main(const std::string& endpoint);  // the empty ZeroMQ handler, in a process of its own

}  // namespace pif::bench
