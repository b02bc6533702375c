// pif-bench: every speed and memory claim of the project in one run, each beside its comparison.
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <fstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "harness.h"

namespace pif::bench {
namespace {

int touch_main() {
  constexpr std::size_t kBytes = 4ull << 30;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 3;
  for (std::size_t i = 0; i < kBytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  return 0;
}

std::string self_path() {
  char path[PATH_MAX] = {};
  return readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? path : "";
}

// Incompressible bytes, so that no layer can cheat: xorshift, seeded by the size.
void make_source(const std::string& path, std::uint64_t bytes) {
  std::ofstream out(path, std::ios::binary);
  std::vector<std::uint64_t> block(128 << 10);
  std::uint64_t x = bytes | 1;
  for (std::uint64_t done = 0; done < bytes;) {
    for (std::uint64_t& word : block) word = (x ^= x << 13, x ^= x >> 7, x ^= x << 17);
    const auto n = std::min<std::uint64_t>(bytes - done, block.size() * 8);
    out.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(n));
    done += n;
  }
  if (!out.flush()) die("cannot write " + path);
}

const std::map<std::string, void (*)(Context&)> kGroups = {
    {"1-transfer", bench_transfer}, {"2-copy", bench_copy},   {"3-records", bench_records},
    {"4-names", bench_names},       {"5-tools", bench_tools}, {"6-rights", bench_rights},
    {"7-sort", bench_sort},         {"8-memory", bench_memory},
};

int bench_main(int argc, char** argv) {
  Options options;
  std::string base = ".", json_file;
  std::vector<std::string> only;
  CLI::App app{"Measures this installation: every figure beside its comparison, in one run.\n\n"
               "Example:\n  pif-bench --dir /data/tmp            everything, 1 GiB, about ten minutes\n"
               "  pif-bench --only names --only tools  two groups\n  pif-bench --smoke                    tiny sizes: does it run?",
               "pif-bench"};
  bool smoke = false;
  app.add_option("--dir", base, "folder to work in, on the file system to be measured (a new folder is made in it)");
  app.add_option("--bytes", options.bytes, "size of the file that is moved")->transform(CLI::AsSizeValue(false));
  app.add_option("--sparse", options.sparse_bytes, "size of the sparse file")->transform(CLI::AsSizeValue(false));
  app.add_option("--repeats", options.repeats, "counted rounds of each pair")->check(CLI::Range(1, 100));
  app.add_option("--records", options.records, "100-byte records");
  app.add_option("--names", options.names, "files made per round");
  app.add_option("--only", only, "transfer, copy, records, names, tools, rights, sort or memory; may be given again");
  app.add_option("--json", json_file, "also write the results to this file");
  app.add_flag("--smoke", smoke, "tiny sizes; goals are not held against the results");
  CLI11_PARSE(app, argc, argv);
  options.only = {only.begin(), only.end()};
  if (smoke) {
    options.bytes = 8 << 20;
    options.sparse_bytes = 64 << 20;
    options.repeats = 1;
    options.records = 100'000;
    options.names = 1'600;
  }
  const std::string self = self_path();
  options.bin = self.substr(0, self.rfind('/'));
  options.folder = std::filesystem::absolute(fmt::format("{}/pif-bench-{}", base, getpid())).lexically_normal().string();
  std::filesystem::create_directories(options.folder);

  Report report;
  MemoryWatch watch;
  Context context{options, report, watch, self, options.folder + "/source.bin"};
  make_source(context.source, options.bytes);
  fmt::print("{:<44} {:>14} {:>14} {:>9} {:>11}\n", "what", "ours", "other", "value", "goal");
  for (const auto& [name, group] : kGroups)
    if (options.only.empty() || options.only.contains(name.substr(2))) group(context);
  std::filesystem::remove_all(options.folder);
  if (!json_file.empty()) std::ofstream(json_file) << report.json() << '\n';
  return smoke || report.all_reached() ? 0 : 1;
}

}  // namespace
}  // namespace pif::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--touch") == 0) return pif::bench::touch_main();
  if (argc == 3 && std::strcmp(argv[1], "--echo") == 0) return pif::bench::echo_main(argv[2]);
  return pif::bench::bench_main(argc, argv);
}
