// Start-up: a tool that does nothing, beside bare process starts; 64 LFSs.
#include <unistd.h>

#include <fmt/format.h>

#include "harness.h"

namespace pif::bench {
namespace {

void bench_noop(Context& c, unsigned lfss, double goal_ms) {
  const System system(c.options, "tools", lfss, {}, c.watch);
  const std::string true_program = "/bin/true";
  const Pair p = pair(
      c.options.repeats * 3, [] {}, [&] { return must_run(system.command({"example-noop"})); },
      [&] {
        double seconds = 0;
        for (unsigned i = 0; i < lfss; ++i) seconds += must_run({true_program});
        return seconds;
      });
  c.report.add({fmt::format("a tool that does nothing, p = {}, ms", lfss), fmt::format("{:.1f} ms", p.ours * 1e3),
                fmt::format("{:.1f} ms", p.other * 1e3), p.ours * 1e3, goal_ms, false,
                fmt::format("other: {} x /bin/true, one by one", lfss)});
  if (lfss < 64) return;
  c.report.add(
      {"64 LFSs up, seconds", seconds_text(system.seconds_to_start()), "", system.seconds_to_start(), 5, false, ""});
  const std::string back = c.options.folder + "/back";
  must_run(system.command({"pif", "put", c.source, "/wide"}));
  must_run(system.command({"pif", "get", "/wide", back}));
  if (!same_bytes(c.source, back)) die("a file of width 64 came back with other bytes");
  unlink(back.c_str());
}

}  // namespace

void bench_tools(Context& c) {
  touch_memory(c);
  bench_noop(c, 4, 30);
  bench_noop(c, 64, 300);
}

}  // namespace pif::bench
