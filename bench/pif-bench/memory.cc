// Memory: the put of a large sparse file, then everybody's peak of RssAnon + RssShmem during the whole run.
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "harness.h"

namespace pif::bench {

void bench_memory(Context& c) {
  constexpr double kMiB = 1 << 20;
  const std::string sparse = c.options.folder + "/sparse";
  must_run({"truncate", "-s", std::to_string(c.options.sparse_bytes), sparse});
  {
    const System system(c.options, "memory", 4, {}, c.watch);
    const double seconds = must_run(system.command({"pif", "put", sparse, "/sparse"}), &c.watch);
    c.report.note(fmt::format("put of a sparse file of {:.1f} GB: {:.1f} s",
                              static_cast<double>(c.options.sparse_bytes) / 1e9, seconds));
  }
  unlink(sparse.c_str());
  for (const auto& [name, bytes] : c.watch.peaks())
    c.report.add({"peak memory of " + name + ", MiB", fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMiB), "",
                  static_cast<double>(bytes) / kMiB, 100, false, ""});
}

}  // namespace pif::bench
