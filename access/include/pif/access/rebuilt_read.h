// Rows of an LFS that is away, or whose bytes are damaged: those that keep their parity rebuild them and send them
// (docs/PROTOCOL.md "Parity"). Each of a component's rows has its keeper, in turn; all are asked at once.
// Thread-safety: none; the thread of the requests.
#pragma once

#include <cstdint>
#include <vector>

#include "pif/access/checked_read.h"
#include "pif/access/requests.h"
#include "pif/access/row_range.h"

namespace pif::access {

// Whether the file is committed and has parity; and whether that helps against what an LFS says of a component, or
// against its silence.
bool can_be_rebuilt(const FileParts& parts);
bool can_rebuild(const FileParts& parts, const Error& error);

// Some of the rows of one LFS: `count` rows from `first`, `step` apart, all with the same keeper.
struct KeptRows {
  LfsIndex keeper = 0;
  Row first = 0;
  std::uint64_t count = 0;
  std::uint64_t step = 1;
};
// The rows of `rows` by their keepers, in the order of their first rows: row i is of keeper i mod step.
std::vector<KeptRows> by_keeper(const parity::Layout& layout, const RowRange& rows);

// Fixed records: adds requests for all of it. `why`: what the LFS said. moved: bytes that came are added to it; it and
// the memory outlive the requests. They end with kUnavailable, naming record and LFSs, where another LFS that is needed
// is away, too.
void read_rebuilt(Requests& requests, const ReadPart& part, std::uint64_t& moved, const Error& why);
// Variable records: as many as come with one reply of each keeper, at least one. `out` is replaced; it and moved
// outlive the requests.
void read_rows_rebuilt(Requests& requests, const RowRange& rows, FetchedRows& out, std::uint64_t& moved,
                       const Error& why);

}  // namespace pif::access
