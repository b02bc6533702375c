// pif-transpose: its kernels against memcpy, and a whole matrix from file to file against cp.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "harness.h"
#include "pif/matrix/instructions.h"
#include "pif/matrix/transpose.h"
#include "pif/matrix/weave.h"

namespace pif::bench {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kSpare = 256 * kMiB;     // for daemons, programs and whatever is no matrix
constexpr std::uint64_t kMemoryMin = 32 * kMiB;  // that pif-transpose may be told to take
constexpr matrix::Element kBit{1, matrix::BitOrder::kMsb};
constexpr unsigned kChecks = 1'000'000;  // elements of a result that are looked at

// Memory of its own, or a file; in huge pages where there are any, because small ones are what a benchmark would
// measure first.
class Mapping {
 public:
  explicit Mapping(std::size_t size) : size_(size) {
    take(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(bytes_, size, MADV_HUGEPAGE);
    std::fill(bytes_, bytes_ + size, std::byte{1});
  }
  Mapping(const std::string& path, std::size_t size) : size_(size) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    take(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0));
    close(file);
  }
  ~Mapping() { munmap(bytes_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* bytes() const { return bytes_; }

 private:
  void take(void* memory) {
    if (memory == MAP_FAILED) die("cannot map a matrix");
    bytes_ = static_cast<std::byte*>(memory);
  }
  std::byte* bytes_ = nullptr;
  std::size_t size_;
};

bool bit_at(const std::byte* matrix, std::uint64_t side, std::uint64_t row, std::uint64_t column) {
  return (std::to_integer<unsigned>(matrix[row * side / 8 + column / 8]) >> (7 - column % 8) & 1) != 0;
}

void must_be_transposed(const std::string& who, const std::byte* from, const std::byte* to, std::uint64_t side) {
  std::mt19937_64 random(side);
  for (unsigned i = 0; i < kChecks; ++i) {
    const std::uint64_t row = random() % side, column = random() % side;
    if (bit_at(from, side, row, column) != bit_at(to, side, column, row))
      die(fmt::format("{}: element {}, {} is wrong", who, column, row));
  }
}

template <typename F>
double seconds_of(unsigned repeats, const F& f) {
  std::vector<double> all;
  for (unsigned i = 0; i <= repeats; ++i) {
    const double begin = now();
    f();
    if (i > 0) all.push_back(now() - begin);
  }
  return median(all);
}

// A square in memory, one thread. Goals: a share of memcpy's speed for the fastest, else bytes per second.
void bench_kernels(Context& c) {
  const std::uint64_t side = c.options.smoke ? 4096 : 40'960, pitch = side / 8;
  const Mapping from(side * pitch), to(side * pitch);
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < side * pitch; i += 13) from.bytes()[i] = static_cast<std::byte>(random());
  const auto bytes = static_cast<double>(side * pitch);
  const double copy =
      bytes / seconds_of(c.options.repeats, [&] { std::copy_n(from.bytes(), side * pitch, to.bytes()); });
  for (const matrix::InstructionSet set : matrix::instruction_sets()) {
    matrix::use_only(set);
    const double speed = bytes / seconds_of(c.options.repeats, [&] {
                           matrix::transpose({from.bytes(), pitch}, side, side, {to.bytes(), pitch}, kBit);
                         });
    must_be_transposed(matrix::name_of(set), from.bytes(), to.bytes(), side);
    const std::string instructions = matrix::name_of(set);
    const bool of_memcpy = instructions == "AVX3";  // of 512 bits
    const std::string name = fmt::format("{} x {} bits in memory, {}", side, side, instructions);
    c.report.add({name + (of_memcpy ? " : memcpy" : ", GB/s"), rate_text(speed), rate_text(copy),
                  of_memcpy ? speed / copy : speed / 1e9,
                  of_memcpy                ? 0.3
                  : instructions == "AVX2" ? 3.0
                                           : 0.7,
                  true, ""});
  }
}

// Rows of bits, put together from parts that lie far apart, one thread. Beside it, what memcpy does with as many bytes.
void bench_weaving(Context& c) {
  const std::uint64_t row_bytes = 16'384, rows = c.options.smoke ? 64 : 4096, elements = row_bytes * 8;
  for (const std::uint32_t parts : {2U, 4U, 8U, 16U, 32U}) {
    const matrix::Weave weave(kBit, elements, parts, parts,
                              [&](std::uint64_t i) { return static_cast<std::uint32_t>(i % parts); });
    const std::uint64_t pitch = row_bytes / parts + 64;
    const Mapping from(parts * rows * pitch + sizeof(std::uint64_t)), to(rows * row_bytes);
    std::vector<const std::byte*> begins;
    for (std::uint32_t part = 0; part < parts; ++part) begins.push_back(from.bytes() + part * rows * pitch);
    const auto bytes = static_cast<double>(rows * row_bytes);
    const double copy =
        bytes / seconds_of(c.options.repeats, [&] { std::copy_n(from.bytes(), rows * row_bytes, to.bytes()); });
    const double speed = bytes / seconds_of(c.options.repeats, [&] {
                           weave.weave(begins, pitch, rows, {to.bytes(), row_bytes});
                         });
    c.report.add({fmt::format("rows of bits woven from {} parts, GB/s", parts), rate_text(speed), rate_text(copy),
                  speed / 1e9, parts <= 8 ? 2.5 : 1.0, true, ""});
  }
}

// One matrix, from file to file.
struct Task {
  Context& c;
  const System& system;
  std::string source, theirs;
  std::uint64_t side;

