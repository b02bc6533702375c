#include "sort_records.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "harness.h"

namespace pif::bench {
namespace {

constexpr std::size_t kBatch = 10'000;  // records

// Key, record number in hexadecimal, filler, end of line.
void make_record(std::uint64_t number, std::mt19937_64& random, char* out) {
  for (std::size_t i = 0; i < kKeyBytes; ++i) out[i] = static_cast<char>(' ' + random() % 95);
  fmt::format_to(out + kKeyBytes, "  {:032X}  ", number);
  const std::size_t filler = kKeyBytes + 36;
  std::memset(out + filler, static_cast<int>('A' + number % 26), kRecordBytes - filler - 2);
  std::memcpy(out + kRecordBytes - 2, "\r\n", 2);
}

}  // namespace

Census census_of(const std::string& path) {
  Census census;
  std::ifstream file(path, std::ios::binary);
  if (!file) die("cannot read " + path);
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

void must_be_sorted(const std::string& what, const std::string& path, const Census& wanted) {
  const Census got = census_of(path);
  if (!got.sorted || !got.same_records(wanted)) die(what + ": the output is not the sorted input");
}

int make_records_main(const std::string& records, const std::string& path) {
  make_records(path, std::stoull(records));
  return 0;
}

int census_main(const std::string& path) {
  const Census census = census_of(path);
  const nlohmann::ordered_json document = {{"records", census.records}, {"sum", census.sum}, {"sorted", census.sorted}};
  fmt::print("{}\n", document.dump());
  return 0;
}

}  // namespace pif::bench
