// One request that is a list of 10 million random pieces: how long it takes, and what memory it takes beyond the list.
#include <cstdlib>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "galley/contents.h"
#include "galley/need.h"
#include "harness.h"
#include "pif/pattern/builders.h"

namespace pif::bench {
namespace {

constexpr std::uint64_t kPiece = 8;
constexpr std::uint64_t kSeed = 5;
constexpr std::uint32_t kRecordBytes = 4096;
constexpr double kMiB = 1 << 20;

// Of this process: the resident memory now, or its peak since begin_peak().
double memory_mib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field))
      return static_cast<double>(std::strtoull(line.c_str() + field.size(), nullptr, 10)) / 1024;
  die("/proc/self/status has no " + field);
}

void begin_peak() { std::ofstream("/proc/self/clear_refs") << "5\n"; }

void measure(Context& c, const System& system, DataPath path, const std::string& name) {
  const std::uint64_t count = c.options.smoke ? 100000 : 10000000, places = c.options.bytes / kPiece;
  Client client = connect_to(system.folder(), path);
  File file = need(client.open("/list"));
  File::Pieces wanted;
  wanted.memory = patterns::range(0, count * kPiece);
  wanted.file.levels.reserve(count);
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < count; ++i)
    wanted.file.levels.push_back({static_cast<std::int64_t>(random() % places * kPiece), 1, 0, kPiece, {}});
  std::vector<std::byte> memory(count * kPiece, std::byte{1});
  if (need(file.pread(std::span(memory).first(kPiece), 0)) != kPiece) die("a short read");
  begin_peak();
  const double before = memory_mib("VmRSS:"), start = now();
  if (need(file.read_pieces(wanted, memory)) != memory.size()) die("a short read");
  const double seconds = now() - start, beyond = memory_mib("VmHWM:") - before;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto place = std::span(memory).subspan(i * kPiece, kPiece);
    if (!are_contents(place, static_cast<std::uint64_t>(wanted.file.levels[i].offset), kSeed)) die("a piece is wrong");
  }
  const double list = static_cast<double>(count * sizeof(patterns::Level)) / kMiB;
  c.report.add({name + ", MiB beyond its list", fmt::format("{:.1f} MiB", beyond), fmt::format("{:.0f} MiB", list),
                beyond, 100, false, ""});
  c.report.note(fmt::format("{}: {} random pieces of {} bytes in {:.2f} s, {:.2f} us each", name, count, kPiece,
                            seconds, seconds * 1e6 / static_cast<double>(count)));
}

}  // namespace

void bench_galley_list(Context& c) {
  const System system(c.options, "galley", 4, {}, c.watch);
  touch_memory(c);
  {
    Client client = connect_to(system.folder(), DataPath::kDescriptors);
    make_file(client, "/list", c.options.bytes, kSeed, kRecordBytes);
  }
  measure(c, system, DataPath::kDescriptors, "a list by descriptor");
  measure(c, system, DataPath::kMessages, "a list by message");
}

}  // namespace pif::bench
