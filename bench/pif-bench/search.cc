// Tools that read lines and move little: search, map and summarize, beside grep, cut and awk on the same lines.
#include <unistd.h>

#include <fmt/format.h>

#include "harness.h"
#include "lines.h"

namespace pif::bench {
namespace {

using Words = std::vector<std::string>;

class Lines {
 public:
  Lines(Context& c, const System& system) : c_(c), system_(system), source_(c.options.folder + "/lines") {
    make_log_lines(source_, c.options.lines);
    must_run(system.command({"pif", "put", "-q", "--lines", source_, "/lines"}));
  }
  ~Lines() {
    run(system_.command({"pif", "rm", "/lines"}));
    unlink(source_.c_str());
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // How many lines match, said by both.
  void count(const Words& options, const std::string& pattern, double goal) const {
    const std::string words = fmt::format("{}", fmt::join(options, " "));
    compare(fmt::format("search -c {}{}'{}' : grep -c", words, words.empty() ? "" : " ", pattern),
            "search -c " + words + " '" + pattern + "' /lines",
            fmt::format("LC_ALL=C grep -c {} '{}' '{}'", words.empty() ? "-E" : words, pattern, source_), goal);
  }
  // Durable on both sides.
  void map(double goal) const {
    compare("map --each cut : cut && sync -d", "map --each 'cut -d\" \" -f3' /lines /cut && pif cat /cut | md5sum",
            fmt::format("cut -d' ' -f3 '{0}' > '{0}.cut' && sync -d '{0}.cut' && md5sum < '{0}.cut'", source_), goal);
    unlink((source_ + ".cut").c_str());
  }
  void summarize(double goal) const {
    compare(
        "summarize -f 4 : awk, with sum, least and most",
        "summarize -f 4 /lines | awk '$1 == \"sum\" || $1 == \"min\" || $1 == \"max\" { print $2 }' | sort | xargs",
        fmt::format("awk 'NR == 1 {{ least = most = $4 }} {{ sum += $4; if ($4 < least) least = $4; if ($4 > most) "
                    "most = $4 }} END {{ printf \"%.0f\\n%.0f\\n%.0f\\n\", sum, least, most }}' '{}' | sort | xargs",
                    source_),
        goal);
  }

 private:
  void compare(const std::string& name, const std::string& ours, const std::string& other, double goal) const {
    const std::string log = c_.options.folder + "/said";
    const auto timed = [&](const Words& command) {
      const Ran ran = run(command, nullptr, log);
      if (ran.status != 0) die(name + ": " + last_line(log));
      return ran.seconds;
    };
    const Words here = {
        "env", "PIF=" + system_.folder(), "PATH=" + c_.options.bin + ":/usr/bin:/bin", "sh", "-c", "pif " + ours};
    std::string said;
    const auto must_agree = [&] {
      if (!said.empty() && said != last_line(log))
        die(name + ": the answers differ: " + said + " and " + last_line(log));
      said = last_line(log);
    };
    touch_memory(c_);
    const Pair p = pair(
        c_.options.repeats, [] {},
        [&] {
          const double seconds = timed(here);
          must_agree();
          return seconds;
        },
        [&] {
          const double seconds = timed({"sh", "-c", other});
          must_agree();
          return seconds;
        });
    c_.report.add({name, seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                   fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
    unlink(log.c_str());
  }

  Context& c_;
  const System& system_;
  const std::string source_;
};

}  // namespace

void bench_search(Context& c) {
  const System system(c.options, "search", 4, {}, c.watch);
  const Lines lines(c, system);
  lines.count({"-F"}, "GET /ff", 2.5);
  lines.count({}, "h1[0-9]+ 9[0-9]* GET /f", 1);
  lines.count({}, "[0-9]$", 1);
  lines.map(1.2);
  lines.summarize(4);
}

}  // namespace pif::bench
