// A mounted file system beside the local one: large files, small ones, and lists.
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "harness.h"

namespace pif::bench {
namespace {

using Words = std::vector<std::string>;

// As long as it lives, the file system is mounted on a folder.
class Mounted {
 public:
  Mounted(Context& c, const System& system, const std::string& name, const std::string& words)
      : context_(c), folder_(c.options.folder + "/" + name) {
    std::filesystem::create_directory(folder_);
    must_run({c.options.bin + "/pif-mount", "-o", words, system.folder(), folder_});
  }
  ~Mounted() { run({context_.options.bin + "/pif-umount", folder_}); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  Context& context_;
  const std::string folder_;
};

double shell(const std::string& text) { return must_run({"sh", "-c", text}); }

void add(Context& c, const std::string& name, const Pair& p, double goal) {
  c.report.add({name, seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

void bench_large(Context& c, const Mounted& mounted) {
  const std::string ours = mounted.folder() + "/large", theirs = c.options.folder + "/copied";
  const auto copy = [&](const std::string& to) { return must_run({"cp", c.source, to}); };
  touch_memory(c);
  const auto forget = [&] {
    unlink(ours.c_str());
    unlink(theirs.c_str());
    ::sync();
  };
  add(c, "mount: cp, durable : cp && sync -d",
      pair(
          c.options.repeats, forget, [&] { return copy(ours); },
          [&] { return shell(fmt::format("cp '{0}' '{1}' && sync -d '{1}'", c.source, theirs)); }),
      0.55);
  copy(ours);
  if (!same_bytes(c.source, ours)) die("mount: the bytes differ");
  const auto read = [](const std::string& path, const std::string& size) {
    return must_run({"dd", "if=" + path, "of=/dev/null", "bs=" + size, "status=none"});
  };
  for (const char* size : {"4k", "1M"}) {
    add(c, fmt::format("mount: read again, dd bs={} : local", size),
        pair(
            c.options.repeats, [] {}, [&] { return read(ours, size); }, [&] { return read(c.source, size); }),
        0.4);
  }
  forget();
}

// Unpacks files of 4 KiB. Beside a strict mount the local ones are synced one by one, as the mount's are when they are
// closed; beside a lazy one they are not.
void bench_small(Context& c, const Mounted& mounted, bool is_lazy) {
  const std::string base = c.options.folder, made = base + "/small", archive = base + "/small.tar";
  const std::uint64_t files = c.options.smoke ? 20 : 2000;
  shell(fmt::format("mkdir '{0}' && cd '{0}' && head -c {1} /dev/urandom | split -b 4096 -a 5 -d - f", made,
                    files * 4096));
  must_run({"tar", "cf", archive, "-C", base, "small"});
  const std::string ours = mounted.folder() + "/out", theirs = base + "/out";
  const auto forget = [&] {
    std::filesystem::remove_all(ours);
    std::filesystem::remove_all(theirs);
    std::filesystem::create_directory(ours);
    std::filesystem::create_directory(theirs);
  };
  const std::string sync = is_lazy ? "true" : fmt::format("sync -d '{}'/small/*", theirs);
  add(c,
      fmt::format("mount{}: tar x of {} files of 4 KiB : local{}", is_lazy ? " -o lazy" : "", files,
                  is_lazy ? "" : ", synced each"),
      pair(
          c.options.repeats, forget,
          [&] {
            return must_run({"tar", "xf", archive, "-C", ours});
          },
          [&] { return shell(fmt::format("tar xf '{0}' -C '{1}' && {2}", archive, theirs, sync)); }),
      is_lazy ? 0.1 : 0.15);
  must_run({"tar", "xf", archive, "-C", ours});  // both were emptied before each run
  must_run({"diff", "-r", made, ours + "/small"});
  forget();
  std::filesystem::remove_all(ours);
  std::filesystem::remove_all(theirs);
  std::filesystem::remove_all(made);
}

void bench_list(Context& c, const System& system, const Mounted& mounted) {
  const std::uint64_t names = c.options.names * 5;
  const std::string theirs = c.options.folder + "/list";
  shell(fmt::format("mkdir '{0}' && cd '{0}' && seq {1} | xargs touch", theirs, names));
  must_run(system.command({"pif", "put", "-q", "-r", theirs, "/list"}), &c.watch);
  const auto list = [](const std::string& folder) { return must_run({"ls", "-l", folder}); };
  add(c, fmt::format("mount: ls -l of {} names : local", names),
      pair(
          c.options.repeats, [] {}, [&] { return list(mounted.folder() + "/list"); }, [&] { return list(theirs); }),
      0.5);
  std::filesystem::remove_all(theirs);
}

}  // namespace

void bench_mount(Context& c) {
  if (::access("/dev/fuse", R_OK | W_OK) != 0 || ::geteuid() != 0) {
    c.report.note("mount: not measured, for that needs root and /dev/fuse");
    return;
  }
  const System system(c.options, "mounts", 4, {}, c.watch);
  const Mounted mounted(c, system, "mounted", "rw"), lazy(c, system, "lazy", "lazy");
  bench_large(c, mounted);
  bench_small(c, mounted, false);
  bench_small(c, lazy, true);
  bench_list(c, system, mounted);
}

}  // namespace pif::bench
