// Whether a file is sorted (pif-sort -c): through the controller's own client, or by all workers at once, each of which
// reads shares of the file from all its LFSs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "keys/keys.h"
#include "pif/client/client.h"
#include "pif/tool/worker.h"

namespace pif::sort {

struct OrderCheck {
  bool sorted = true;
  std::uint64_t records = 0;  // looked at; the last of them is out of order, if one is
  std::uint64_t bytes = 0;    // of these
  std::string disorder;       // which one is, and what is in it
};
// Whether every record of the range comes before the next one, or has the same key (not if `unique`).
[[nodiscard]] Result<OrderCheck> check_order(File& file, const std::string& path, const KeyMaker& maker, bool unique,
                                             Range range);

// A worker's findings.
struct CheckOutcome {
  bool is_done = false;  // false: workers on several machines cannot
  std::optional<RecordNumber>
      suspect;              // the first record that is out of order or cannot be read, of those of this worker
  std::string error;        // why it cannot be read
  std::uint64_t bytes = 0;  // of the records that this worker looked at, none of them beyond the first suspect of all
};
// The worker's part: sets its result. skipped: records at the beginning that are not looked at. Called by all workers.
[[nodiscard]] Status check_share(tool::Worker& worker, tool::Input& input, const KeyMaker& maker, bool unique,
                                 std::uint64_t skipped);

}  // namespace pif::sort
