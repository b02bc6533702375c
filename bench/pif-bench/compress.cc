// pif compress and decompress beside the zstd program, durable on both sides.
#include <unistd.h>

#include <fmt/format.h>

#include "harness.h"
#include "lines.h"

namespace pif::bench {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kZstd = "zstd -q -f -T2 -3";

class Compression {
 public:
  Compression(Context& c, const System& system) : c_(c), system_(system), source_(c.options.folder + "/text") {
    make_log_lines(source_, c.options.lines);
    must_run(system.command({"pif", "put", "-q", source_, "/bytes"}));
    must_run(system.command({"pif", "put", "-q", "--lines", source_, "/lines"}));
  }
  ~Compression() {
    run(system_.command({"pif", "rm", "--force", "/bytes", "/lines", "/small", "/back"}));
    for (const char* ending : {"", ".zst", ".back"}) unlink((source_ + ending).c_str());
  }
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;

  // There and back, each beside zstd; then both files are the same.
  void measure(const std::string& file, const Words& options, double goal, double goal_back) const {
    const std::string words = fmt::format("{}{}{}", fmt::join(options, " "), options.empty() ? "" : " ", file);
    Words compress = {"pif", "compress", "-q", file, "/small"};
    compress.insert(compress.end(), options.begin(), options.end());
    compare("compress " + words + " : zstd -T2 -3", compress,
            fmt::format("{0} '{1}' -o '{1}.zst' && sync -d '{1}.zst'", kZstd, source_), goal);
    compare("decompress " + words + " : zstd -d", {"pif", "decompress", "-q", "/small", "/back"},
            fmt::format("zstd -q -f -d '{0}.zst' -o '{0}.back' && sync -d '{0}.back'", source_), goal_back);
    must_run(system_.command({"pif", "cmp", file, "/back"}));
  }

 private:
  void compare(const std::string& name, const Words& ours, const std::string& other, double goal) const {
    touch_memory(c_);
    const Pair p = pair(
        c_.options.repeats, [] {}, [&] { return must_run(system_.command(ours)); },
        [&] {
          return must_run({"sh", "-c", other});
        });
    c_.report.add({name, seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                   fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
  }

  Context& c_;
  const System& system_;
  const std::string source_;
};

}  // namespace

void bench_compress(Context& c) {
  if (run({"sh", "-c", "command -v zstd"}).status != 0) {
    c.report.note("compress is left out: there is no zstd program");
    return;
  }
  const System system(c.options, "compress", 4, {}, c.watch);
  const Compression compression(c, system);
  compression.measure("/bytes", {}, 0.9, 0.6);
  compression.measure("/lines", {}, 0.2, 0.2);  // a frame of zstd takes a microsecond, and such a line has 40 bytes
  compression.measure("/lines", {"--context"}, 0.2, 0.2);
}

}  // namespace pif::bench
