// Between what pif-sort's processes send one another (proto/sort.proto) and the shapes of the program. Input here comes
// from another process: errors are kCorrupt and say whose it was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "pif/tool/message.h"
#include "sort.h"
#include "sort.pb.h"
#include "token/token_merge.h"

namespace pif::sort {

// The controller's request to its workers (Job::value).
std::string pack(const SortOptions& wanted);
Result<SortOptions> unpack_options(std::string_view bytes);

// The result of a worker (Worker::set_result).
struct Outcome {
  FileLength put_out;  // by this worker
  MergeCounts counts;
  double sort_seconds = 0, merge_seconds = 0;
};
std::string pack(const Outcome& outcome);
// most: a worker puts out no more than that.
Result<Outcome> unpack_outcome(std::string_view bytes, std::uint32_t rank, const FileLength& most);

// The result of a worker that checks order (check_worker.h).
std::string pack(const CheckOutcome& outcome);
Result<CheckOutcome> unpack_check(std::string_view bytes, std::uint32_t rank, const FileLength& input);

}  // namespace pif::sort
