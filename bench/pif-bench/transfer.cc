// put and get against cp: through passed descriptors, through ZeroMQ over plain tcp, and with CURVE. Then cat and wc of
// lines against cat(1) and wc(1).
#include <unistd.h>

#include <array>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "harness.h"
#include "lines.h"

namespace pif::bench {
namespace {

using Words = std::vector<std::string>;

std::string gigabytes_of(const std::string& path) {
  return fmt::format("{:.3g} GB", static_cast<double>(std::filesystem::file_size(path)) / 1e9);
}

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

// Lines that leave through a pipe, as those do that another program takes.
void bench_cat(Context& c, const System& system, const std::string& lines, double goal) {
  const Words theirs = {"cat", lines}, ours = system.command({"pif", "cat", "/lines"});
  const auto into = [](const std::string& reader, const Words& command) {
    Words out = {"sh", "-c", "\"$@\" | " + reader, "sh"};
    out.insert(out.end(), command.begin(), command.end());
    return must_run(out);
  };
  touch_memory(c);
  const Pair p = pair(
      c.options.repeats, [] {}, [&] { return into("cat >/dev/null", ours); },
      [&] { return into("cat >/dev/null", theirs); });
  into("cmp - '" + lines + "'", ours);
  c.report.add({gigabytes_of(lines) + " of lines, pif cat | cat : cat | cat", seconds_text(p.ours),
                seconds_text(p.other), p.ratio, goal, true, fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

// Lines, words and bytes, as either prints them.
std::array<std::uint64_t, 3> counts(const Words& command, const std::string& log) {
  unlink(log.c_str());
  if (run(command, nullptr, log).status != 0) die(fmt::format("{} failed", fmt::join(command, " ")));
  std::istringstream line(last_line(log));
  unlink(log.c_str());
  std::array<std::uint64_t, 3> out = {};
  if (!(line >> out[0] >> out[1] >> out[2])) die(fmt::format("{} printed no counts", fmt::join(command, " ")));
  return out;
}

void bench_wc(Context& c, const System& system, const std::string& lines, double goal) {
  const Words theirs = {"env", "LC_ALL=C", "wc", lines}, ours = system.command({"pif", "wc", "/lines"});
  const std::string log = c.options.folder + "/wc.log";
  if (counts(ours, log) != counts(theirs, log)) die("pif wc: the counts are not those of wc");
  touch_memory(c);
  const Pair p = pair(
      c.options.repeats, [] {}, [&] { return must_run(ours, &c.watch); }, [&] { return must_run(theirs); });
  c.report.add({gigabytes_of(lines) + " of lines, pif wc : wc", seconds_text(p.ours), seconds_text(p.other), p.ratio,
                goal, true, fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

void bench_lines(Context& c) {
  const System system(c.options, "lines", 4, {}, c.watch);
  const std::string lines = c.options.folder + "/lines.txt";
  const auto store = [&](std::uint64_t count) {
    make_log_lines(lines, count);
    must_run(system.command({"pif", "put", "--lines", lines, "/lines"}), &c.watch);
  };
  store(c.options.lines * 5 / 2);  // 2 GB by default
  bench_cat(c, system, lines, 0.6);
  store(c.options.lines);
  bench_wc(c, system, lines, 1.6);
  unlink(lines.c_str());
}

}  // namespace

void bench_transfer(Context& c) {
  bench_route(c, "descriptors", {}, {}, 0.8);
  bench_route(c, "tcp", {"--insecure-loopback"}, {"--route", "tcp", "--data", "messages"}, 0.45);
  bench_route(c, "CURVE", {"--curve"}, {"--route", "tcp", "--data", "messages"}, 0.15);
  bench_lines(c);
}

}  // namespace pif::bench
