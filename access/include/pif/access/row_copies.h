// Writing rows whose LFS is absent in the view: the LFSs that keep their parity take them, until it is back
// (docs/PROTOCOL.md "Parity"). Each of a component's rows has its keeper, in turn.
// Thread-safety: none; the thread of the requests.
#pragma once

#include <cstdint>

#include "pif/access/file_parts.h"
#include "pif/access/requests.h"
#include "pif/access/row_body.h"
#include "pif/access/row_range.h"
#include "pif/base/clock.h"
#include "pif/base/result.h"

namespace pif::access {

// With what right rows are copied, and how they are sent.
struct CopyOptions {
  std::uint64_t generation = 0;         // of the grant; 0: of a file that is being created
  FileLength base;                      // of the grant
  Duration timeout = Duration::zero();  // of a request; zero: LfsLinks::timeout()
  bool in_order = false;                // as BulkRequest
};

// kUnavailable, with the file and both LFSs: who keeps the parity of this row is absent, too. lfs: absent.
[[nodiscard]] Status check_keeper(const FileParts& parts, LfsIndex lfs, Row row);

// Adds CopyRows to each keeper of `rows`, whose LFS is absent; `body` has exactly these. For a file being created they
// are sent again where an LFS says kRetry. Errors: check_keeper(), and then nothing is added; those of the requests.
[[nodiscard]] Status add_copies(Requests& requests, const RowRange& rows, const RowBody& body,
                                const CopyOptions& options);

// The error of a file being created whose LFS, or the server, goes by a newer view (kOldView); its text says so. Other
// errors, and those of committed files, stay as they are.
Error explain_old_view(const FileParts& parts, Error error);

}  // namespace pif::access
