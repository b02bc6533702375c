// pif-bench: every speed and memory claim of the project in one run, each beside its comparison.
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "galley/task.h"
#include "harness.h"
#include "pif/base/assert.h"
#include "pif/base/decimal.h"
#include "sort_records.h"

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

// In order. Those with an x take long, and run only when they, or what is in front of a slash, are named.
const std::map<std::string, void (*)(Context&)> kGroups = {
    {"1-transfer", bench_transfer},
    {"2-copy", bench_copy},
    {"3-records", bench_records},
    {"4-names", bench_names},
    {"5-tools", bench_tools},
    {"6-rights", bench_rights},
    {"7-sort", bench_sort},
    {"7-sort/lines", bench_sort_lines},
    {"8-memory", bench_memory},
    {"9-transpose", bench_transpose},
    {"c-compress", bench_compress},
    {"m-mount", bench_mount},
    {"p-parity", bench_parity},
    {"s-search", bench_search},
    {"x-fairness", bench_fairness},
    {"x-galley/descriptors", bench_galley_descriptors},
    {"x-galley/far", bench_galley_far},
    {"x-galley/list", bench_galley_list},
    {"x-galley/messages", bench_galley_messages},
    {"x-galley/overwrites", bench_galley_overwrites},
    {"x-galley/rounds", bench_galley_rounds},
    {"x-galley/shared", bench_galley_shared},
    {"x-sort-memory", bench_sort_memory},
    {"x-sort-memory/lines", bench_sort_lines_memory},
    {"x-transpose-memory", bench_transpose_memory},
};

struct Arguments {
  Options options;
  std::string base = ".", json_file;
  std::vector<std::string> only;
};

void add_options(CLI::App& app, Arguments& arguments) {
  Options& options = arguments.options;
  app.add_option("--dir", arguments.base, "folder on the file system to be measured, in which a new one is made");
  app.add_option("--bytes", options.bytes, "size of the file that is moved")->transform(byte_count);
  app.add_option("--sparse", options.sparse_bytes, "size of the sparse file")->transform(byte_count);
  app.add_option("--repeats", options.repeats, "counted rounds of each pair")
      ->check(CLI::Range(1, 100))
      ->transform(whole_number);
  app.add_option("--records", options.records, "100-byte records")->transform(whole_number);
  app.add_option("--lines", options.lines,
                 "sort, transfer: log lines of about 40 bytes; words and long lines go with them")
      ->transform(whole_number);
  app.add_option("--names", options.names, "files made per round")->transform(whole_number);
  app.add_option(
      "--only", arguments.only,
      "transfer, copy, records, names, tools, rights, sort, memory, transpose, mount, parity, search, compress, or "
      "(only if named) fairness, sort-memory, transpose-memory, galley, or a part of it: galley/messages, "
      "/descriptors, /shared, /overwrites, /far, /list, /rounds; sort/lines and sort-memory/lines are parts, too; may "
      "be given again");
  app.add_option("--large-sort", options.large_sort_bytes, "sort-memory: size of the file")->transform(byte_count);
  app.add_option("--sort-memory", options.sort_memory, "sort-memory: what sorting may take")->transform(byte_count);
  app.add_option("--large-lines", options.large_lines_bytes, "sort-memory/lines: size of the file, for 256 MiB")
      ->transform(byte_count);
  app.add_flag("--cold-memory", options.cold_memory,
               "sort: do not touch memory before, so that getting it is part of the time");
  app.add_option("--route", options.route, "galley/messages: auto, unix, ipc or tcp")
      ->check(CLI::IsMember({"auto", "unix", "ipc", "tcp"}));
  app.add_option("--svg", options.svg_file, "galley/messages: draws the ratios into this file");
  app.add_option("--json", arguments.json_file, "also write the results to this file");
  app.add_flag("--smoke", options.smoke, "tiny sizes; goals are not held against the results");
}

