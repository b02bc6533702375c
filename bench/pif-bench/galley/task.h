// What one process of a galley benchmark does, and for which records: the access patterns of Nieuwejaar and Kotz,
// "Performance of the Galley parallel file system" (IOPADS 1996), 4.2, as each LFS sees them.
#pragma once

#include <cstdint>
#include <string>

#include "pif/client/client.h"

namespace pif::bench {

enum class Shape : int {
  kBroadcast,    // everybody all records
  kPartitioned,  // everybody a contiguous part of each LFS's
  kInterleaved,  // everybody every count-th record of each LFS
};

enum class Work : int {
  kRead,         // of a committed file
  kWrite,        // to a file being created that others write, too
  kOverwrite,    // in a committed file
  kReadRounds,   // as a member of a parallel-open
  kReadRecords,  // a whole file in its own records, `request_records` at a time
};

struct Task {
  std::string folder, route = "auto";  // of the file system
  bool by_message = false;
  std::string path;
  std::string token;  // in hexadecimal digits: of kWrite and kReadRounds
  Work work = Work::kRead;
  Shape shape = Shape::kInterleaved;
  std::uint64_t index = 0, count = 1;  // which of how many processes
  std::uint64_t lfss = 1;              // of the file, whose own records have kByteRecordLength bytes
  std::uint64_t record = 64;           // bytes; a power of two
  std::uint64_t bytes = 0;             // of the file, for all processes
  std::uint64_t seed = 0;              // of its contents
  bool one_by_one = false;             // a request for each record, which ends after `seconds_max`
  double seconds_max = 1;
  double seconds_min = 0;             // kRead, not one by one: the request is made again until then
  std::uint64_t request_records = 0;  // the first request's; each is four times as large. 0: all in one

  // Records of this process, and where each is in the file.
  std::uint64_t records() const;
  std::uint64_t offset_of(std::uint64_t record_index) const;
  // Bytes from one record to the next in memory: where all of the file's are wanted they lie apart there.
  std::uint64_t memory_stride() const { return shape == Shape::kInterleaved ? record : 2 * record; }
  // The request for `n` records from `first` on.
  File::Pieces pieces(std::uint64_t first, std::uint64_t n) const;

  std::string to_text() const;
  static Task from_text(const std::string& text);
};

std::string to_hex(const std::string& bytes);

// The main function of such a process.
int task_main(const std::string& text);

}  // namespace pif::bench
