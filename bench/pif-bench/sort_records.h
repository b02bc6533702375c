// Records of the sort benchmark's ASCII form (100 bytes with 10 random printable ones in front), and what must still
// hold of them when they are sorted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pif::bench {

inline constexpr std::size_t kRecordBytes = 100;
inline constexpr std::size_t kKeyBytes = 10;

// What a file of records is, whatever their order; and whether they are in order.
struct Census {
  std::uint64_t records = 0;
  std::uint64_t sum = 0;  // of the records' hashes
  bool sorted = true;
  bool same_records(const Census& other) const { return records == other.records && sum == other.sum; }
};

// These end the program with a message if the file cannot be read, or written, or is not whole records.
Census census_of(const std::string& path);
void make_records(const std::string& path, std::uint64_t records);
// Ends the program if `path` is not `wanted` in order. `what`: who sorted.
void must_be_sorted(const std::string& what, const std::string& path, const Census& wanted);

// For scripts: `pif-bench --make-records N FILE`, and `pif-bench --census FILE`, which prints a line of JSON.
int make_records_main(const std::string& records, const std::string& path);
int census_main(const std::string& path);

}  // namespace pif::bench
