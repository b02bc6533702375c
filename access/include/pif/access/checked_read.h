// Reading rows of one component, every byte of them checked: through descriptors by this process, by message by the
// LFS. A direct read that fails is made again (it may have met an overwrite half way), then with a new tail, and in the
// end the LFS is asked.
//
// A read is: open_reader() of its components, run those requests; read_by_message() or, on any thread, read_direct();
// recover() for what failed; run those requests. Thread-safety: read_direct() and read_rows_direct() from several
// threads; all else only on the thread of the requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pif/access/component_access.h"
#include "pif/access/requests.h"
#include "pif/access/row_range.h"

namespace pif::access {

// ---- fixed records ----

// Rows of records: the place of record n is out + (n - origin) * record length.
struct ReadPart {
  RowRange rows;
  std::byte* out = nullptr;
  RecordNumber origin = 0;
  FileLength file_length;  // of the file, as the read goes by: others may make its last record longer meanwhile
  std::uint64_t turn = 0;  // consecutive parts of the same turn are read by one thread
};

// Packed rows of `rows` (some of part's) to their places in part.out, which has room for them. packed: record_length
// bytes each, as many rows as there are; a short last row is just shorter.
void scatter(const FileParts& parts, const ReadPart& part, const RowRange& rows, std::span<const std::byte> packed);

// Through the component's descriptors; has_reader(). kEndOfFile: it was attached when it was shorter. kCorrupt: see
// component::Reader.
[[nodiscard]] Status read_direct(const FileParts& parts, const ComponentAccess& component, const ReadPart& part);
// Adds requests for all of it, of at most kBulkBytes each (or one record). moved: bytes that came are added to it; it
// and the memory outlive the requests. They end with kCorrupt, naming the LFS, if a reply is not what was asked for.
void read_by_message(Requests& requests, const ReadPart& part, std::uint64_t& moved);
// read_direct() has failed so: kCorrupt and kEndOfFile are tried again with a new tail, in the end by message; others
// are a failure of the disk, and go by message at once. For a file being created it returns them. Requests are added;
// component, moved and the memory outlive them.
[[nodiscard]] Status recover(Requests& requests, ComponentAccess& component, const ReadPart& part, std::uint64_t& moved,
                             Error error);

// A read through descriptors of this LFS has failed so. Where its disk did not answer (kTimeout), the LFS is passed
// over for a while, so that it is not waited for once more; if nobody else can answer, the error comes back.
[[nodiscard]] Status note_silent_disk(Requests& requests, LfsIndex lfs, const Error& error);

// ---- variable records ----

// Consecutive rows of one LFS.
struct FetchedRows {
  Row first = 0;
  std::vector<std::uint32_t> lengths;
  std::vector<std::byte> data;
  std::size_t offset = 0;  // of the next record's bytes: records are taken in order
};

// As many of the rows as `bytes_max` holds, at least one; rows.rows >= 1. `out` comes empty. Errors: as
// component::Reader; kCorrupt also for a row over kRecordLengthMax.
[[nodiscard]] Status read_rows_direct(const FileParts& parts, const ComponentAccess& component, const RowRange& rows,
                                      std::size_t bytes_max, FetchedRows& out);
// As many as the LFS puts into one reply, at least one. `out` is replaced; it and moved outlive the requests.
void read_rows_by_message(Requests& requests, const RowRange& rows, FetchedRows& out, std::uint64_t& moved);
// read_rows_direct() has failed so: as recover(). The error itself for a file being created. component, out and moved
// outlive the requests.
[[nodiscard]] Status recover_rows(Requests& requests, ComponentAccess& component, const RowRange& rows,
                                  std::size_t bytes_max, FetchedRows& out, std::uint64_t& moved, const Error& error);

// Variable records: adds to sums[i] the byte of .dat where row rows[i] of the component starts; its number of rows
// gives the end. `rows` and `sums` have the same size; sums and away outlive the requests. away: where the LFS is, and
// the file has parity (can_rebuild()), this is set and nothing is added.
// Errors: note_silent_disk().
[[nodiscard]] Status add_offsets(Requests& requests, ComponentAccess& component, std::vector<Row> rows,
                                 std::vector<std::uint64_t>& sums, std::optional<Error>& away);

}  // namespace pif::access
