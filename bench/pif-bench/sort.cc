// pif-sort against sort(1): records of the sort benchmark's ASCII form, 100 bytes with 10 random printable ones in front.
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "harness.h"

namespace pif::bench {
namespace {

constexpr std::size_t kRecordBytes = 100;
constexpr std::size_t kKeyBytes = 10;
constexpr std::size_t kBatch = 10'000;  // records

// Key, record number in hexadecimal, filler, end of line.
void make_record(std::uint64_t number, std::mt19937_64& random, char* out) {
  for (std::size_t i = 0; i < kKeyBytes; ++i) out[i] = static_cast<char>(' ' + random() % 95);
  fmt::format_to(out + kKeyBytes, "  {:032X}  ", number);
  const std::size_t filler = kKeyBytes + 36;
  std::memset(out + filler, static_cast<int>('A' + number % 26), kRecordBytes - filler - 2);
  std::memcpy(out + kRecordBytes - 2, "\r\n", 2);
}

// What a file of records is, whatever their order; and whether they are in order.
struct Census {
  std::uint64_t records = 0;
  std::uint64_t sum = 0;      // of the records' hashes
  bool sorted = true;
  bool same_records(const Census& other) const { return records == other.records && sum == other.sum; }
};

Census census_of(const std::string& path) {
  Census census;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> batch(kBatch * kRecordBytes);
  char last[kKeyBytes] = {};
  while (file.read(batch.data(), static_cast<std::streamsize>(batch.size())), file.gcount() > 0) {
    const auto bytes = static_cast<std::size_t>(file.gcount());
    if (bytes % kRecordBytes != 0) die(path + ": not whole records");
    for (std::size_t at = 0; at < bytes; at += kRecordBytes, ++census.records) {
      const char* const record = batch.data() + at;
      census.sorted = census.sorted && std::memcmp(last, record, kKeyBytes) <= 0;
      std::memcpy(last, record, kKeyBytes);
      census.sum += XXH3_64bits(record, kRecordBytes);
    }
  }
  return census;
}

void make_records(const std::string& path, std::uint64_t records) {
  std::ofstream file(path, std::ios::binary);
  std::mt19937_64 random(7);
  std::vector<char> batch(kBatch * kRecordBytes);
  for (std::uint64_t n = 0; n < records;) {
    const std::size_t count = std::min<std::uint64_t>(kBatch, records - n);
    for (std::size_t i = 0; i < count; ++i, ++n) make_record(n, random, batch.data() + i * kRecordBytes);
    file.write(batch.data(), static_cast<std::streamsize>(count * kRecordBytes));
  }
  if (!file.flush()) die("cannot write " + path);
}

}  // namespace

void bench_sort(Context& c) {
  const std::string source = c.options.folder + "/records", theirs = c.options.folder + "/sorted", back = c.options.folder + "/back";
  make_records(source, c.options.records);
  const Census wanted = census_of(source);
  const System system(c.options, "sort", 4, {}, c.watch);
  must_run(system.command({"pif", "put", "--record-length", "100", source, "/source"}), &c.watch);
  const auto ours = system.command({"pif-sort", "-k", "0:10", "/source", "/sorted"});
  const auto prepare = [&] {
    run(system.command({"pif", "rm", "/sorted"}));
    unlink(theirs.c_str());
    system.settle();
    touch_memory(c.self);
  };
  const std::string gnu = fmt::format("LC_ALL=C sort --parallel=2 -S8G -o '{}' '{}' && sync -d '{}'", theirs, source, theirs);
  const Pair p = pair(c.options.repeats, prepare, [&] { return must_run(ours, &c.watch); },
                      [&] { return must_run({"sh", "-c", gnu}); });
  must_run(ours, &c.watch);
  must_run(system.command({"pif", "get", "/sorted", back}), &c.watch);
  const Census got = census_of(back);
  if (!got.sorted || !got.same_records(wanted)) die("pif-sort: the output is not the sorted input");
  c.report.add({fmt::format("pif-sort, {} records of 100 bytes : sort -S8G && sync -d", c.options.records), seconds_text(p.ours),
                seconds_text(p.other), p.ratio, 6, true, fmt::format("{:.2f}-{:.2f}", p.ratio_min, p.ratio_max)});
  for (const std::string& path : {source, theirs, back}) unlink(path.c_str());
}

}  // namespace pif::bench