  std::vector<std::string> command(const std::vector<std::string>& options) const {
    std::vector<std::string> words = {"pif-transpose", "--columns", std::to_string(side)};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"/matrix", "/transposed"});
    return system.command(words);
  }
  double ours(const std::vector<std::string>& options = {}) const { return must_run(command(options), &c.watch); }
  void prepare() const {
    run(system.command({"pif", "rm", "/transposed"}));
    unlink(theirs.c_str());
    system.settle();
    touch_memory(c);
  }
  // What these options make is right.
  void check(const std::vector<std::string>& options = {}) const {
    prepare();
    ours(options);
    must_run(system.command({"pif", "get", "/transposed", theirs}), &c.watch);
    const Mapping from(source, side * side / 8), to(theirs, side * side / 8);
    must_be_transposed("pif-transpose", from.bytes(), to.bytes(), side);
  }
};

void against_cp(const Task& task) {
  Context& c = task.c;
  const std::string copy = fmt::format("cp '{0}' '{1}' && sync -d '{1}'", task.source, task.theirs);
  const Pair p = pair(
      c.options.repeats, [&] { task.prepare(); }, [&] { return task.ours(); },
      [&] {
        return must_run({"sh", "-c", copy});
      });
  task.check();
  c.report.add({fmt::format("pif-transpose, {0} x {0} bits : cp && sync -d", task.side), seconds_text(p.ours),
                seconds_text(p.other), 1 / p.ratio, 2.5, false,
                fmt::format("{:.2f}-{:.2f}", 1 / p.ratio_max, 1 / p.ratio_min)});
}

// With a sixteenth of the matrix's size, which is not enough for more than a few columns at a time.
void with_little_memory(const Task& task) {
  Context& c = task.c;
  const std::uint64_t memory = std::max(task.side * task.side / 8 / 16, kMemoryMin);
  const std::vector<std::string> little = {"--memory", std::to_string(memory)};
  std::uint64_t peak = 0;
  const Pair p = pair(
      c.options.repeats, [&] { task.prepare(); },
      [&] {
        const SumWatch sum(task.system.daemons());
        const double seconds = task.ours(little);
        peak = std::max(peak, sum.peak());
        return seconds;
      },
      [&] { return task.ours(); });
  task.check(little);
  const std::string name = fmt::format("the same with --memory {} MiB", memory / kMiB);
  c.report.add({name + " : with enough", seconds_text(p.ours), seconds_text(p.other), p.ratio, 0.5, true,
                fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
  c.report.add({name + ": everybody's memory, MiB", fmt::format("{} MiB", peak / kMiB), "",
                static_cast<double>(peak) / kMiB, static_cast<double>((memory + kSpare) / kMiB), false,
                "RssAnon + RssShmem"});
}

// Reads and writes everything log2(p) times for its passes, and once more for its bands.
void recursively(const Task& task) {
  constexpr double kPasses = 3;
  const std::vector<std::string> recursive = {"--algorithm", "recursive"};
  const Pair p = pair(
      1, [&] { task.prepare(); }, [&] { return task.ours(recursive); }, [&] { return task.ours(); });
  task.check(recursive);
  task.c.report.add({"the same, recursive, each of 2 passes and bands : direct", seconds_text(p.ours),
                     seconds_text(p.other), 1 / p.ratio / kPasses, 2.5, false, ""});
}

// A file system of four LFSs with a matrix on it, for `measure`.
void with_matrix(Context& c, const std::string& name, std::uint64_t side,
                 const std::function<void(const Task&)>& measure) {
  const System system(c.options, name, 4, {}, c.watch);
  const Task task{c, system, c.options.folder + "/matrix", c.options.folder + "/transposed", side};
  make_source(task.source, side * side / 8);
  must_run(system.command({"pif", "put", "--record-length", std::to_string(side / 8), task.source, "/matrix"}),
           &c.watch);
  measure(task);
  for (const std::string& path : {task.source, task.theirs}) unlink(path.c_str());
}

}  // namespace

void bench_transpose(Context& c) {
  bench_kernels(c);
  bench_weaving(c);
  with_matrix(c, "transpose", c.options.smoke ? 8192 : 131'072, [](const Task& task) {
    against_cp(task);
    with_little_memory(task);
    recursively(task);
  });
}

void bench_transpose_memory(Context& c) {
  with_matrix(c, "transpose-memory", c.options.smoke ? 16'384 : 262'144, with_little_memory);
}

}  // namespace pif::bench
