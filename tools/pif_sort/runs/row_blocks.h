// Rows of fixed length for the output's components, from a worker that has a share of the result: the records with
// numbers [begin, end), which are one block of rows on every LFS. They go in whole checksum chunks, so that no chunk is
// written twice but where two shares meet.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "keys/keys.h"
#include "pif/net/buffer.h"
#include "pif/tool/worker.h"

namespace pif::sort {

struct RowBlock {
  LfsIndex to = 0;
  Row first = 0;
  std::uint64_t count = 0;
  net::Buffer body;
};

class RowBlockMaker {
 public:
  // numbers: of the share's records. The output's layout is even.
  RowBlockMaker(const tool::Output& output, Range numbers);
  // The share's next record.
  void put(Bytes record);
  // Those that are full: to be taken away.
  std::deque<RowBlock>& made() { return made_; }

 private:
  struct Open {
    Row next = 0, end = 0;  // rows that are not in a buffer yet
    Row first = 0;          // of the buffer
    net::Buffer body;
    std::size_t used = 0;  // of it
  };
  void begin(Open& open) const;

  std::uint32_t record_length_;
  std::uint64_t chunk_rows_, least_rows_;
  std::vector<Open> open_;  // by LFS
  LfsIndex to_ = 0;         // of the next record
  std::deque<RowBlock> made_;
};

}  // namespace pif::sort
