// pif-sort against sort(1) on lines of text: log lines, words, and long lines; what comes out must be the same bytes.
#include <unistd.h>

#include <fmt/format.h>

#include "harness.h"
#include "lines.h"

namespace pif::bench {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kLittleMemory = 256 * kMiB;  // that a sort of more lines than that may take
// Sizes per line of --lines, so that one option scales everything.
constexpr std::uint64_t kWordBytes = 25, kLongLineBytes = 50;

using Words = std::vector<std::string>;
using Make = void (*)(const std::string& path, std::uint64_t size);

// A file of lines that both sort; removed with the object.
class LineSort {
 public:
  // `size`: lines or bytes, as `make` has it.
  LineSort(Context& context, const System& system, std::string name, Make make, std::uint64_t size);
  ~LineSort();
  LineSort(const LineSort&) = delete;
  LineSort& operator=(const LineSort&) = delete;

  // `options` are those of both.
  void compare(double goal, const Words& options = {}) const;
  void compare_bevies(double goal) const;  // --bevy 2 beside none
  void compare_little_memory(double goal) const;

 private:
  double ours(const Words& options) const;
  double gnu(const std::string& memory, const Words& options) const;
  void prepare() const;
  void must_be_same(const std::string& who) const;
  void add_row(const std::string& ours, const std::string& other, const Pair& p, double goal) const;

  Context& c_;
  const System& system_;
  const std::string name_, source_, theirs_;
};

LineSort::LineSort(Context& context, const System& system, std::string name, Make make, std::uint64_t size)
    : c_(context),
      system_(system),
      name_(std::move(name)),
      source_(context.options.folder + "/lines"),
      theirs_(context.options.folder + "/sorted-lines") {
  make(source_, size);
  must_run(system_.command({"pif", "put", "--lines", source_, "/lines"}), &c_.watch);
}

LineSort::~LineSort() {
  run(system_.command({"pif", "rm", "/lines", "/sorted"}));
  for (const std::string& path : {source_, theirs_}) unlink(path.c_str());
}

double LineSort::ours(const Words& options) const {
  return must_run(system_.command({"pif-sort", "/lines", "/sorted"}, options), &c_.watch);
}

double LineSort::gnu(const std::string& memory, const Words& options) const {
  return must_run({"sh", "-c",
                   fmt::format("LC_ALL=C sort -s --parallel=2 -S{0} -T '{1}' -o '{2}' '{3}' {4} && sync -d '{2}'",
                               memory, c_.options.folder, theirs_, source_, fmt::join(options, " "))});
}

void LineSort::prepare() const {
  run(system_.command({"pif", "rm", "/sorted"}));
  unlink(theirs_.c_str());
  system_.settle();
  if (!c_.options.cold_memory) touch_memory(c_);
}

// Ends the program unless the file system has now what sort(1) wrote last.
void LineSort::must_be_same(const std::string& who) const {
  const std::string back = c_.options.folder + "/back";
  must_run(system_.command({"pif", "get", "/sorted", back}), &c_.watch);
  if (!same_bytes(theirs_, back)) die(fmt::format("{}, {}: the output is not that of sort", who, name_));
  unlink(back.c_str());
}

void LineSort::add_row(const std::string& ours, const std::string& other, const Pair& p, double goal) const {
  c_.report.add({fmt::format("{}{}, {} : {}", ours, c_.options.cold_memory ? " (cold memory)" : "", name_, other),
                 seconds_text(p.ours), seconds_text(p.other), p.ratio, goal, true,
                 fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
}

void LineSort::compare(double goal, const Words& options) const {
  const std::string who = fmt::format("pif-sort{}{}", options.empty() ? "" : " ", fmt::join(options, " "));
  const Pair p = pair(
      c_.options.repeats, [&] { prepare(); }, [&] { return ours(options); }, [&] { return gnu("8G", options); });
  ours(options);
  must_be_same(who);
  add_row(who, "sort -S8G && sync -d", p, goal);
}

void LineSort::compare_bevies(double goal) const {
  const Words bevies = {"--bevy", "2"};
  const Pair p = pair(
      c_.options.repeats, [&] { prepare(); }, [&] { return ours(bevies); }, [&] { return ours({}); });
  prepare();
  ours(bevies);
  gnu("8G", {});
  must_be_same("pif-sort --bevy 2");
  add_row("pif-sort --bevy 2", "without", p, goal);
}

// Once, because it takes minutes.
void LineSort::compare_little_memory(double goal) const {
  const std::string memory = std::to_string(kLittleMemory);
  prepare();
  const double mine = ours({"--memory", memory});
  const double other = gnu(memory + "b", {});
  const std::string who = fmt::format("pif-sort --memory {}M", kLittleMemory / kMiB);
  must_be_same(who);
  const double ratio = other / mine;
  add_row(who, fmt::format("sort -S{}M && sync -d", kLittleMemory / kMiB), {mine, other, ratio, ratio, ratio}, goal);
}

std::string gigabytes(std::uint64_t bytes) { return fmt::format("{:.3g} GB", static_cast<double>(bytes) / 1e9); }

void sort_log_lines(Context& c, const System& system, std::uint64_t lines, double goal) {
  const LineSort logs(c, system, fmt::format("{} log lines", lines), make_log_lines, lines);
  logs.compare(goal);
  if (lines != c.options.lines) return;
  logs.compare(3.5, {"-k", "4,4n"});
  logs.compare(3.5, {"-u"});
  logs.compare_bevies(0.6);
}

}  // namespace

void bench_sort_lines(Context& c) {
  const System system(c.options, "sort-lines", 4, {}, c.watch);
  const std::uint64_t lines = c.options.lines, words = lines * kWordBytes, long_lines = lines * kLongLineBytes;
  sort_log_lines(c, system, lines, 4);
  sort_log_lines(c, system, lines / 4, 3);
  LineSort(c, system, gigabytes(words) + " of words", make_words, words).compare(2.5);
  LineSort(c, system, gigabytes(long_lines) + " of lines of 1 to 4 KiB", make_long_lines, long_lines).compare(4);
}

void bench_sort_lines_memory(Context& c) {
  const System system(c.options, "sort-lines-memory", 4, {}, c.watch);
  const std::uint64_t bytes = c.options.large_lines_bytes;
  LineSort(c, system, gigabytes(bytes) + " of log lines", make_log_lines, bytes / kLogLineBytes)
      .compare_little_memory(2.5);
}

}  // namespace pif::bench
