// A sort of much more than the memory it may take: how much everybody held at once, and sort(1) with as much beside it.
#include <unistd.h>

#include <optional>

#include <fmt/format.h>

#include "harness.h"
#include "sort_records.h"

namespace pif::bench {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kSpare = 256 * kMiB;  // for daemons, programs and whatever is not records

struct Measured {
  double seconds = 0;
  std::uint64_t peak = 0;
};

// Nothing, after a line in the report, if this pif-sort refuses.
std::optional<Measured> sort_with_little(Context& c, const System& system, const std::string& name) {
  const std::string log = c.options.folder + "/sort.log";
  const SumWatch sum(system.daemons());
  const std::string memory = std::to_string(c.options.sort_memory);
  const auto ours = system.command({"pif-sort", "-k", "0:10", "--memory", memory, "/source", "/sorted"});
  const Ran ran = run(ours, &c.watch, log);
  const std::string said = last_line(log);
  unlink(log.c_str());
  if (ran.status == 0) return Measured{ran.seconds, sum.peak()};
  if (said.find("memory") == std::string::npos) die(fmt::format("pif-sort exited with {}: {}", ran.status, said));
  c.report.add({name, "not possible in this release", "", 0, 3, true, ""});
  c.report.note(said);
  return std::nullopt;
}

}  // namespace

void bench_sort_memory(Context& c) {
  const Options& o = c.options;
  const std::string source = o.folder + "/records", theirs = o.folder + "/sorted";
  const std::string name = fmt::format("pif-sort of {:.2f} GB with --memory {} MiB",
                                       static_cast<double>(o.large_sort_bytes) / 1e9, o.sort_memory / kMiB);
  make_records(source, o.large_sort_bytes / kRecordBytes);
  const Census wanted = census_of(source);
  const System system(o, "sort-memory", 4, {}, c.watch);
  must_run(system.command({"pif", "put", "--record-length", "100", source, "/source"}), &c.watch);
  const auto ours = sort_with_little(c, system, name);
  if (!ours) return;
  const auto allowed = static_cast<double>((o.sort_memory + kSpare) / kMiB);
  c.report.add({name + ": workers, daemons and controller at once, MiB", fmt::format("{} MiB", ours->peak / kMiB), "",
                static_cast<double>(ours->peak) / kMiB, allowed, false,
                "RssAnon + RssShmem, in " + seconds_text(ours->seconds)});
  must_run(system.command({"pif", "get", "/sorted", theirs}), &c.watch);
  must_be_sorted("pif-sort", theirs, wanted);
  unlink(theirs.c_str());
  run(system.command({"pif", "rm", "/sorted"}));
  system.settle();
  const std::string gnu = fmt::format("LC_ALL=C sort --parallel=2 -S{}b -T '{}' -o '{}' '{}' && sync -d '{}'",
                                      o.sort_memory, o.folder, theirs, source, theirs);
  const double other = must_run({"sh", "-c", gnu});
  must_be_sorted("sort", theirs, wanted);
  c.report.add({name + " : sort -S && sync -d", seconds_text(ours->seconds), seconds_text(other), other / ours->seconds,
                3, true, ""});
  for (const std::string& path : {source, theirs}) unlink(path.c_str());
}

}  // namespace pif::bench