void make_tiny(Options& options) {
  options.bytes = 8 << 20;
  options.sparse_bytes = 64 << 20;
  options.repeats = 1;
  options.records = 100'000;
  options.names = 1'600;
  options.large_sort_bytes = 100 * options.records;
  options.lines = 20'000;
  options.large_lines_bytes = 1'000'000;
}

bool is_wanted(const std::string& group, const Options& options) {
  const std::string name = group.substr(2);
  if (!options.only.empty())
    return options.only.contains(name) || options.only.contains(name.substr(0, name.find('/')));
  return options.smoke || group[0] != 'x';
}

// What is measured, with all that is in it.
class Workplace {
 public:
  explicit Workplace(std::string folder) : folder_(std::move(folder)) { std::filesystem::create_directories(folder_); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

 private:
  std::string folder_;
};

// As the other programs do it: 2 is wrong usage.
int report_parse(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  std::fprintf(stderr, "pif-bench: %s (pif-bench --help shows how)\n", error.what());
  return 2;
}

int bench_main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Measures this installation: every figure beside its comparison, in one run.\n\n"
      "Example:\n  pif-bench --dir /data/tmp            everything, 1 GiB, half an hour or more\n"
      "  pif-bench --only names --only tools  two groups\n"
      "  pif-bench --smoke                    tiny sizes: does it run?\n"
      "  pif-bench calibrate                  the same as pif-calibrate",
      "pif-bench"};
  add_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse(app, error);
  }
  Options& options = arguments.options;
  options.only = {arguments.only.begin(), arguments.only.end()};
  if (options.smoke) make_tiny(options);
  const std::string self = self_path();
  options.bin = self.substr(0, self.rfind('/'));
  const std::filesystem::path folder = fmt::format("{}/pif-bench-{}", arguments.base, getpid());
  options.folder = std::filesystem::absolute(folder).lexically_normal().string();
  catch_interrupts();
  const Workplace workplace(options.folder);

  Report report;
  MemoryWatch watch;
  Context context{options, report, watch, self, options.folder + "/source.bin"};
  make_source(context.source, options.bytes);
  fmt::print("{:<44} {:>14} {:>14} {:>9} {:>11}\n", "what", "ours", "other", "value", "goal");
  for (const auto& [name, group] : kGroups)
    if (is_wanted(name, options)) group(context);
  if (!arguments.json_file.empty()) std::ofstream(arguments.json_file) << report.json() << '\n';
  return options.smoke || report.all_reached() ? 0 : 1;
}

// `pif bench calibrate`: another program, of the same folder.
int calibrate_main(char** argv) {
  const std::string self = self_path(), program = self.substr(0, self.rfind('/')) + "/pif-calibrate";
  argv[1] = argv[0];
  execv(program.c_str(), argv + 1);
  std::fprintf(stderr, "pif-bench: cannot run %s: %s\n", program.c_str(), std::strerror(errno));
  return 3;
}

}  // namespace
}  // namespace pif::bench

int main(int argc, char** argv) {
  pif::set_assertion_handler(&pif::end_process);  // a call that breaks one ends the program, too
  if (argc == 2 && std::strcmp(argv[1], "--touch") == 0) return pif::bench::touch_main();
  if (argc >= 2 && std::strcmp(argv[1], "calibrate") == 0) return pif::bench::calibrate_main(argv);
  if (argc == 3 && std::strcmp(argv[1], "--echo") == 0) return pif::bench::echo_main(argv[2]);
  if (argc == 4 && std::strcmp(argv[1], "--make-records") == 0) return pif::bench::make_records_main(argv[2], argv[3]);
  if (argc == 3 && std::strcmp(argv[1], "--census") == 0) return pif::bench::census_main(argv[2]);
  try {
    if (argc == 3 && std::strcmp(argv[1], "--galley") == 0) return pif::bench::task_main(argv[2]);
    const int exit_code = pif::bench::bench_main(argc, argv);
    pif::bench::die_of_interrupt();
    return exit_code;
  } catch (const pif::bench::Died& died) {
    std::fprintf(stderr, "pif-bench: %s\n", died.what());
    pif::bench::die_of_interrupt();
    return 3;
  }
}
