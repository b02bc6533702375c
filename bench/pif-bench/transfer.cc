// put and get against cp: through passed descriptors, through ZeroMQ over plain tcp, and with CURVE.
#include <unistd.h>

#include <fmt/format.h>

#include "harness.h"

namespace pif::bench {
namespace {

void bench_get(Context& c, const System& system, const std::string& name, const std::vector<std::string>& options,
               double goal) {
  const std::string mine = c.options.folder + "/got", theirs = c.options.folder + "/copied";
  const auto prepare = [&] {
    unlink(mine.c_str());
    unlink(theirs.c_str());
    ::sync();
  };
  touch_memory(c);
  const Pair p = pair(
      c.options.repeats, prepare,
      [&] {
        return must_run(system.command({"pif", "get", "/source", mine}, options), &c.watch);
      },
      [&] {
        return must_run({"cp", c.source, theirs});
      });
  must_run(system.command({"pif", "get", "/source", mine}, options), &c.watch);
  if (!same_bytes(c.source, mine)) die(name + ": the bytes differ");
  prepare();
  c.report.add({name + " : cp", seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

void bench_put(Context& c, const System& system, const std::string& name, const std::vector<std::string>& options,
               double goal) {
  const std::string theirs = c.options.folder + "/copied";
  const auto prepare = [&] {
    run(system.command({"pif", "rm", "/put"}));
    unlink(theirs.c_str());
    system.settle();
  };
  touch_memory(c);
  const Pair p = pair(
      c.options.repeats, prepare,
      [&] {
        return must_run(system.command({"pif", "put", c.source, "/put"}, options), &c.watch);
      },
      [&] {
        return must_run({"sh", "-c", fmt::format("cp '{}' '{}' && sync -d '{}'", c.source, theirs, theirs)});
      });
  prepare();
  must_run(system.command({"pif", "put", c.source, "/put"}, options), &c.watch);
  const std::string back = c.options.folder + "/back";
  must_run(system.command({"pif", "get", "/put", back}), &c.watch);
  if (!same_bytes(c.source, back)) die(name + ": the bytes differ");
  unlink(back.c_str());
  prepare();
  c.report.add({name + " : cp && sync -d", seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

void bench_route(Context& c, const std::string& name, const std::vector<std::string>& up,
                 const std::vector<std::string>& options, double goal) {
  const System system(c.options, "transfer", 4, up, c.watch);
  must_run(system.command({"pif", "put", c.source, "/source"}), &c.watch);
  bench_get(c, system, "get, " + name, options, goal);
  bench_put(c, system, "put, " + name, options, goal);
}

}  // namespace

void bench_transfer(Context& c) {
  bench_route(c, "descriptors", {}, {}, 0.8);
  bench_route(c, "tcp", {"--insecure-loopback"}, {"--route", "tcp", "--data", "messages"}, 0.45);
  bench_route(c, "CURVE", {"--curve"}, {"--route", "tcp", "--data", "messages"}, 0.15);
}

}  // namespace pif::bench
