// pif-copy against cp: same layout on one ext4, another width, and the reflink on XFS.
#include <unistd.h>

#include <fmt/format.h>

#include "harness.h"

namespace pif::bench {
namespace {

void bench_one(Context& c, const System& system, const std::string& name, std::vector<std::string> options, bool synced,
               double goal) {
  const std::string theirs = c.options.folder + "/copied";
  std::vector<std::string> copy = {"pif-copy", "/source", "/copy"};
  copy.insert(copy.end(), options.begin(), options.end());
  const auto prepare = [&] {
    run(system.command({"pif", "rm", "/copy"}));
    unlink(theirs.c_str());
    system.settle();
  };
  const std::string cp = fmt::format("cp '{}' '{}'{}", c.source, theirs, synced ? " && sync -d '" + theirs + "'" : "");
  touch_memory(c);
  const Pair p = pair(
      c.options.repeats, prepare, [&] { return must_run(system.command(copy), &c.watch); },
      [&] {
        return synced ? must_run({"sh", "-c", cp}) : must_run({"cp", c.source, theirs});
      });
  must_run(system.command(copy), &c.watch);
  const std::string back = c.options.folder + "/back";
  must_run(system.command({"pif", "get", "/copy", back}), &c.watch);
  if (!same_bytes(c.source, back)) die(name + ": the bytes differ");
  unlink(back.c_str());
  prepare();
  c.report.add({name + (synced ? " : cp && sync -d" : " : cp"), seconds_text(p.ours), seconds_text(p.other), p.ratio,
                goal, true, fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

// An XFS image on a loop device; unmounted and removed with the object. Needs root.
class LoopXfs {
 public:
  LoopXfs(const std::string& folder, std::uint64_t bytes) : image_(folder + "/xfs.img"), mount_(folder + "/xfs") {
    const std::string script = fmt::format(
        "set -e; truncate -s {} '{}'; mkfs.xfs -q -m reflink=1 '{}'; mkdir -p '{}'; mount -o loop '{}' '{}'", bytes,
        image_, image_, mount_, image_, mount_);
    mounted_ = geteuid() == 0 && run({"sh", "-c", script}).status == 0;
  }
  ~LoopXfs() {
    if (mounted_) run({"umount", mount_});
    run({"rm", "-rf", image_, mount_});
  }
  LoopXfs(const LoopXfs&) = delete;
  LoopXfs& operator=(const LoopXfs&) = delete;
  bool mounted() const { return mounted_; }
  const std::string& folder() const { return mount_; }

 private:
  std::string image_, mount_;
  bool mounted_ = false;
};

void bench_reflink(Context& c) {
  const LoopXfs xfs(c.options.folder, c.options.bytes * 3 + (1u << 30));
  if (!xfs.mounted()) {
    c.report.note("reflink copy skipped: no XFS on a loop device here (needs root, mkfs.xfs and loop devices)");
    return;
  }
  const System system(c.options, "pifs", 4, {}, c.watch, xfs.folder());
  must_run(system.command({"pif", "put", c.source, "/source"}), &c.watch);
  std::vector<double> times;
  for (unsigned i = 0; i <= c.options.repeats; ++i) {
    run(system.command({"pif", "rm", "/copy"}));
    system.settle();
    times.push_back(must_run(system.command({"pif-copy", "/source", "/copy"}), &c.watch));
  }
  const std::string back = c.options.folder + "/back";
  must_run(system.command({"pif", "get", "/copy", back}), &c.watch);
  if (!same_bytes(c.source, back)) die("reflink copy: the bytes differ");
  unlink(back.c_str());
  c.report.add({"pif-copy, XFS with reflink, seconds", seconds_text(median(times)), "", median(times), 0.5, false, ""});
}

}  // namespace

void bench_copy(Context& c) {
  {
    const System system(c.options, "copy", 4, {}, c.watch);
    must_run(system.command({"pif", "put", c.source, "/source"}), &c.watch);
    bench_one(c, system, "pif-copy, same layout", {}, true, 0.9);
    bench_one(c, system, "pif-copy, width 4 to 3", {"--width", "3"}, false, 0.5);
  }
  bench_reflink(c);
}

}  // namespace pif::bench
