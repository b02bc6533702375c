// pif-sort against sort(1) and DuckDB: the same records from one file to another, durable at the end.
#include <fmt/format.h>
#include <unistd.h>

#include "harness.h"
#include "sort_records.h"

namespace pif::bench {
namespace {

// DuckDB knows no records but lines, and must put back the carriage returns, which it takes for parts of their ends.
constexpr const char* kDuckDbScript = R"py(import duckdb, sys
db = duckdb.connect()
db.execute("SET threads = 2")
db.execute("SET memory_limit = '8GB'")
db.execute(r"""COPY (SELECT line || chr(13) FROM read_csv('%s', header = false, columns = {'line': 'VARCHAR'},
  delim = '\x01', quote = '', escape = '', new_line = '\r\n', auto_detect = false) ORDER BY line)
  TO '%s' (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')""" % tuple(sys.argv[1:])))py";

// One file that everybody sorts, and what must come out.
struct Task {
  Context& c;
  const System& system;
  std::string source, theirs;
  Census wanted;

  double ours(const std::vector<std::string>& options = {}) const {
    return must_run(system.command({"pif-sort", "-k", "0:10", "/source", "/sorted"}, options), &c.watch);
  }
  void prepare() const {
    run(system.command({"pif", "rm", "/sorted"}));
    unlink(theirs.c_str());
    system.settle();
    if (!c.options.cold_memory) touch_memory(c);
  }
};

void add_line(const Task& task, const std::string& ours, const std::string& other, const Pair& p, double goal) {
  const std::string name =
      fmt::format("{}{}, {} records of 100 bytes : {}", ours, task.c.options.cold_memory ? " (cold memory)" : "",
                  task.c.options.records, other);
  task.c.report.add({name, seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                     fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

// What is in the file system now is right.
void check_ours(const Task& task, const std::string& who) {
  const std::string back = task.c.options.folder + "/back";
  must_run(task.system.command({"pif", "get", "/sorted", back}), &task.c.watch);
  must_be_sorted(who, back, task.wanted);
  unlink(back.c_str());
}

void compare(const Task& task, const std::string& other, double goal, const std::vector<std::string>& command,
             const std::vector<std::string>& options = {}) {
  const std::string name = fmt::format("pif-sort{}{}", options.empty() ? "" : " ", fmt::join(options, " "));
  const Pair p = pair(
      task.c.options.repeats, [&] { task.prepare(); }, [&] { return task.ours(options); },
      [&] { return must_run(command); });
  must_be_sorted(other, task.theirs, task.wanted);
  add_line(task, name, other, p, goal);
}

// A merge by token beside the split merge.
void compare_merges(const Task& task, const std::string& merge) {
  const std::vector<std::string> options = {"--merge", merge};
  const Pair p = pair(
      task.c.options.repeats, [&] { task.prepare(); }, [&] { return task.ours(options); },
      [&] {
        task.prepare();
        return task.ours();
      });
  add_line(task, "pif-sort --merge " + merge, "--merge split", p, 0.6);
  task.prepare();
  task.ours(options);
  check_ours(task, "pif-sort --merge " + merge);
}

// A file on fewer LFSs: its workers have more threads each.
void compare_width(const Task& task, unsigned width) {
  const std::string wide = std::to_string(width), source = "/source" + wide;
  must_run(task.system.command({"pif", "put", "--record-length", "100", "--width", wide, task.source, source}));
  const std::vector<std::string> command =
      task.system.command({"pif-sort", "-k", "0:10", source, "/sorted"}, {"--width", wide});
  const Pair p = pair(
      task.c.options.repeats, [&] { task.prepare(); }, [&] { return must_run(command, &task.c.watch); },
      [&] {
        task.prepare();
        return task.ours();
      });
  add_line(task, "pif-sort, p = " + wide, "p = 4", p, 0.95);
  task.prepare();
  must_run(command);
  check_ours(task, "pif-sort, p = " + wide);
  must_run(task.system.command({"pif", "rm", source}));
}

// An environment of the benchmark's own with DuckDB from PyPI; its Python. Empty, after a note, if that cannot be had.
std::string duckdb_python(Context& c) {
  const std::string environment = c.options.folder + "/duckdb", log = c.options.folder + "/duckdb.log";
  const std::string python = environment + "/bin/python";
  for (const std::vector<std::string>& step : std::vector<std::vector<std::string>>{
           {"python3", "-m", "venv", environment},
           {"timeout", "120", python, "-m", "pip", "install", "-q", "--retries", "1", "duckdb"},
           {python, "-c", "import duckdb; print('DuckDB', duckdb.__version__)"}}) {
    unlink(log.c_str());
    if (run(step, nullptr, log).status != 0) {
      c.report.note(fmt::format("DuckDB is left out: {} failed: {}", fmt::join(step, " "), last_line(log)));
      return {};
    }
  }
  c.report.note(last_line(log) + " from PyPI");
  return python;
}

void against_duckdb(const Task& task, double goal) {
  if (task.c.options.smoke) return;
  const std::string python = duckdb_python(task.c);
  if (python.empty()) return;
  const std::string sort_and_sync = "\"$0\" -c \"$1\" \"$2\" \"$3\" && sync -d \"$3\"";
  compare(task, "DuckDB && sync -d", goal,
          {"sh", "-c", sort_and_sync, python, kDuckDbScript, task.source, task.theirs});
}

}  // namespace

void bench_sort(Context& c) {
  const std::string& folder = c.options.folder;
  const std::string source = folder + "/records", theirs = folder + "/sorted";
  make_records(source, c.options.records);
  const System system(c.options, "sort", 4, {"--insecure-loopback"}, c.watch);
  must_run(system.command({"pif", "put", "--record-length", "100", source, "/source"}), &c.watch);
  const Task task{c, system, source, theirs, census_of(source)};
  const std::string gnu =
      fmt::format("LC_ALL=C sort --parallel=2 -S8G -o '{0}' '{1}' && sync -d '{0}'", theirs, source);
  compare(task, "sort -S8G && sync -d", c.options.cold_memory ? 3 : 6.5, {"sh", "-c", gnu});
  task.prepare();
  task.ours();
  check_ours(task, "pif-sort");
  const Pair copy = pair(
      c.options.repeats, [&] { task.prepare(); }, [&] { return task.ours(); },
      [&] {
        return must_run({"sh", "-c", fmt::format("cp '{1}' '{0}' && sync -d '{0}'", theirs, source)});
      });
  add_line(task, "pif-sort", "cp && sync -d", copy, 1 / 1.3);
  for (const unsigned width : {1U, 2U}) compare_width(task, width);
  const std::vector<std::string> over_tcp = {"--route", "tcp"};
  compare(task, "sort -S8G && sync -d", 5, {"sh", "-c", gnu}, over_tcp);
  task.prepare();
  task.ours(over_tcp);
  check_ours(task, "pif-sort --route tcp");
  for (const std::string merge : {"token", "pipelined"}) compare_merges(task, merge);
  against_duckdb(task, 5.3);
  for (const std::string& path : {source, theirs}) unlink(path.c_str());
}

}  // namespace pif::bench
